//! Nodes that are refused, and the sentences that say why.

use super::bad_programs::refused;

#[test]
fn nodes_that_lack_something_or_have_too_much() {
    let cases = [
        ("where", "expected `(`, found the end of the text []"),
        (
            "where()",
            "expected a key, a number, a string or `(`, found `)` [)]",
        ),
        ("where(a > 1", "expected `)`, found the end of the text []"),
        ("where(a, b)", "expected `)`, found `,` [,]"),
        (
            "groupBy([host",
            "expected `,` or `]`, found the end of the text []",
        ),
        (
            "deadman(1)",
            "expected `,` and an interval, such as `10s`, found `)` [)]",
        ),
        (
            "deadman(1, 10s).crit(a).crit(b)",
            "`crit` is given twice [crit]",
        ),
        (
            "stats()",
            "expected a duration, such as `10s`, found `)` [)]",
        ),
        (
            "window()",
            "`window` needs a period: `window(10s)` or `.period(10s)` [window]",
        ),
        (
            "window().every(1s)",
            "`window` needs a period: `window(10s)` or `.period(10s)` [window]",
        ),
        (
            "window(10)",
            "expected a duration, such as `10s`, found `10` [10]",
        ),
        ("window(1s, 2s)", "`period` is given twice [2s]"),
        (
            "window(1s, every 2s).every(3s)",
            "`every` is given twice [every]",
        ),
        (
            "window(1s) | count()",
            "expected the name of a field or tag, found `)` [)]",
        ),
        ("window(1s) | count(a, b)", "expected `)`, found `,` [,]"),
        (
            "window(1s) | count(true)",
            "`true` is a word of the language: a key of this name is written \"true\" [true]",
        ),
        (
            "window(1s) | count(a).as('b', 'c')",
            "`as` needs a name for each result: 1, not 2 [as]",
        ),
        (
            "window(1s) | percentile(a)",
            "expected `,` and a number from 0 to 100, found `)` [)]",
        ),
        (
            "window(1s) | percentile(a, b)",
            "expected a number, found `b` [b]",
        ),
        (
            "eval(a)",
            "`eval` needs a name for each result: `eval(value * 2).as('double')` [eval]",
        ),
        (
            "eval(a, b).as('c')",
            "`as` needs a name for each result: 2, not 1 [as]",
        ),
        (
            "eval().as()",
            "eval1: it needs at least one expression: `eval(value * 2).as('double')` [eval]",
        ),
        (
            "eval(a).as(b)",
            "expected a string in single quotes, found `b` [b]",
        ),
        (
            "join()",
            "`join` needs the var of another chain: `m1 | join(m2)` [join]",
        ),
        (
            "join(tolerance 1s)",
            "`join` needs the var of another chain: `m1 | join(m2)` [join]",
        ),
        (
            "alert(a > 1)",
            "`alert` takes nothing in parentheses: its conditions follow, as in `.crit(value > 10)` [a]",
        ),
        (
            "alert()",
            "alert1: it needs a condition: `.info(…)`, `.warn(…)` or `.crit(…)` [alert]",
        ),
        (
            "alert().id('a')",
            "alert1: it needs a condition: `.info(…)`, `.warn(…)` or `.crit(…)` [alert]",
        ),
        ("alert().crit(a).crit(b)", "`crit` is given twice [crit]"),
        ("log('a').prefix('b')", "`prefix` is given twice [prefix]"),
        (
            "http_out()",
            "expected a string in single quotes, found `)` [)]",
        ),
        ("http_out", "expected `(`, found the end of the text []"),
    ];
    for (node, expected) in cases {
        refused(&format!("stream | from() | {node}"), expected);
    }
    let three = "var a = stream | from()\na | log() | join(a, a)";
    refused(three, "join2: the name 'a' is there twice [join]");
}

#[test]
fn nodes_that_break_a_rule() {
    let cases = [
        (
            "stats(0s)",
            "stats1: `interval` must be longer than nothing [stats]",
        ),
        (
            "deadman(0, 0s)",
            "stats1: `interval` must be longer than nothing [deadman]",
        ),
        (
            "window(1s) | window(1s)",
            "window2: `window1` already gives windows: a window cannot be put into another [window]",
        ),
        (
            "window(1s) | log() | window(1s)",
            "window3: `log2` already gives windows: a window cannot be put into another [window]",
        ),
        (
            "window().periodCount(0)",
            "window1: `periodCount` must be longer than nothing [window]",
        ),
        (
            "window().periodCount(1000001)",
            "window1: `periodCount` is 1000001, and a window holds at most 1000000 points [window]",
        ),
        (
            "window().period(1s).everyCount(1)",
            "`window` needs either `.period(…)` and `.every(…)`, or `.periodCount(…)` and `.everyCount(…)` [window]",
        ),
        (
            "default()",
            "default1: it needs a field or a tag: `.field('value', 0.0)` or `.tag('host', 'none')` [default]",
        ),
        (
            "eval(a).as('b').tags('c')",
            "eval1: it has no result 'c' [eval]",
        ),
        (
            "alert().crit(a).id('{{ .Nme }}')",
            "alert1: alerts fill no `{{ .Nme }}`: there are .ID, .Name, .TaskName, .Group, .Level, .Time, .Duration, index .Tags \"…\", index .Fields \"…\", printf of these, and if eq or ne … else … end [alert]",
        ),
        (
            "window(0s)",
            "window1: `period` must be longer than nothing [window]",
        ),
        (
            "window(10001s, every 1s)",
            "window1: a point would be in 10001 windows, and at most 10000 overlap: make `every` longer or `period` shorter [window]",
        ),
        (
            "window(1s, every 0s)",
            "window1: `every` must be longer than nothing [window]",
        ),
        (
            "window(1s) | percentile(a, 101)",
            "percentile2: a percentile lies between 0 and 100, and this is 101 [percentile]",
        ),
        (
            "window(1s) | percentile(a, -1)",
            "percentile2: a percentile lies between 0 and 100, and this is -1 [percentile]",
        ),
        (
            "groupBy('a', 'b', 'a')",
            "groupBy1: the name 'a' is there twice [groupBy]",
        ),
        (
            "eval(a, b).as('c', 'c')",
            "eval1: the name 'c' is there twice [eval]",
        ),
        ("eval(a).as('')", "eval1: a name must not be empty [eval]"),
        (
            "http_out('a') | httpOut('a')",
            "http_out2: `http_out1` already has the endpoint 'a': a task's endpoints must differ [httpOut]",
        ),
        (
            "http_out('a/b')",
            "http_out1: the endpoint 'a/b' cannot be part of a URL; use letters, digits, `-`, `_`, `.` and `~` [http_out]",
        ),
        (
            "http_out('..')",
            "http_out1: the endpoint '..' cannot be part of a URL; use letters, digits, `-`, `_`, `.` and `~` [http_out]",
        ),
        (
            "http_post('ftp://a')",
            "http_post1: 'ftp://a' is not a URL to post to; expected 'http://host/path' or 'https://host/path' [http_post]",
        ),
        (
            "stats(1ns)",
            "stats1: `interval` is 1ns, and the shortest is 1ms: make it longer [stats]",
        ),
        (
            "deadman(0.0, 999u)",
            "stats1: `interval` is 999µs, and the shortest is 1ms: make it longer [deadman]",
        ),
        (
            "httpPost()",
            "`http_post` needs a URL or an endpoint: `http_post('http://host/path')`, `http_post().endpoint('name')` [httpPost]",
        ),
        (
            "stateCount(count() > 1)",
            "stateCount1: only `eval` and `where` have count(), sigma() and spread(): compute a field, as in `eval(sigma(value)).as('sigma').keep()`, and use it here [stateCount]",
        ),
        (
            "http_post('/path')",
            "http_post1: '/path' is not a URL to post to; expected 'http://host/path' or 'https://host/path' [http_post]",
        ),
    ];
    for (node, expected) in cases {
        refused(&format!("stream | from() | {node}"), expected);
    }
    let join = "var a = stream | from()\n";
    refused(
        &format!("{join}a | window(1s) | join(a)"),
        "join2: `window1` gives windows, and only points can be joined: join before the `window`, or after an aggregate of it [join]",
    );
    refused(
        &format!("{join}var w = a | window(1s)\na | join(w)"),
        "join2: `window1` gives windows, and only points can be joined: join before the `window`, or after an aggregate of it [join]",
    );
    refused(
        &format!("{join}a | join(a)"),
        "join1: the name 'a' is there twice [join]",
    );
}
