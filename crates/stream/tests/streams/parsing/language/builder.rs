//! Tests of the errors of pipelines that Rust can build and no text can describe.

use corsair_stream::expression::{Expression, key};
use corsair_stream::pipeline::{Pipeline, PipelineError, Rule, Stream};
use std::time::Duration;

fn refused(draw: impl for<'p> FnOnce(Stream<'p>)) -> String {
    Pipeline::build(draw)
        .expect_err("it breaks a rule")
        .to_string()
}

#[test]
fn a_pipeline_needs_a_beginning() {
    assert_eq!(Pipeline::build(|_| {}), Err(PipelineError::Empty));
}

#[test]
fn an_error_tells_the_node() {
    let error = Pipeline::build(|stream| {
        let second = Duration::from_secs(1);
        let window = stream.from().window(second, second);
        window.window(second, second);
    });
    let expected = PipelineError::Node {
        node: "window2".into(),
        place: 2,
        rule: Rule::WindowOfWindows {
            input: "window1".into(),
        },
    };
    assert_eq!(error, Err(expected));
}

#[test]
fn durations_fit_64_bits_of_nanoseconds() {
    let long = Duration::from_secs(u64::MAX);
    let text = refused(|stream| {
        stream.from().window(long, Duration::from_secs(1));
    });
    assert!(
        text.starts_with("window1: `period` is 18446744073709551615s, and"),
        "{text}"
    );
    let text = refused(|stream| {
        let from = stream.from();
        from.join(from, ["a", "b"], long);
    });
    assert!(text.starts_with("join1: `tolerance` is"), "{text}");
}

#[test]
fn numbers_in_expressions_are_finite() {
    for number in [f64::NAN, f64::INFINITY] {
        let text = refused(|stream| {
            stream.from().filter(key("a").gt(number));
        });
        assert_eq!(text, "where1: a number in an expression must be finite");
    }
}

#[test]
fn expressions_are_not_too_deep() {
    let deep = |operators: usize| (0..operators).fold(key("a"), |inner, _| !inner);
    let allowed = Expression::MAX_DEPTH;
    let pipeline = Pipeline::build(|stream| {
        stream.from().filter(deep(allowed));
    });
    assert!(pipeline.is_ok());
    for operators in [allowed + 1, 1_000_000] {
        let text = refused(|stream| {
            stream
                .from()
                .filter(deep(operators))
                .eval([("x", deep(operators))]);
        });
        assert_eq!(
            text,
            "where1: operators are nested more than 25 deep, or more than 500 follow one another"
        );
    }
}

#[test]
fn percentiles_are_percentages() {
    for percent in [-0.1, 100.1, f64::NAN] {
        let text = refused(|stream| {
            let second = Duration::from_secs(1);
            stream
                .from()
                .window(second, second)
                .percentile("v", percent);
        });
        let expected = "percentile2: a percentile lies between 0 and 100, and this is";
        assert!(text.starts_with(expected), "{text}");
    }
}

#[test]
fn eval_of_nothing_does_nothing() {
    let text = refused(|stream| {
        stream.from().eval(Vec::<(&str, Expression)>::new());
    });
    assert!(
        text.starts_with("eval1: it needs at least one expression"),
        "{text}"
    );
}
