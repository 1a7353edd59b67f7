//! Programs, and the pipelines that they are.

use corsair_stream::expression::key;
use corsair_stream::language::parse;
use corsair_stream::pipeline::{Aggregate, Alert, Pipeline, PipelineError, Stream};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn parsed(text: &str) -> Pipeline {
    parse(text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// All these texts are the pipeline that Rust builds.
fn are(texts: &[&str], draw: impl for<'p> FnOnce(Stream<'p>)) {
    let expected: Result<Pipeline, PipelineError> = Pipeline::build(draw);
    let expected = expected.expect("a pipeline");
    for text in texts {
        assert_eq!(parsed(text), expected, "{text}");
    }
}

#[test]
fn a_chain_in_all_its_spellings() {
    are(
        &[
            "stream | from().measurement('m1') | where(value > 10 AND host = 'a')
                | window(10s, every 10s) | count(value)",
            "stream|from('m1')|where(value>10 and host='a')|window(10s)|count(value)",
            "stream.from('m1').where(value > 10 AND host = 'a').window(10s, every 10s).count('value')",
            "stream
                | from()
                    .measurement('m1')
                    .where(lambda: \"value\" > 10 AND \"host\" = 'a')
                | window(10s)
                    .every(10s)
                | count('value')",
            "var limit = 10 var host_a = 'a' var m1 = 'm1' var long = 10s
             stream | from().measurement(m1) | where(value > limit AND host = host_a)
                | window(long) | count('value')",
            "// counts\nvar m = stream | from('m1') # all of them
             m | where(value > 10 && host == 'a') | window(every 10s, 10s) | count(\"value\").as('count')",
        ],
        |stream| {
            let hot = key("value").gt(10).and(key("host").eq("a"));
            let m1 = stream.from().measurement("m1").filter(hot);
            m1.window(10 * SECOND, 10 * SECOND).count("value");
        },
    );
}

#[test]
fn from_takes_three_properties_and_two_nodes() {
    are(
        &[
            "stream | from().database('db').retentionPolicy('rp').measurement('m').groupBy('host') | log()",
            "stream | from().retentionPolicy('rp').groupBy('host').measurement('m').database('db') | log()",
            "stream.from('m').database('db').retentionPolicy('rp').groupBy(host) | log",
        ],
        |stream| {
            let from = stream.from().database("db").retention_policy("rp");
            from.measurement("m").group_by(["host"]).log("");
        },
    );
}

#[test]
fn grouping_is_ordered_by_name() {
    are(
        &[
            "stream | from() | groupBy('b', 'a')",
            "stream | from() | groupBy(a, \"b\")",
        ],
        |stream| {
            stream.from().group_by(["a", "b"]);
        },
    );
}

#[test]
fn every_aggregate_has_a_name_for_its_result() {
    are(
        &["var w = stream | from() | window(1m, every 10s)
            w | count(v)  w | sum(v)  w | mean(v)  w | min(v)  w | max(v).as('most')
            w | percentile(v, 95)  w | percentile('v', 99.9).as('p')"],
        |stream| {
            let w = stream.from().window(60 * SECOND, 10 * SECOND);
            w.count("v");
            w.sum("v");
            w.mean("v");
            w.min("v");
            w.aggregate(Aggregate::Max, "v", "most");
            w.percentile("v", 95.0);
            w.aggregate(Aggregate::Percentile(99.9), "v", "p");
        },
    );
}

#[test]
fn eval_gives_several_fields() {
    are(
        &["stream | from() | eval(value * 2, lambda: \"a\" + 'x').as('double', 'ax')"],
        |stream| {
            let fields = [("double", key("value") * 2), ("ax", key("a") + "x")];
            stream.from().eval(fields);
        },
    );
}

#[test]
fn joins_are_named_by_their_vars() {
    are(
        &[
            "var m1 = stream | from('m1')  var m2 = stream | from('m2')
             m1 | join(m2, tolerance 1s)",
            "var m1 = stream | from('m1')  var m2 = stream | from('m2')
             m1 | join(m2).tolerance(1s).as('m1', 'm2')",
            "var a = stream.from('m1')  var b = stream.from('m2')
             a.join(b).as('m1', 'm2').tolerance(1000ms)",
        ],
        |stream| {
            let m1 = stream.from().measurement("m1");
            let m2 = stream.from().measurement("m2");
            m1.join(m2, ["m1", "m2"], SECOND);
        },
    );
    are(
        &["var m2 = stream | from('m2')  stream | from('m1') | join(m2)"],
        |stream| {
            let m2 = stream.from().measurement("m2");
            let m1 = stream.from().measurement("m1");
            m1.join(m2, ["left", "m2"], Duration::ZERO);
        },
    );
}

#[test]
fn alerts_have_levels_and_a_name() {
    are(
        &[
            "stream | from() | alert().crit(v > 30).info(lambda: \"v\" > 10).warn(v > 20).id('v') | log('v: ')",
        ],
        |stream| {
            let alert = Alert::new().info(key("v").gt(10)).warn(key("v").gt(20));
            stream
                .from()
                .alert(alert.crit(key("v").gt(30)).id("v"))
                .log("v: ");
        },
    );
}

#[test]
fn sinks_hand_on_what_they_get() {
    are(
        &[
            "stream | from() | log() | window(1s) | http_out('w') | http_post('http://a/b')
                | count(v) | httpOut('c') | httpPost('https://a:80') | log().prefix('x')",
        ],
        |stream| {
            let windows = stream.from().log("").window(SECOND, SECOND);
            let counts = windows.http_out("w").http_post("http://a/b").count("v");
            counts.http_out("c").http_post("https://a:80").log("x");
        },
    );
}

#[test]
fn chains_may_be_used_more_than_once() {
    let text = "var m = stream | from('m')\n m | where(a > 1) | log()\n m | where(b > 1) | log()";
    let pipeline = parsed(text);
    let edges: Vec<_> = pipeline.edges().collect();
    assert_eq!(edges, [(0, 1), (1, 2), (0, 3), (3, 4)]);
    let names: Vec<_> = pipeline.nodes().iter().map(|node| &*node.name).collect();
    assert_eq!(names, ["from0", "where1", "log2", "where3", "log4"]);
}

#[test]
fn vars_may_be_called_like_nodes() {
    let pipeline = parsed("var window = stream | from() | window(1s)\n window | count(v)");
    assert_eq!(pipeline.nodes().len(), 3);
    assert!(pipeline.node("count2").is_some() && pipeline.node("count3").is_none());
}

#[test]
fn windows_need_not_follow_one_another_closely() {
    are(&["stream | from() | window(1w, every 15m)"], |stream| {
        let week = Duration::from_secs(604_800);
        stream.from().window(week, Duration::from_secs(900));
    });
}
