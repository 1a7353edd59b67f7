//! Programs that are refused, and the sentences that say why.

use corsair_stream::language::Problem;
use corsair_stream::language::parse;
use corsair_stream::pipeline::PipelineError;

/// The sentence, what of the line is marked, and what is meant instead, if anything like it is known.
fn refused(program: &str, expected: &str) {
    let error = match parse(program) {
        Ok(pipeline) => panic!("{program}\nis read as\n{pipeline}"),
        Err(error) => error.to_string(),
    };
    let lines: Vec<&str> = error.lines().collect();
    let (line, carets) = (lines[3], lines[4]);
    let from = carets.chars().position(|c| c == '^').expect("a mark");
    let marked: String = line
        .chars()
        .skip(from)
        .zip(carets.chars().skip(from))
        .map(|(c, _)| c)
        .collect();
    let mut found = format!("{} [{marked}]", lines[0]);
    if let Some(help) = lines.get(5) {
        found += &help.replace("  =", "");
    }
    assert_eq!(found, expected, "{program}");
}

#[test]
fn an_error_shows_its_place() {
    let error = parse("stream\n\t| from('m1')\n\t| windw(10s, every 10s)").expect_err("a slip");
    let expected = "\
there is no node `windw`
 --> line 3, column 4
  |
3 | \t| windw(10s, every 10s)
  | \t  ^^^^^
  = did you mean `window`?";
    assert_eq!(error.to_string(), expected);
    assert_eq!((error.line(), error.column()), (3, 4));
}

#[test]
fn the_margin_is_as_wide_as_the_number_of_the_line() {
    let text = "\n".repeat(99) + "stream | from(";
    let expected = "\
expected a string in single quotes, found the end of the text
   --> line 100, column 15
    |
100 | stream | from(
    |               ^";
    assert_eq!(
        parse(&text).expect_err("it ends early").to_string(),
        expected
    );
}

#[test]
fn a_terminal_is_not_told_to_do_anything() {
    let text = "stream | from('\u{1b}[2J') | nothing() // \u{1b}[2J\r\n| log()";
    let shown = parse(text).expect_err("no such node").to_string();
    assert!(!shown.contains(['\u{1b}', '\r']), "{shown:?}");
}

#[test]
fn the_kind_of_problem_can_be_asked_for() {
    let error = parse("# nothing").expect_err("there is nothing");
    assert_eq!(error.problem(), &Problem::Pipeline(PipelineError::Empty));
}

#[test]
fn text_that_is_no_program() {
    let cases = [
        (
            "",
            "there is no `from`: a pipeline begins with `stream | from()` []",
        ),
        ("stream", "`stream` must be followed by `| from()` [stream]"),
        (
            "stream | where(a)",
            "`stream` must be followed by `| from()` [stream]",
        ),
        (
            "stream from()",
            "`stream` must be followed by `| from()` [stream]",
        ),
        (
            "| from()",
            "expected a chain, which begins with `stream` or the name of a var, found `|` [|]",
        ),
        (
            "stream | from() |",
            "expected a node, such as `window`, found the end of the text []",
        ),
        (
            "stream | from() | 'log'",
            "expected a node, such as `window`, found `'log'` ['log']",
        ),
        (
            "stream | from().",
            "expected a property, such as `as`, found the end of the text []",
        ),
        (
            "stream | from() @",
            "the character `@` has no meaning here [@]",
        ),
        ("stream | from('m1", "the closing ' is missing [']"),
        (
            "stream | from() | where(\"a > 1)",
            "the closing \" is missing [\"]",
        ),
        (
            "stream | from(\"m1\")",
            "expected a string in single quotes, found `\"m1\"` [\"m1\"]",
        ),
        (
            "stream | from('a', 'b')",
            "`from` takes one measurement ['b']",
        ),
        (
            "stream | from() | log() | from()",
            "`from` stands only at the beginning of a chain: `stream | from()` [from]",
        ),
        (
            "strem | from()",
            "there is no var `strem` [strem] did you mean `stream`?",
        ),
    ];
    for (program, expected) in cases {
        refused(program, expected);
    }
}

#[test]
fn names_that_are_unknown() {
    let cases = [
        (
            "stream | from() | whree(a)",
            "there is no node `whree` [whree] did you mean `where`?",
        ),
        (
            "stream | from() | groupby('a')",
            "there is no node `groupby` [groupby] did you mean `groupBy`?",
        ),
        (
            "stream | from() | HTTP_OUT('a')",
            "there is no node `HTTP_OUT` [HTTP_OUT] did you mean `http_out`?",
        ),
        (
            "stream | from() | derivative('a')",
            "there is no node `derivative` [derivative]",
        ),
        (
            "stream | from() | measurement('a')",
            "`measurement` is a property of `from`: it follows a `.`, not a `|` [measurement]",
        ),
        (
            "stream | from() | window(1s) | period(1s)",
            "`period` is a property of `window`: it follows a `.`, not a `|` [period]",
        ),
        (
            "stream | from().mesurement('a')",
            "`from` has no property `mesurement`, and there is no node of this name [mesurement] did you mean `measurement`?",
        ),
        (
            "stream.from().windows(1s)",
            "`from` has no property `windows`, and there is no node of this name [windows] did you mean `window`?",
        ),
        (
            "stream | from() | alert().critical(a)",
            "`alert` has no property `critical`, and there is no node of this name [critical]",
        ),
        (
            "stream | from() | where(a).as('b')",
            "`where` has no property `as`, and there is no node of this name [as]",
        ),
        (
            "stream | from() | where(a).measurement('b')",
            "`where` has no property `measurement`, and there is no node of this name [measurement]",
        ),
    ];
    for (program, expected) in cases {
        refused(program, expected);
    }
}

#[test]
fn vars_that_are_wrong() {
    let cases = [
        (
            "var a = stream | from()",
            "the var `a` is never used: use it, or leave out `var a =` [a]",
        ),
        (
            "var a = stream | from()\nvar b = a | log()",
            "the var `b` is never used: use it, or leave out `var b =` [b]",
        ),
        (
            "var a = stream | from()\nvar a = a | log()",
            "there already is a var `a` [a]",
        ),
        (
            "var a = stream | from()\na",
            "`a` alone does nothing: a node should follow, as in `a | log()` [a]",
        ),
        (
            "var a stream | from()",
            "expected `=`, found `stream` [stream]",
        ),
        (
            "var a = 10",
            "expected a chain, which begins with `stream` or the name of a var, found `10` [10]",
        ),
        ("var = stream | from()", "expected a name, found `=` [=]"),
        (
            "var stream = stream | from()",
            "a var cannot be called `stream`: it is a word of the language [stream]",
        ),
        (
            "var TRUE = stream | from()",
            "a var cannot be called `TRUE`: it is a word of the language [TRUE]",
        ),
        (
            "var cpu1 = stream | from()\ncpu2 | log()",
            "there is no var `cpu2` [cpu2] did you mean `cpu1`?",
        ),
        (
            "a | log()\nvar a = stream | from()",
            "there is no var `a` [a]",
        ),
        ("stream | from() | join(m2)", "there is no var `m2` [m2]"),
    ];
    for (program, expected) in cases {
        refused(program, expected);
    }
}

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
            "groupBy()",
            "groupBy1: it needs at least one tag: `groupBy('host')` [groupBy]",
        ),
        (
            "groupBy(*)",
            "expected the name of a field or tag, found `*` [*]",
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
        ("http_post", "expected `(`, found the end of the text []"),
    ];
    for (node, expected) in cases {
        refused(&format!("stream | from() | {node}"), expected);
    }
    let three = "var a = stream | from()\na | log() | join(a, a)";
    refused(
        three,
        "`join` takes one other chain: join more by joining again [a]",
    );
}

#[test]
fn nodes_that_break_a_rule() {
    let cases = [
        (
            "count(a)",
            "count1: it needs windows, and `from0` gives points: put a `window` between them [count]",
        ),
        (
            "window(1s) | count(a) | sum(a)",
            "sum3: it needs windows, and `count2` gives points: put a `window` between them [sum]",
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
            "window(1s) | where(a > 1)",
            "where2: it needs points, and `window1` gives windows: put it before the `window`, or after an aggregate of it [where]",
        ),
        (
            "window(1s) | groupBy('a')",
            "groupBy2: it needs points, and `window1` gives windows: put it before the `window`, or after an aggregate of it [groupBy]",
        ),
        (
            "window(1s) | eval(a).as('b')",
            "eval2: it needs points, and `window1` gives windows: put it before the `window`, or after an aggregate of it [eval]",
        ),
        (
            "window(1s) | alert().crit(a)",
            "alert2: it needs points, and `window1` gives windows: put it before the `window`, or after an aggregate of it [alert]",
        ),
        (
            "window(0s)",
            "window1: `period` must be longer than nothing [window]",
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
            "http_out1: the endpoint 'a/b' is no part of a URL: use letters, digits, `-`, `_`, `.` and `~` [http_out]",
        ),
        (
            "http_out('..')",
            "http_out1: the endpoint '..' is no part of a URL: use letters, digits, `-`, `_`, `.` and `~` [http_out]",
        ),
        (
            "http_post('ftp://a')",
            "http_post1: 'ftp://a' is no URL to post to: it must be like 'http://host/path' or 'https://host/path' [http_post]",
        ),
        (
            "http_post('/path')",
            "http_post1: '/path' is no URL to post to: it must be like 'http://host/path' or 'https://host/path' [http_post]",
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

#[test]
fn expressions_that_are_none() {
    let cases = [
        (
            "a >",
            "expected a key, a number, a string or `(`, found `)` [)]",
        ),
        ("a b", "expected `)`, found `b` [b]"),
        ("(a", "expected `)`, found the end of the text []"),
        (
            "a < b < c",
            "comparisons cannot be chained: write `a < b AND b < c`, or use parentheses [<]",
        ),
        (
            "a = NOT b",
            "`NOT` must stand in parentheses here: `(NOT …)` [NOT]",
        ),
        (
            "a AND AND b",
            "`AND` is a word of the language: a key of this name is written \"AND\" [AND]",
        ),
        ("a =~ /b/", "the character `~` has no meaning here [~]"),
        (
            "a > 10x",
            "`10x` is neither a number nor a duration; the units are ns, u, ms, s, m, h, d and w [10x]",
        ),
        (
            "a > 1.5s",
            "`1.5s` is neither a number nor a duration; the units are ns, u, ms, s, m, h, d and w [1.5s]",
        ),
        (
            "a > 18446744073709551616",
            "`18446744073709551616` does not fit into 64 bits [18446744073709551616]",
        ),
        (
            "a > -9223372036854775809",
            "`9223372036854775809` does not fit into 64 bits [9223372036854775809]",
        ),
        ("a > 1e999", "`1e999` is larger than any float [1e999]"),
        (
            "a > 99999999999w",
            "`99999999999w` does not fit into 64 bits [99999999999w]",
        ),
        ("unsigned(-1)", "expected a whole number, found `-` [-]"),
        ("a.'b'", "expected `)`, found `.` [.]"),
    ];
    for (expression, expected) in cases {
        refused(&format!("stream | from() | where({expression})"), expected);
    }
}
