//! Tests that written text is parsed to an equal value.

use super::random::{Typed, any_expression, names};
use corsair_stream::Value;
use corsair_stream::expression::Expression;
use corsair_stream::language::{parse, parse_expression};
use corsair_stream::pipeline::{
    AddedColumn, Aggregate, Alert, Buffer, Chain, Eval, Fill, Join, Pipeline, Stream,
};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;
use std::time::Duration;

/// A node to be put behind one that is there.
#[derive(Clone, Debug)]
enum Step {
    From(Option<String>, Option<String>, Option<String>),
    Where(Expression),
    GroupBy(Vec<String>),
    Window(Duration, Duration),
    Aggregate(Aggregate, String, Option<String>),
    Eval(Vec<(String, Expression)>),
    EvalKeep(Vec<(String, Expression)>),
    Buffer(Buffer),
    Derivative(String),
    Stats(Duration),
    Deadman(f64, Duration, Box<Alert>),
    Union(Index),
    JoinWith(Index, bool),
    Join(Index, [String; 2], Duration),
    Alert(Box<Alert>),
    Log(String),
    HttpOut,
    HttpPost(String),
}

fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (1u64..200).prop_map(Duration::from_secs),
        (1..i64::MAX as u64).prop_map(Duration::from_nanos),
    ]
}

fn distinct_names() -> impl Strategy<Value = Vec<String>> {
    btree_set(names(), 1..4).prop_map(|names| names.into_iter().collect())
}

fn steps() -> impl Strategy<Value = Step> {
    let expression = || any_expression(Typed::ByChance);
    let aggregates = prop_oneof![
        Just(Aggregate::Count),
        Just(Aggregate::Sum),
        Just(Aggregate::Mean),
        Just(Aggregate::Min),
        Just(Aggregate::Max),
        Just(Aggregate::First),
        Just(Aggregate::Stddev),
        (0.0..=100.0).prop_map(Aggregate::Percentile),
    ];
    let alert = (
        option::of(expression()),
        option::of(expression()),
        option::of(names()),
    );
    prop_oneof![
        (
            option::of(names()),
            option::of(names()),
            option::of(names())
        )
            .prop_map(|(database, policy, measurement)| Step::From(
                database,
                policy,
                measurement
            )),
        expression().prop_map(Step::Where),
        distinct_names().prop_map(Step::GroupBy),
        (durations(), durations()).prop_map(|(period, every)| {
            // At most ten thousand windows overlap.
            let least = period / 10_000 + Duration::from_nanos(1);
            Step::Window(period, every.max(least))
        }),
        (aggregates, names(), option::of(names()))
            .prop_map(|(function, field, name)| Step::Aggregate(function, field, name)),
        (distinct_names(), vec(expression(), 3)).prop_map(|(names, expressions)| Step::Eval(
            names.into_iter().zip(expressions).collect()
        )),
        (
            any::<Index>(),
            names(),
            prop_oneof![Just(Duration::ZERO), durations()]
        )
            .prop_map(|(other, name, tolerance)| Step::Join(
                other,
                [name.clone(), name + "'"],
                tolerance
            )),
        (alert, expression(), any::<bool>()).prop_map(|((info, reset, id), crit, changes)| {
            let mut alert = Alert::new().crit(crit);
            alert.levels[0] = info;
            alert.resets[2] = reset;
            // A template has places that are none.
            alert.id = id.filter(|id| !id.contains("{{")).map(Into::into);
            alert.no_recoveries = changes;
            alert = alert
                .add(AddedColumn::LevelTag, "level")
                .add(AddedColumn::PreviousField, "was");
            Step::Alert(Box::new(if changes {
                alert.state_changes_only()
            } else {
                alert
            }))
        }),
        (durations(), any::<[bool; 2]>()).prop_map(|(every, [align, fill_period])| {
            let period = every;
            Step::Buffer(Buffer::Time {
                period,
                every,
                align,
                fill_period,
            })
        }),
        (1u64..100, 1u64..100, any::<bool>()).prop_map(|(period, every, fill_period)| {
            Step::Buffer(Buffer::Count {
                period,
                every,
                fill_period,
            })
        }),
        names().prop_map(Step::Derivative),
        durations().prop_map(Step::Stats),
        (-9.0..1e9, durations(), option::of(expression())).prop_map(|(least, interval, warn)| {
            let mut alert = Alert::new();
            alert.levels[1] = warn;
            alert.all = least > 0.0;
            Step::Deadman(least, interval, Box::new(alert))
        }),
        any::<Index>().prop_map(Step::Union),
        (any::<Index>(), any::<bool>()).prop_map(|(other, null)| Step::JoinWith(other, null)),
        (distinct_names(), vec(expression(), 3)).prop_map(|(names, expressions)| {
            let fields = names.into_iter().zip(expressions);
            Step::EvalKeep(fields.collect())
        }),
        prop_oneof![Just(String::new()), names()].prop_map(Step::Log),
        Just(Step::HttpOut),
        "[a-z]{1,5}".prop_map(|host| Step::HttpPost(format!("http://{host}/x?y=z"))),
    ]
}

/// Puts each step behind one of the chains that take it.
fn draw<'p>(stream: Stream<'p>, steps: Vec<(Step, Index, bool)>) {
    let (mut points, mut windows): (Vec<Chain<'p>>, Vec<Chain<'p>>) =
        (vec![*stream.from()], Vec::new());
    for (place, (step, behind, latest)) in steps.into_iter().enumerate() {
        // The latest makes long chains, others make it branch.
        let pick = |chains: &[Chain<'p>]| match latest {
            true => chains.last().copied(),
            false => (!chains.is_empty()).then(|| *behind.get(chains)),
        };
        let point = pick(&points).expect("at least one");
        let window = pick(&windows);
        let either = match window.filter(|_| place % 2 == 1) {
            None => (point, false),
            Some(window) => (window, true),
        };
        let (chain, gives_windows) = match step {
            Step::From(database, policy, measurement) => {
                let mut from = stream.from();
                if let Some(name) = database {
                    from = from.database(name);
                }
                if let Some(name) = policy {
                    from = from.retention_policy(name);
                }
                if let Some(name) = measurement {
                    from = from.measurement(name);
                }
                (*from, false)
            }
            Step::Where(expression) => (point.filter(expression), false),
            Step::GroupBy(tags) => (point.group_by(tags), false),
            Step::Window(period, every) => (point.window(period, every), true),
            Step::Aggregate(function, field, name) => {
                let name = name.unwrap_or_else(|| function.name().into());
                (either.0.aggregate(function, field, name), false)
            }
            Step::Eval(fields) => (point.eval(fields), false),
            Step::EvalKeep(fields) => {
                let mut eval = Eval::new(fields).keep();
                eval.tags = vec![eval.fields[0].0.clone()];
                (point.eval_with(eval), false)
            }
            Step::Buffer(buffer) => (point.buffer(buffer), true),
            Step::Derivative(field) => (point.derivative(field), false),
            Step::Stats(interval) => (either.0.stats(interval), false),
            Step::Deadman(least, interval, alert) => {
                (either.0.deadman(least, interval, *alert), false)
            }
            Step::Union(other) => {
                let other = points[other.index(points.len())];
                (point.union([other, point]), false)
            }
            Step::JoinWith(other, null) => {
                let other = points[other.index(points.len())];
                let mut join = Join::new(["a", "b", "c"], Duration::ZERO);
                join.on = vec!["x".into(), "y".into()];
                join.delimiter = "#".into();
                join.stream_name = Some("joined".into());
                join.fill = match null {
                    true => Fill::Null,
                    false => Fill::Value(Value::Float(1.5)),
                };
                (point.join_with([other, point], join), false)
            }
            Step::Join(other, prefixes, tolerance) => {
                let other = points[other.index(points.len())];
                (point.join(other, prefixes, tolerance), false)
            }
            Step::Alert(alert) => (point.alert(*alert), false),
            Step::Log(prefix) => (either.0.log(prefix), either.1),
            Step::HttpOut => (either.0.http_out(format!("out-{place}")), either.1),
            Step::HttpPost(url) => (either.0.http_post(url), either.1),
        };
        match gives_windows {
            true => windows.push(chain),
            false => points.push(chain),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn an_expression_is_read_as_it_was_written(expression in any_expression(Typed::ByChance)) {
        let text = expression.to_string();
        let read = parse_expression(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(read, expression, "{}", text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_pipeline_is_read_as_it_was_written(
        steps in vec((steps(), any::<Index>(), any::<bool>()), 0..20),
    ) {
        let pipeline = Pipeline::build(|stream| draw(stream, steps)).expect("it heeds all rules");
        let text = pipeline.to_string();
        let read = parse(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&read, &pipeline, "{}", text);
        prop_assert_eq!(read.to_string(), text);
    }
}

/// Pieces of programs, that have a chance to mean something together.
const PIECES: &[&str] = &[
    "stream",
    "|",
    ".",
    "from",
    "(",
    ")",
    "()",
    ",",
    "'m'",
    "\"v\"",
    "v",
    "10",
    "10s",
    "1.5",
    "-",
    "where",
    "(v > 1)",
    "groupBy",
    "window",
    "(10s)",
    "every",
    "count",
    "deadman(1.0, 10s)",
    ".quiet()",
    "(v)",
    "percentile",
    "eval",
    ".as('x')",
    "join",
    "alert",
    ".crit(v > 1)",
    "log",
    "http_out",
    "var",
    "x",
    "=",
    "AND",
    "OR",
    "NOT",
    "!",
    "lambda:",
    "TRUE",
    "unsigned(",
    "'",
    "\"",
    "\\",
    "//",
    "#",
    "\n",
    "\t",
    "é",
    "∞",
    "| from()",
    "| window(1s)",
    "| count(v)",
    "stream | from()",
    "var x = stream | from()\n",
    "x |",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        if let Err(error) = parse(&text) {
            prop_assert!(error.to_string().contains("--> line"));
        }
        let _ = parse_expression(&text);
    }

    #[test]
    fn any_pieces_are_read_or_refused(pieces in vec(proptest::sample::select(PIECES), 0..30), spaced: bool) {
        let text = pieces.join(if spaced { " " } else { "" });
        match parse(&text) {
            Ok(pipeline) => prop_assert_eq!(parse(&pipeline.to_string()), Ok(pipeline)),
            Err(error) => prop_assert!(error.to_string().contains("--> line")),
        }
        if let Ok(expression) = parse_expression(&text) {
            prop_assert_eq!(parse_expression(&expression.to_string()), Ok(expression));
        }
    }
}
