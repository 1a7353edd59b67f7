//! Tests that tasks written for kapacitor have the same meaning here.

use crate::http::Service;
use corsair_stream::engine::{AlertLogs, TaskOptions};

const SECOND: i64 = 1_000_000_000;

/// Runs a task over lines and returns the logged lines, as `measurement… seconds`.
pub async fn run(text: &str, lines: &str) -> Vec<String> {
    let service = Service::new();
    service.task("t", &format!("{text} | log()")).await;
    service.write(lines).await;
    let logged = service.logged().await.into_iter();
    let seconds = |line: String| {
        let (point, time) = line.rsplit_once(' ').unwrap();
        format!("{point} {}", time.parse::<i64>().unwrap() / SECOND)
    };
    logged.map(seconds).collect()
}

/// Returns one point for each second.
fn ticks(from: i64, to: i64) -> String {
    (from..to).map(|at| format!("m v={at}i {at}\n")).collect()
}

// Guarantee: stream-2.
#[tokio::test]
async fn a_window_begins_with_the_first_point_and_the_last_one_is_not_handed_on() {
    let window = "stream | from().measurement('m') | window().period(10s).every(10s)";
    let counts = run(&format!("{window} | count('v')"), &ticks(3, 30)).await;
    assert_eq!(counts, ["m count=10i 13", "m count=10i 23"]);
    let counts = run(&format!("{window}.align() | count('v')"), &ticks(3, 30)).await;
    assert_eq!(counts, ["m count=7i 10", "m count=10i 20"]);
}

#[tokio::test]
async fn a_first_window_may_wait_until_its_period_is_full() {
    let window = "stream | from('m') | window().period(7s).every(5s)";
    let counts = run(&format!("{window} | count('v')"), &ticks(0, 14)).await;
    assert_eq!(counts, ["m count=5i 5", "m count=7i 10"]);
    let counts = run(
        &format!("{window}.fillPeriod() | count('v')"),
        &ticks(0, 14),
    )
    .await;
    assert_eq!(counts, ["m count=7i 7", "m count=7i 12"]);
    let counts = run(
        &format!("{window}.fillPeriod().align() | count('v')"),
        &ticks(1, 16),
    )
    .await;
    assert_eq!(counts, ["m count=7i 10", "m count=7i 15"]);
}

#[tokio::test]
async fn windows_by_count_hold_the_last_points() {
    let window = "stream | from('m') | window().periodCount(4).everyCount(3)";
    let sums = run(&format!("{window} | sum('v')"), &ticks(1, 12)).await;
    assert_eq!(sums, ["m sum=6i 3", "m sum=18i 6", "m sum=30i 9"]);
    let sums = run(&format!("{window}.fillPeriod() | sum('v')"), &ticks(1, 12)).await;
    assert_eq!(sums, ["m sum=10i 4", "m sum=22i 7", "m sum=34i 10"]);
}

#[tokio::test]
async fn a_window_every_0s_is_handed_on_at_every_point() {
    let text = "stream | from('m') | window().period(3s).every(0s) | count('v')";
    let counts = run(text, &ticks(1, 6)).await;
    assert_eq!(
        counts,
        [
            "m count=1i 1",
            "m count=2i 2",
            "m count=3i 3",
            "m count=3i 4",
            "m count=3i 5"
        ]
    );
}

// Guarantee: stream-2.
#[tokio::test]
async fn windows_do_not_depend_on_how_the_lines_are_divided_into_writes() {
    for text in [
        "window().period(7s).every(5s)",
        "window().period(7s).every(0s)",
        "window().periodCount(5).everyCount(3)",
    ] {
        let text = format!("stream | from('m') | {text} | sum('v') | log()");
        let lines: Vec<String> = ticks(1, 40)
            .lines()
            .map(|line| format!("{line}\n"))
            .collect();
        let mut all = Vec::new();
        for size in [1, 7, 40] {
            let service = Service::new();
            service.task("t", &text).await;
            for part in lines.chunks(size) {
                service.write(&part.concat()).await;
            }
            all.push(service.logged().await);
        }
        assert!(
            all[0].len() > 5 && all[0] == all[1] && all[1] == all[2],
            "{text}: {all:?}"
        );
    }
}

#[tokio::test]
async fn eval_gives_its_results_only_unless_told_to_keep_more() {
    let line = "m,h=a v=3i,w=1i 1\n";
    for (keep, expected) in [
        ("", "m,h=a d=6i 1"),
        (".keep()", "m,h=a v=3i,w=1i,d=6i 1"),
        (".keep('w', 'd')", "m,h=a w=1i,d=6i 1"),
    ] {
        let text = format!("stream | from('m') | eval(lambda: \"v\" * 2).as('d'){keep}");
        assert_eq!(run(&text, line).await, [expected], "{keep}");
    }
    let text = "stream | from('m') | eval(lambda: string(\"v\")).as('t').tags('t').keep('w')";
    assert_eq!(run(text, line).await, ["m,h=a,t=3 w=1i 1"]);
}

#[tokio::test]
async fn eval_leaves_out_a_point_of_which_an_operand_is_missing() {
    let text = "stream | from('m') | eval(lambda: \"v\" + \"w\").as('s')";
    assert_eq!(run(text, "m v=1i 1\nm v=1i,w=2i 2\n").await, ["m s=3i 2"]);
}

#[tokio::test]
async fn selectors_keep_the_tags_and_fields_of_their_point_and_perhaps_its_time() {
    let lines = "m,h=a v=1i,w=7i 1\nm,h=b v=5i,w=8i 2\nm,h=c v=3i,w=9i 3\nm v=0i 11\n";
    let window = "stream | from('m') | window().period(10s).every(10s)";
    for (selector, expected) in [
        ("max('v')", "m,h=b w=8i,max=5i 11"),
        ("max('v').usePointTimes()", "m,h=b w=8i,max=5i 2"),
        ("first('v').as('f')", "m,h=a w=7i,f=1i 11"),
        ("last('v').usePointTimes()", "m,h=c w=9i,last=3i 3"),
        ("percentile('v', 50)", "m,h=c w=9i,percentile=3i 11"),
    ] {
        let logged = run(&format!("{window} | {selector}"), lines).await;
        assert_eq!(logged, [expected], "{selector}");
    }
}

#[tokio::test]
async fn percentiles_are_those_of_influxdb() {
    let lines = ticks(1, 12);
    let window = "stream | from('m') | window().period(10s).every(10s)";
    for (percent, expected) in [
        (42, Some(4)),
        (50, Some(5)),
        (95, Some(10)),
        (100, Some(10)),
        (4, None),
    ] {
        let logged = run(&format!("{window} | percentile('v', {percent})"), &lines).await;
        let expected = expected.map(|value| format!("m percentile={value}i 11"));
        assert_eq!(logged, Vec::from_iter(expected), "p{percent}");
    }
}

#[tokio::test]
async fn windows_are_filtered_grouped_computed_and_alerted_on() {
    let lines = "m,h=a v=1i 1\nm,h=b v=20i 2\nm,h=a v=30i 3\nm,h=a v=0i 11\n";
    let window = "stream | from('m') | window().period(10s).every(10s)";
    for (nodes, expected) in [
        ("where(v > 10) | count('v')", vec!["m count=2i 11"]),
        ("where(v > 99) | count('v')", vec!["m count=0i 11"]),
        (
            "groupBy('h') | sum('v')",
            vec!["m,h=a sum=31i 11", "m,h=b sum=20i 11"],
        ),
        ("eval(v * 2).as('d') | sum('d')", vec!["m sum=102i 11"]),
        ("default().field('x', 1) | sum('x')", vec!["m sum=3i 11"]),
        (
            "alert().crit(v > 25).levelField('l') | count('l')",
            vec!["m count=3i 11"],
        ),
        ("alert().crit(v > 99) | count('v')", vec![]),
        ("distinct('v') | count('distinct')", vec!["m count=3i 11"]),
    ] {
        assert_eq!(
            run(&format!("{window} | {nodes}"), lines).await,
            expected,
            "{nodes}"
        );
    }
}

#[tokio::test]
async fn points_are_grouped_by_all_tags_but_some_and_by_their_measurement() {
    let lines =
        "a,x=1,y=1 v=1i 1\na,x=1,y=2 v=2i 2\nb,x=1 v=4i 3\na,x=1,y=1 v=8i 11\nb,x=1 v=8i 12\n";
    let sums = |by: &str| format!("stream | from() | {by} | window(10s) | sum('v')");
    let logged = run(&sums("groupBy(*)"), lines).await;
    assert!(logged.contains(&"a,x=1,y=2 sum=2i 10".into()), "{logged:?}");
    let logged = run(&sums("groupBy(*).exclude('y').byMeasurement()"), lines).await;
    assert_eq!(logged[..2], ["a,x=1 sum=3i 10", "b,x=1 sum=4i 10"]);
    let text =
        "var by = 'x' stream | from().groupBy(by).groupByMeasurement() | window(10s) | sum('v')";
    assert_eq!(run(text, lines).await, logged);
}

#[tokio::test]
async fn a_join_of_three_has_a_name_a_delimiter_and_values_for_what_is_missing() {
    let joined = |properties: &str| {
        format!(
            "var a = stream | from('a') var b = stream | from('b') var c = stream | from('c')
             a | join(b, c).as('a', 'b', 'c').streamName('all').delimiter('#'){properties}"
        )
    };
    let lines = "a v=1i 1\nb v=2i 1\nc v=3i 1\na v=4i 2\nc v=5i 2\na v=6i 3\nb v=7i 3\nc v=8i 3\n";
    let all = ["all a#v=1i,b#v=2i,c#v=3i 1", "all a#v=6i,b#v=7i,c#v=8i 3"];
    assert_eq!(run(&joined(""), lines).await, all);
    let null = run(&joined(".fill('null')"), lines).await;
    assert_eq!(null[1], "all a#v=4i,c#v=5i 2");
    let zero = run(&joined(".fill(0)"), lines).await;
    assert_eq!(zero[1], "all a#v=4i,b#v=0i,c#v=5i 2");
}

#[tokio::test]
async fn join_on_gives_each_group_the_point_of_the_tags_that_it_shares() {
    let text = "var total = stream | from('total') | groupBy('dc')
                var part = stream | from('part') | groupBy('dc', 'host')
                part | join(total).as('part', 'total').on('dc')
                     | eval(lambda: \"part.v\" / \"total.v\").as('share')";
    let mut lines = String::new();
    for at in 1..4 {
        lines += &format!(
            "part,dc=x,host=a v=1.0 {at}\npart,dc=x,host=b v=3.0 {at}\ntotal,dc=x v=4.0 {at}\n"
        );
    }
    let mut logged = run(text, &lines).await;
    logged.sort();
    assert_eq!(logged.len(), 6, "{logged:?}");
    assert_eq!(logged[0], "part,dc=x,host=a share=0.25 1");
    assert_eq!(logged[5], "part,dc=x,host=b share=0.75 3");
}

#[tokio::test]
async fn a_union_is_in_the_order_of_time() {
    let text = "var a = stream | from('a') var b = stream | from('b')
                a | union(b).rename('both')";
    let logged = run(
        text,
        "a v=1i 1\na v=3i 3\na v=5i 5\nb v=2i 2\nb v=4i 4\nb v=6i 6\n",
    )
    .await;
    let values: Vec<_> = (1..7).map(|at| format!("both v={at}i {at}")).collect();
    assert_eq!(logged, values);
}

#[tokio::test]
async fn derivatives_are_per_unit_and_may_leave_out_what_falls() {
    let lines = "m v=1i 1\nm v=5i 3\nm v=2i 4\nm v=3i 4\nm v=4i 5\n";
    let logged = run("stream | from('m') | derivative('v')", lines).await;
    assert_eq!(logged, ["m v=2.0 3", "m v=-3.0 4", "m v=1.0 5"]);
    let text = "stream | from('m') | derivative('v').unit(10s).nonNegative().as('d')";
    let logged = run(text, lines).await;
    assert_eq!(logged, ["m v=5i,d=20.0 3", "m v=4i,d=10.0 5"]);
}

#[tokio::test]
async fn conditions_know_patterns_functions_and_the_time() {
    let lines = "m,h=eu-1 v=1i 1\nm,h=us-1 v=2i 2\nm v=3i,w=1i 3600\n";
    for (condition, times) in [
        ("\"h\" =~ /^eu/", vec![1]),
        ("\"h\" !~ /^eu/", vec![2]),
        ("isPresent(\"w\")", vec![3600]),
        ("!isPresent(\"h\")", vec![3600]),
        ("\"time\" > 1500ms", vec![2, 3600]),
        ("hour(\"time\") == 1", vec![3600]),
        ("if(\"v\" > 1, TRUE, FALSE)", vec![2, 3600]),
        ("strHasPrefix(\"h\", 'us')", vec![2]),
        ("strContainsAny(\"h\", 'xyze')", vec![1]),
        ("strIndexAny(\"h\", 's-') == 1", vec![2]),
        ("strLastIndex(\"h\", '-') == 2", vec![1, 2]),
        ("strLastIndexAny(\"h\", 'ux') == 1", vec![1]),
        ("strTrim(\"h\", 'e1') == 'u-'", vec![1]),
        ("strTrimLeft(\"h\", 'ue') == '-1'", vec![1]),
        ("strTrimRight(\"h\", '-1') == 'us'", vec![2]),
        ("mod(float(\"v\"), 2.0) == 1.0", vec![1, 3600]),
        ("hypot(\"v\", 4) == 5.0", vec![3600]),
        ("cbrt(\"v\" * 8) == 2.0", vec![1]),
        ("abs(sin(\"v\") - 0.8414709848) < 0.000001", vec![1]),
        ("regexReplace(/-.*/, \"h\", '') == 'eu'", vec![1]),
        ("float(\"v\") / 2.0 == 1.0", vec![2]),
        ("unixNano(now()) > \"time\"", vec![1, 2, 3600]),
    ] {
        let logged = run(
            &format!("stream | from('m') | where(lambda: {condition})"),
            lines,
        )
        .await;
        let found: Vec<i64> = logged
            .iter()
            .map(|l| l.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(found, times, "{condition}");
    }
}

#[tokio::test]
async fn alerts_tell_every_point_that_is_worth_it_and_the_recovery() {
    let lines = "m,h=a v=5i 1\nm,h=a v=11i 2\nm,h=a v=12i 3\nm,h=a v=1i 4\nm,h=a v=1i 5\n";
    let alert = |more: &str| {
        format!("stream | from('m') | groupBy('h') | alert().crit(v > 10).levelField('l'){more}")
    };
    let levels = |logged: Vec<String>| -> Vec<String> {
        logged
            .iter()
            .map(|line| line.split("l=\"").nth(1).unwrap().to_owned())
            .collect()
    };
    let all = levels(run(&alert(""), lines).await);
    assert_eq!(all, ["CRITICAL\" 2", "CRITICAL\" 3", "OK\" 4"]);
    let changes = levels(run(&alert(".stateChangesOnly()"), lines).await);
    assert_eq!(changes, ["CRITICAL\" 2", "OK\" 4"]);
    let down = levels(run(&alert(".noRecoveries()"), lines).await);
    assert_eq!(down, ["CRITICAL\" 2", "CRITICAL\" 3"]);
    let reset = levels(run(&alert(".critReset(v < 0)"), lines).await);
    assert_eq!(reset.len(), 4, "{reset:?}");
    let text = "stream | from('m') | groupBy('h')
        | alert().warn(v > 10).id('{{ .Name }}/{{ index .Tags \"h\" }}/{{ .Group }}')
              .message('{{ .ID }} {{ .Level }} {{ index .Fields \"v\" }}').messageField('x').idTag('id').durationField('d')";
    let logged = run(text, lines).await;
    assert_eq!(
        logged[1],
        "m,id=m/a/h\\=a,h=a v=12i,x=\"m/a/h=a WARNING 12\",d=1000000000i 3"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_are_logged_to_a_file_where_they_may() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("alerts.log");
    let text = |path: &str| {
        format!("stream | from('m') | alert().crit(v > 10).log('{path}') | http_out('x')")
    };
    let service = Service::with(|options| {
        options.alert_logs = AlertLogs::In(directory.path().to_owned());
    });
    for elsewhere in [
        "/tmp/corsair-elsewhere.log",
        &format!("{}/../x", directory.path().display()),
    ] {
        let added = service
            .engine
            .add("t", &text(elsewhere), TaskOptions::default())
            .await;
        assert!(
            added.unwrap_err().to_string().contains("--alert-logs"),
            "{elsewhere}"
        );
    }
    service.task("t", &text(path.to_str().unwrap())).await;
    service.write("m v=11i 1\nm v=1i 2\n").await;
    service.engine.drain().await;
    let written = std::fs::read_to_string(path).unwrap();
    let alerts: Vec<serde_json::Value> = written
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(alerts.len(), 2, "{written}");
    assert_eq!(alerts[0]["level"], "CRITICAL");
    assert_eq!(alerts[0]["id"], "m:nil");
    assert_eq!(alerts[1]["previousLevel"], "CRITICAL");
    assert_eq!(alerts[0]["data"]["series"][0]["values"][0][1], 11);
}

#[tokio::test]
async fn http_out_shows_the_last_point_with_all_of_its_tags() {
    let service = Service::new();
    service
        .task("t", "stream | from('m') | http_out('x')")
        .await;
    service.write("m,h=a v=1i 1\nm,h=b,k=c v=2i 2\n").await;
    service.engine.settle().await;
    let (_, shown) = service.get("/tasks/t/x").await;
    let series = &shown["series"][0];
    assert_eq!(series["tags"], serde_json::json!({"h": "b", "k": "c"}));
    assert_eq!(series["values"], serde_json::json!([[2 * SECOND, 2]]));
}

// Guarantee: stream-3.
#[tokio::test]
async fn aggregates_of_points_take_those_of_one_time_together() {
    let lines = "m,h=a v=1i 1\nm,h=b v=5i 1\nm,h=a v=3i 2\nm,h=a w=1i 3\nm,h=b v=4i 4\n";
    for (nodes, expected) in [
        ("sum('v')", vec!["m sum=6i 1", "m sum=3i 2"]),
        ("count('v')", vec!["m count=2i 1", "m count=1i 2"]),
        ("max('v')", vec!["m,h=b max=5i 1", "m,h=a max=3i 2"]),
        (
            "groupBy('h') | mean('v')",
            vec!["m,h=a mean=1.0 1", "m,h=a mean=3.0 2", "m,h=b mean=5.0 1"],
        ),
        (
            "distinct('v') | count('distinct')",
            vec!["m count=2i 1", "m count=1i 2"],
        ),
    ] {
        let mut logged = run(&format!("stream | from('m') | {nodes}"), lines).await;
        if nodes.starts_with("groupBy") {
            logged.sort();
        }
        assert_eq!(logged, expected, "{nodes}");
    }
}

// Guarantee: stream-3.
#[tokio::test]
async fn aggregates_of_points_do_not_depend_on_how_the_lines_are_divided_into_writes() {
    let lines: Vec<String> = (0..60)
        .map(|at| format!("m v={at}i {}\n", at / 7))
        .collect();
    let mut all = Vec::new();
    for size in [1, 5, 60] {
        let service = Service::new();
        let text = "stream | from('m') | sum('v') | log()";
        service.task("t", text).await;
        for part in lines.chunks(size) {
            service.write(&part.concat()).await;
        }
        all.push(service.logged().await);
    }
    assert!(
        all[0].len() == 8 && all[0] == all[1] && all[1] == all[2],
        "{all:?}"
    );
}

// Guarantee: stream-3.
#[tokio::test]
async fn groups_of_windows_are_added_up_again() {
    let text = "stream | from('m') | groupBy('h') | window().period(10s).every(10s) | mean('v')
                       | groupBy([]) | sum('mean')";
    let mut lines = String::new();
    for at in (0..40).step_by(2) {
        lines += &format!("m,h=a v=1 {at}\nm,h=b v=2 {at}\n");
    }
    assert_eq!(run(text, &lines).await, ["m sum=3.0 10", "m sum=3.0 20"]);
}

#[tokio::test]
async fn an_alert_of_a_window_may_need_all_of_its_points() {
    let lines = "m v=1i 1\nm v=20i 2\nm v=20i 11\nm v=30i 12\nm v=0i 21\n";
    let window = "stream | from('m') | window().period(10s).every(10s)";
    let alert = "alert().warn(v > 10).crit(v > 25).all().levelField('l') | last('l')";
    let logged = run(&format!("{window} | {alert}"), lines).await;
    assert_eq!(logged, ["m v=30i,last=\"WARNING\" 21"]);
}

#[tokio::test]
async fn any_node_may_be_quiet() {
    let text =
        "stream | from('m').quiet() | where(v > 1).quiet() | eval(v * 2).quiet().as('d').quiet()
                       | window().period(1s).quiet().every(1s) | count('d').quiet()";
    let logged = run(text, "m v=1i 1\nm v=2i 2\nm v=2i 4\n").await;
    assert_eq!(logged, ["m count=1i 3"]);
}

// Guarantee: stream-3.
#[tokio::test]
async fn join_on_fills_in_the_order_of_time_however_lines_are_divided_into_writes() {
    let text = "var rare = stream | from('rare') | groupBy('host')
                stream | from('disk') | groupBy('host', 'path')
                       | join(rare).as('disk', 'rare').on('host').fill(0.0) | log()";
    let mut lines = Vec::new();
    for at in 0..7 {
        if at % 3 == 0 {
            lines.push(format!("rare,host=A v={at} {at}\n"));
        }
        for path in ["/", "/tmp"] {
            lines.push(format!("disk,host=A,path={path} v={at} {at}\n"));
        }
    }
    for size in [1, 4, lines.len()] {
        let service = Service::new();
        service.task("t", text).await;
        for part in lines.chunks(size) {
            service.write(&part.concat()).await;
        }
        let logged = service.logged().await;
        for path in ["path=/ ", "path=/tmp "] {
            let times = logged.iter().filter(|line| line.contains(path));
            let times = times.map(|line| line.rsplit_once(' ').unwrap().1.parse::<i64>().unwrap());
            let expected: Vec<i64> = (0..7).map(|at| at * SECOND).collect();
            assert_eq!(times.collect::<Vec<_>>(), expected, "{size}: {logged:?}");
        }
        let filled = logged.iter().filter(|line| line.contains("rare.v=0"));
        assert_eq!(filled.count(), 10, "{size}: {logged:?}");
    }
}
