//! Programs that are refused, and the sentences that say why.

use corsair_stream::language::Problem;
use corsair_stream::language::parse;
use corsair_stream::pipeline::PipelineError;

/// The sentence, what of the line is marked, and what is meant instead, if anything like it is known.
pub fn refused(program: &str, expected: &str) {
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
            "stream | from() | trickle()",
            "`trickle` of kapacitor is not here: windows do not become single points again; aggregate them, or leave out the `window` [trickle]",
        ),
        (
            "stream | from() | barrier()",
            "`barrier` needs an interval: `barrier().idle(10s)` or `barrier().period(10s)` [barrier]",
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
            "var a = (10)",
            "expected a chain, which begins with `stream` or the name of a var, found `(` [(]",
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
        ("a ~ b", "the character `~` has no meaning here [~]"),
        (
            "a =~ 'b'",
            "expected a regular expression, such as `/^eu-/`, found `'b'` ['b']",
        ),
        ("a =~ /b", "the closing / is missing [/]"),
        (
            "a =~ /(/",
            "this is not a regular expression: unclosed group [/(/]",
        ),
        (
            "abz(a)",
            "there is no function `abz` [abz] did you mean `abs`?",
        ),
        ("pow(a)", "`pow` takes 2 arguments, not 1 [pow]"),
        ("count(a)", "`count` takes 0 arguments, not 1 [count]"),
        (
            "a > rand()",
            "`rand()` of kapacitor is not here: the same points have the same results; write a random field with the points [rand]",
        ),
        (
            "gamma(a) > 1",
            "`gamma()` of kapacitor is not here: special functions are missing; compute them where the points are written [gamma]",
        ),
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

#[test]
fn functions_of_ones_own_batches_and_dbrp_are_named_with_what_to_do() {
    for (text, named, hint) in [
        (
            "stream | from() @udf().field('v') | log()",
            "@udf()",
            "http_post",
        ),
        ("batch | query('SELECT 1') | log()", "batch", "/write"),
        (
            "dbrp \"telegraf\".\"autogen\"\nstream | from() | log()",
            "dbrp",
            "retentionPolicy",
        ),
    ] {
        let error = corsair_stream::language::parse(text)
            .unwrap_err()
            .to_string();
        let expected = format!("`{named}` of kapacitor is not here: ");
        assert!(
            error.starts_with(&expected) && error.contains(hint),
            "{error}"
        );
    }
}

#[test]
fn a_microsecond_may_be_written_with_either_letter_mu() {
    let windows = ["10u", "10\u{b5}", "10\u{3bc}"].map(|every| {
        let text = format!("stream | from() | window({every}) | count(v) | log()");
        corsair_stream::language::parse(&text).unwrap()
    });
    assert_eq!(windows[0], windows[1]);
    assert_eq!(windows[0], windows[2]);
    let error = corsair_stream::language::parse("stream | from() | window(10\u{b5}s)");
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("the units are ns, u, ms")
    );
}
