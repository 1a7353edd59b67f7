//! Tests of the effect of each node on points, seen from outside: lines in, logged lines out.

use crate::http::Service;

const SECOND: i64 = 1_000_000_000;

/// Runs a task over lines and returns the logged lines.
async fn run(text: &str, lines: &str) -> Vec<String> {
    let service = Service::new();
    service.task("t", text).await;
    service.write(lines).await;
    service.logged().await
}

#[tokio::test]
async fn where_keeps_the_points_for_which_its_condition_is_true() {
    let logged = run(
        "stream | from().measurement('m') | where(value > 10 AND host = 'a') | log()",
        "m,host=a value=11 1\nm,host=b value=12 2\nm,host=a value=10 3\nm,host=a other=1 4\n",
    )
    .await;
    assert_eq!(logged, [format!("m,host=a value=11.0 {SECOND}")]);
}

#[tokio::test]
async fn states_last_as_long_as_their_condition_is_true_and_go_on_after_other_writes() {
    let lines = "m v=9 1\nm v=9 3\nm v=1 4\nm v='x' 5\nm v=9 7\nm v=9 8\n".replace("'x'", "\"x\"");
    let counts = run("stream | from('m') | stateCount(v > 5) | log()", &lines).await;
    let of = |field: &str, values: [&str; 5]| -> Vec<String> {
        let points = ["9.0", "9.0", "1.0", "9.0", "9.0"]
            .iter()
            .zip([1, 3, 4, 7, 8]);
        let lines = points.zip(values);
        let line = |((v, at), value)| format!("m v={v},{field}={value} {}", at * SECOND);
        lines.map(line).collect()
    };
    assert_eq!(counts, of("state_count", ["1i", "2i", "-1i", "1i", "2i"]));
    let text = "stream | from('m') | stateDuration(v > 5).as('long').unit(500ms) | log()";
    let service = Service::new();
    service.task("t", text).await;
    for line in lines.lines() {
        service.write(&format!("{line}\n")).await;
    }
    let long = ["0.0", "4.0", "-1.0", "0.0", "2.0"];
    assert_eq!(service.logged().await, of("long", long));
}

#[tokio::test]
async fn flatten_makes_one_point_of_those_of_one_time_and_counts_those_without_a_tag() {
    let service = Service::new();
    let text =
        "stream | from('m') | flatten().on('host', 'port').tolerance(2s).delimiter('/') | log()";
    service.task("t", text).await;
    // 1 s belongs to 2 s. A later value of the same name replaces the earlier one.
    service
        .write("m,host=a,port=1 x=1 1\nm,host=a x=9 2\nm,host=b,port=1 x=2,y=3 2\nm,host=a,port=1 x=4 2\n")
        .await;
    service
        .write("m,host=a,port=1 x=5 4\nm,host=a,port=1 x=6 8\n")
        .await;
    service.engine.drain().await;
    let status = service.engine.status("t").unwrap();
    let error = status.nodes.iter().find_map(|node| node.last_error.clone());
    let error = error.unwrap_or_default();
    assert!(error.contains("no tag `port`"), "{error}");
    assert_eq!(
        service.logged().await,
        [
            format!("m a/1/x=4.0,b/1/x=2.0,b/1/y=3.0 {}", 2 * SECOND),
            format!("m a/1/x=5.0 {}", 4 * SECOND),
        ]
    );
}

#[tokio::test]
async fn combine_pairs_points_of_one_time_and_refuses_too_many() {
    let lines =
        "m,s=a v=1 1\nm,s=b v=2 1\nm,s=c v=3,w=9 1\nm,s=a v=4 2\nm,s=b v=5 3\nm,s=z v=0 9\n";
    let text = |rest: &str| {
        format!(
            "stream | from('m') | combine(lambda: s == 'c', lambda: TRUE).as('c', 'o'){rest} | log()"
        )
    };
    assert_eq!(
        run(&text(""), lines).await,
        [
            format!("m,c.s=c,o.s=a c.v=3.0,c.w=9.0,o.v=1.0 {SECOND}"),
            format!("m,c.s=c,o.s=b c.v=3.0,c.w=9.0,o.v=2.0 {SECOND}"),
        ]
    );
    assert_eq!(run(&text(".max(2)"), lines).await, Vec::<String>::new());
    assert_eq!(run(&text(".max(3)"), lines).await.len(), 2);
}

#[tokio::test]
async fn a_tumbling_window_ends_at_multiples_of_its_period() {
    let logged = run(
        "stream | from('m') | window(10s, every 10s) | count(value) | log()",
        "m value=1 5\nm value=1 9\nm value=1 10\nm value=1 25\nm value=1 40\n",
    )
    .await;
    assert_eq!(
        logged,
        [
            format!("m count=2i {}", 10 * SECOND),
            format!("m count=1i {}", 20 * SECOND),
            format!("m count=1i {}", 30 * SECOND),
            // The window being filled when the stream ends.
            format!("m count=1i {}", 50 * SECOND),
        ]
    );
}

// Guarantee: stream-2.
#[tokio::test]
async fn windows_do_not_depend_on_how_the_lines_are_divided_into_writes() {
    let text = "stream | from('m') | window(10s, every 5s) | sum(value) | log()";
    let lines: Vec<String> = (0..60).map(|t| format!("m value={t}i {t}\n")).collect();
    let whole = run(text, &lines.concat()).await;
    for size in [1, 7, 31] {
        let service = Service::new();
        service.task("t", text).await;
        for part in lines.chunks(size) {
            service.write(&part.concat()).await;
        }
        assert_eq!(service.logged().await, whole, "{size} lines a write");
    }
}

#[tokio::test]
async fn a_sliding_window_reaches_its_period_back() {
    let logged = run(
        "stream | from('m') | window(20s, every 10s) | count(value) | log()",
        "m value=1 5\nm value=1 15\nm value=1 25\nm value=1 31\n",
    )
    .await;
    assert_eq!(
        logged,
        [
            format!("m count=1i {}", 10 * SECOND),
            format!("m count=2i {}", 20 * SECOND),
            format!("m count=2i {}", 30 * SECOND),
            format!("m count=2i {}", 40 * SECOND),
        ]
    );
}

#[tokio::test]
async fn a_late_point_is_counted_and_left_out() {
    let service = Service::new();
    let text = "stream | from('m') | window(10s, every 10s) | count(value) | log()";
    service.task("t", text).await;
    service
        .write("m value=1 5\nm value=1 15\nm value=1 6\nm value=1 16\n")
        .await;
    service.engine.drain().await;
    let status = service.engine.status("t").unwrap();
    let window = status
        .nodes
        .iter()
        .find(|node| node.name == "window1")
        .unwrap();
    assert_eq!(window.counters[0], ("late", 1));
    assert_eq!(
        service.logged().await,
        [
            format!("m count=1i {}", 10 * SECOND),
            format!("m count=2i {}", 20 * SECOND)
        ]
    );
}

#[tokio::test]
async fn groups_have_windows_of_their_own() {
    let logged = run(
        "stream | from('m') | groupBy('host') | window(10s, every 10s) | sum(value) | log()",
        "m,host=a value=1i 1\nm,host=b value=2i 2\nm value=4i 3\nm,host=a value=8i 4\nm,host=a value=0i 11\n",
    )
    .await;
    assert_eq!(
        logged,
        [
            format!("m,host=a sum=9i {}", 10 * SECOND),
            // At the end: ordered by the values of the tags, a missing one first.
            format!("m sum=4i {}", 10 * SECOND),
            format!("m,host=a sum=0i {}", 20 * SECOND),
            format!("m,host=b sum=2i {}", 10 * SECOND),
        ]
    );
}

#[tokio::test]
async fn points_are_grouped_by_several_tags_at_once() {
    let logged = run(
        "stream | from('m') | groupBy('host', 'core') | window(10s, every 10s) | count(value) | log()",
        "m,core=1,host=a value=1 1\nm,core=2,host=a value=1 1\nm,core=1,host=a value=1 2\n",
    )
    .await;
    assert_eq!(
        logged,
        [
            format!("m,core=1,host=a count=2i {}", 10 * SECOND),
            format!("m,core=2,host=a count=1i {}", 10 * SECOND),
        ]
    );
}

#[tokio::test]
async fn aggregates_are_those_of_the_numbers_in_the_window() {
    for (function, result) in [
        ("count(v)", "count=5i"),
        ("sum(v)", "sum=1010i"),
        ("mean(v)", "mean=202.0"),
        ("min(v)", "min=-5i"),
        ("max(v)", "max=1000i"),
        ("percentile(v, 50)", "percentile=5i"),
        ("percentile(v, 10)", "percentile=-5i"),
        ("percentile(v, 90)", "percentile=1000i"),
        ("percentile(v, 80).as('p80')", "p80=8i"),
        ("first(v)", "first=2i"),
        ("last(v)", "last=8i"),
        ("median(v)", "median=5.0"),
        ("spread(v)", "spread=1005i"),
    ] {
        let text = format!("stream | from('m') | window(10s, every 10s) | {function} | log()");
        let lines = "m v=2i 1\nm v=1000i 2\nm v=-5i 3\nm other=1 4\nm v=5i 4\nm v=8i 5\n";
        let logged = run(&text, lines).await;
        assert_eq!(
            logged,
            [format!("m {result} {}", 10 * SECOND)],
            "{function}"
        );
    }
}

#[tokio::test]
async fn an_aggregate_of_nothing_makes_no_point_but_a_count_of_zero() {
    for (function, logged) in [
        ("mean(x)", vec![]),
        ("count(x)", vec!["m count=0i 10000000000"]),
    ] {
        let text = format!("stream | from('m') | window(10s, every 10s) | {function} | log()");
        assert_eq!(run(&text, "m v=2i 1\n").await, logged, "{function}");
    }
}

#[tokio::test]
async fn eval_adds_fields_and_may_refer_to_those_before() {
    let logged = run(
        "stream | from('m') | eval(v * 2, double + 1).as('double', 'more').keep() | log()",
        "m,host=a v=3i 1\n",
    )
    .await;
    assert_eq!(
        logged,
        [format!("m,host=a v=3i,double=6i,more=7i {SECOND}")]
    );
}

#[tokio::test]
async fn join_pairs_points_within_the_tolerance() {
    let logged = run(
        "var a = stream | from('a')
         var b = stream | from('b')
         a | join(b).as('a', 'b').tolerance(10s) | eval(a.v + b.v).as('sum').keep() | log()",
        "a v=1i 10\na v=2i 21\na v=3i 30\nb v=10i 9\nb v=30i 31\nb v=40i 40\n",
    )
    .await;
    assert_eq!(
        logged,
        [
            format!("a a.v=1i,b.v=10i,sum=11i {}", 10 * SECOND),
            format!("a a.v=3i,b.v=30i,sum=33i {}", 30 * SECOND),
        ]
    );
}

#[tokio::test]
async fn join_pairs_within_groups() {
    let logged = run(
        "var a = stream | from('a') | groupBy('host')
         var b = stream | from('b') | groupBy('host')
         a | join(b).as('a', 'b') | log()",
        "a,host=x v=1i 1\na,host=y v=2i 1\nb,host=y v=3i 1\n",
    )
    .await;
    assert_eq!(logged, [format!("a,host=y a.v=2i,b.v=3i {SECOND}")]);
}

#[tokio::test]
async fn an_alert_passes_on_changes_of_level_only() {
    let logged = run(
        "stream | from('m') | alert().info(v > 10).warn(v > 20).crit(v > 30).id('load')
           .stateChangesOnly().levelField('level').previousField('previous').idField('id') | log()",
        "m v=5 1\nm v=11 2\nm v=12 3\nm v=31 4\nm v=21 5\nm v=1 6\nm v=2 7\n",
    )
    .await;
    let line = |v: i64, level: &str, previous: &str, at: i64| {
        format!(
            "m v={v}.0,level=\"{level}\",previous=\"{previous}\",id=\"load\" {}",
            at * SECOND
        )
    };
    assert_eq!(
        logged,
        [
            line(11, "INFO", "OK", 2),
            line(31, "CRITICAL", "INFO", 4),
            line(21, "WARNING", "CRITICAL", 5),
            line(1, "OK", "WARNING", 6),
        ]
    );
}

#[tokio::test]
async fn a_sink_passes_on_what_it_gets() {
    let service = Service::new();
    let text = "stream | from('m') | log() | http_out('seen') | where(v > 1) | log()";
    service.task("t", text).await;
    service.write("m v=1 1\nm v=2 2\n").await;
    assert_eq!(service.logged().await.len(), 3);
}

#[tokio::test]
async fn times_are_truncated_and_rounded() {
    let lines = "m v=1i 10\nm v=2i 14\nm v=3i 15\nm v=4i 19\n";
    for (times, expected) in [
        ("truncate(10s)", [10, 10, 10, 10]),
        ("round(10s)", [10, 10, 20, 20]),
        // Multiples are counted from year 1, as in Go.
        ("round(7s)", [10, 17, 17, 17]),
        ("truncate(7s).round(10s)", [10, 10, 10, 20]),
    ] {
        let text = format!("stream | from().measurement('m').{times}");
        let logged = crate::kapacitor::run(&text, lines).await;
        let expected = (1..)
            .zip(expected)
            .map(|(value, time)| format!("m v={value}i {time}"));
        assert_eq!(logged, expected.collect::<Vec<_>>(), "{times}");
    }
}
