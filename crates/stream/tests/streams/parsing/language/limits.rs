//! Programs that are too deep, or very long.

use super::blocks::{all, block, cells};
use corsair_stream::block::Data;
use corsair_stream::expression::{Expression, key};
use corsair_stream::language::{Problem, parse, parse_expression};
use proptest::collection::vec;
use proptest::prelude::*;

/// The stack of a thread that serves requests, on which tasks are parsed.
const LARGE_STACK: usize = 2 << 20;

/// The stack of an actor with its own thread, on which expressions are evaluated.
const SMALL_STACK: usize = 256 << 10;

fn on_a_stack_of<T: Send + 'static>(size: usize, body: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(size).spawn(body);
    thread.expect("a thread").join().expect("it has no failure")
}

#[test]
fn nesting_without_end_is_refused() {
    on_a_stack_of(LARGE_STACK, || {
        let many = 100_000;
        for (name, text) in [
            ("parentheses", "(".repeat(many) + "a" + &")".repeat(many)),
            ("open parentheses", "(".repeat(many)),
            ("signs", "-".repeat(many) + "a"),
            ("negations", "!".repeat(many) + "a"),
            ("words", "NOT ".repeat(many) + "a"),
            ("sums", "a + ".repeat(many) + "a"),
            ("alternatives", "a = 1 OR ".repeat(many) + "a = 1"),
            ("everything", "NOT (a OR a AND a = 1 + 2 * -(".repeat(many)),
        ] {
            let error = parse_expression(&text).expect_err(name);
            assert_eq!(error.problem(), &Problem::Deep, "{name}");
            let program = format!("stream | from() | where({text})");
            assert_eq!(
                parse(&program).expect_err(name).problem(),
                &Problem::Deep,
                "{name}"
            );
        }
    });
}

#[test]
fn the_deepest_expressions_fit_a_small_stack() {
    let (deep, long) = (Expression::MAX_DEPTH, Expression::MAX_CHAIN);
    let read = move || {
        let texts = [
            "-".repeat(deep) + "a",
            "a + ".repeat(long) + "a",
            "a + (".repeat(deep) + "a" + &")".repeat(deep),
            "a > 0 AND ".repeat(long - 1) + "a > 0",
            "(1 < 2) AND (".repeat(deep - 1) + "a > 0" + &")".repeat(deep - 1),
            "NOT (a > 0 AND a > 0 OR ".repeat(deep / 3) + "a > 0" + &")".repeat(deep / 3),
            "(".repeat(deep) + "a" + &" * 2 + 1)".repeat(deep),
        ];
        texts.map(|text| {
            let expression = parse_expression(&text).expect("it is not too deep");
            let again = parse_expression(&expression.to_string()).expect("it is not too deep");
            assert_eq!(again, expression);
            expression
        })
    };
    let expressions = on_a_stack_of(LARGE_STACK, read);
    on_a_stack_of(SMALL_STACK, || {
        for expression in expressions {
            let block = block(1, vec![("a", Data::Integer(cells(&[1])))]);
            let result = expression.column(&block, &all(&block));
            assert!(result.is_ok(), "{result:?}");
        }
    });
}

#[test]
fn megabytes_are_read() {
    let mut text = String::from("var m = stream | from('m')\n");
    for number in 0..40_000 {
        text += &format!("m | where(value > {number} AND host = 'a') | log('{number}') // ok\n");
    }
    assert!(text.len() > 2_000_000);
    let pipeline = parse(&text).expect("a long program");
    assert_eq!(pipeline.nodes().len(), 80_001);
    let text = text + "m | lgo()";
    let error = parse(&text).expect_err("the last line is wrong");
    assert_eq!((error.line(), error.column()), (40_002, 5));
}

#[test]
fn an_error_shows_little_of_a_long_line() {
    let text = "stream | from()".to_owned()
        + &" | log()".repeat(100_000)
        + " | lgo()"
        + &" | log()".repeat(100_000);
    let shown = parse(&text).expect_err("a node is wrong").to_string();
    assert!(shown.len() < 600, "{shown}");
    assert!(shown.contains("line 1, column 800019"), "{shown}");
}

/// An operator around an expression.
type Around = fn(Expression) -> Expression;

const AROUND: [Around; 9] = [
    |inner| inner + 1,
    |inner| Expression::from(1) - inner,
    |inner| inner * 2,
    |inner| Expression::from(2) / inner,
    |inner| inner.and(true),
    |inner| Expression::from(true).or(inner),
    |inner| inner.lt(1),
    |inner| -inner,
    |inner| !inner,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_is_not_too_deep_is_read_again_and_what_is_too_deep_is_not(
        operators in vec((0..AROUND.len(), 1usize..60), 1..12),
        number: bool,
    ) {
        let first = if number { Expression::from(5) } else { key("a") };
        let around = operators.into_iter().flat_map(|(which, times)| vec![AROUND[which]; times]);
        let expression = around.fold(first, |inner, around| around(inner));
        match parse_expression(&expression.to_string()) {
            Ok(read) => {
                prop_assert!(!expression.is_too_deep());
                prop_assert_eq!(read, expression);
            }
            Err(error) => {
                prop_assert!(expression.is_too_deep(), "{}", error);
                prop_assert_eq!(error.problem(), &Problem::Deep);
            }
        }
    }
}
