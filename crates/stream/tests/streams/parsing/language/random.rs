//! Random blocks and expressions.

use super::blocks::{block, sparse, tag};
use corsair_stream::Value;
use corsair_stream::batch::Rows;
use corsair_stream::block::{Block, Cells, Data};
use corsair_stream::expression::{Binary, Expression, Function, Pattern, Unary};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use std::sync::Arc;

/// Whether operands go together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Typed {
    /// Nearly always, over the columns of [`blocks`].
    Mostly,
    /// By chance, over keys of any name.
    ByChance,
}

/// Few numbers, so that they meet, and those at which something happens.
fn integers() -> impl Strategy<Value = i64> + Clone {
    prop_oneof![
        8 => -3i64..4,
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(1 << 53), Just((1 << 53) + 1)],
    ]
}

fn unsigned() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![
        8 => 0u64..4,
        1 => prop_oneof![Just(u64::MAX), Just(1 << 63), Just(i64::MAX as u64)],
    ]
}

fn floats() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![
        8 => (-6i32..7).prop_map(|half| f64::from(half) / 2.0),
        1 => any::<f64>().prop_filter("finite", |number| number.is_finite()),
    ]
}

fn words() -> impl Strategy<Value = String> + Clone {
    "[ab]{1,2}"
}

fn any_value() -> impl Strategy<Value = Value> + Clone {
    prop_oneof![
        floats().prop_map(Value::Float),
        integers().prop_map(Value::Integer),
        unsigned().prop_map(Value::Unsigned),
        words().prop_map(|word| Value::Text(word.into())),
        any::<bool>().prop_map(Value::Boolean),
    ]
}

/// Cells of which none, some, or all are missing.
fn cells<T: Clone + Default + std::fmt::Debug>(
    values: impl Strategy<Value = T> + Clone + 'static,
    rows: usize,
) -> impl Strategy<Value = Cells<T>> {
    let full = vec(values.clone(), rows).prop_map(|values| Cells {
        values,
        present: None,
    });
    let some = vec(option::of(values), rows).prop_map(|values| sparse(&values));
    let none = Just(sparse(&vec![None; rows]));
    prop_oneof![4 => full, 4 => some, 1 => none]
}

/// Blocks of up to 40 rows with a column of every type, named by it. `s` is a tag and a field,
/// `absent` no column.
pub fn blocks() -> impl Strategy<Value = Block> {
    (0usize..40).prop_flat_map(|rows| {
        let hosts = prop_oneof![Just(String::new()), words()];
        let tags = (vec(hosts.clone(), rows), vec(hosts, rows));
        let text = words().prop_map(Arc::<str>::from);
        let numbers = (
            cells(floats(), rows),
            cells(integers(), rows),
            cells(unsigned(), rows),
        );
        let others = (cells(text, rows), cells(any::<bool>(), rows));
        let mixed = (
            vec(option::of(any_value()), rows),
            vec(option::of(any::<bool>().prop_map(Value::Boolean)), rows),
        );
        (tags, numbers, others, mixed).prop_map(move |(tags, numbers, others, mixed)| {
            let tag = |rows: &Vec<String>| tag(&rows.iter().map(|row| &**row).collect::<Vec<_>>());
            block(
                rows,
                vec![
                    ("t", tag(&tags.0)),
                    ("s", tag(&tags.1)),
                    ("f", Data::Float(numbers.0)),
                    ("i", Data::Integer(numbers.1)),
                    ("u", Data::Unsigned(numbers.2)),
                    ("s", Data::Text(others.0)),
                    ("b", Data::Boolean(others.1)),
                    ("m", Data::Mixed(mixed.0)),
                    ("c", Data::Mixed(mixed.1)),
                ],
            )
        })
    })
}

/// Some rows out of a number of them.
pub fn any_rows(rows: usize) -> impl Strategy<Value = Rows> {
    let all = rows as u32;
    let range = (0..=all, 0..=all).prop_map(|(a, b)| Rows::Range(a.min(b), a.max(b)));
    let list =
        btree_set(0..all.max(1), 0..=rows).prop_map(|rows| Rows::List(rows.into_iter().collect()));
    prop_oneof![Just(Rows::Range(0, all)), range, list]
}

fn unary(operator: Unary, operand: BoxedStrategy<Expression>) -> BoxedStrategy<Expression> {
    operand
        .prop_map(move |operand| Expression::Unary(operator, Box::new(operand)))
        .boxed()
}

fn binary(
    operators: &'static [Binary],
    left: BoxedStrategy<Expression>,
    right: BoxedStrategy<Expression>,
) -> BoxedStrategy<Expression> {
    (proptest::sample::select(operators), left, right)
        .prop_map(|(operator, left, right)| {
            Expression::Binary(operator, Box::new(left), Box::new(right))
        })
        .boxed()
}

fn keys(names: &'static [&'static str]) -> BoxedStrategy<Expression> {
    proptest::sample::select(names)
        .prop_map(|name| Expression::Key(name.into()))
        .boxed()
}

const CALCULATIONS: &[Binary] = &[
    Binary::Add,
    Binary::Subtract,
    Binary::Multiply,
    Binary::Divide,
    Binary::Remainder,
];
const COMPARISONS: &[Binary] = &[
    Binary::Equal,
    Binary::NotEqual,
    Binary::Less,
    Binary::LessOrEqual,
    Binary::Greater,
    Binary::GreaterOrEqual,
];
const CONNECTIVES: &[Binary] = &[Binary::And, Binary::Or];

/// Expressions up to some depth.
pub fn any_expression(typed: Typed) -> BoxedStrategy<Expression> {
    match typed {
        Typed::Mostly => prop_oneof![6 => condition(3), 3 => number(3), 1 => text(2)].boxed(),
        Typed::ByChance => by_chance(),
    }
}

/// Mostly of the first; now and then something that need not fit.
fn mostly(fitting: BoxedStrategy<Expression>) -> BoxedStrategy<Expression> {
    let odd = prop_oneof![keys(&["m", "c", "absent", "t", "f", "b"]), literal()];
    prop_oneof![30 => fitting, 1 => odd].boxed()
}

fn literal() -> BoxedStrategy<Expression> {
    any_value().prop_map(Expression::Literal).boxed()
}

fn number(depth: u32) -> BoxedStrategy<Expression> {
    let leaf = prop_oneof![
        4 => keys(&["f", "i", "u"]),
        1 => floats().prop_map(Expression::from),
        2 => integers().prop_map(Expression::from),
        1 => unsigned().prop_map(Expression::from),
        1 => integers().prop_map(Expression::Duration),
    ];
    if depth == 0 {
        return mostly(leaf.boxed());
    }
    let inner = || number(depth - 1);
    mostly(
        prop_oneof![
            3 => leaf,
            1 => unary(Unary::Minus, inner()),
            3 => binary(CALCULATIONS, inner(), inner()),
        ]
        .boxed(),
    )
}

fn text(depth: u32) -> BoxedStrategy<Expression> {
    let leaf = prop_oneof![
        3 => keys(&["t", "s"]),
        1 => words().prop_map(Expression::from),
    ];
    if depth == 0 {
        return mostly(leaf.boxed());
    }
    let inner = || text(depth - 1);
    mostly(prop_oneof![3 => leaf, 1 => binary(&[Binary::Add], inner(), inner())].boxed())
}

fn condition(depth: u32) -> BoxedStrategy<Expression> {
    let leaf = prop_oneof![
        4 => keys(&["b", "c"]),
        1 => any::<bool>().prop_map(Expression::from),
    ];
    if depth == 0 {
        return mostly(leaf.boxed());
    }
    let inner = || condition(depth - 1);
    mostly(
        prop_oneof![
            1 => leaf,
            1 => unary(Unary::Not, inner()),
            3 => binary(COMPARISONS, number(depth - 1), number(depth - 1)),
            2 => binary(COMPARISONS, text(1), text(1)),
            1 => binary(&[Binary::Equal, Binary::NotEqual], inner(), inner()),
            4 => binary(CONNECTIVES, inner(), inner()),
        ]
        .boxed(),
    )
}

/// Names of any kind, those of the language among them.
pub fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z_][a-z0-9_]{0,5}(\\.[a-z]{1,3})?",
        ".{1,8}",
        proptest::sample::select(vec![
            "AND", "or", "Not", "true", "FALSE", "lambda", "unsigned", "var", "stream", "every",
            "a.b", "a..b", "a.1", "or.b", "b.or", "'", "\"", "\\", "\\'", "\n",
        ])
        .prop_map(String::from),
    ]
}

fn by_chance() -> BoxedStrategy<Expression> {
    let leaf = prop_oneof![
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(Expression::from),
        any::<i64>().prop_map(Expression::from),
        any::<u64>().prop_map(Expression::from),
        any::<bool>().prop_map(Expression::from),
        any::<i64>().prop_map(Expression::Duration),
        (-100i64..100).prop_map(|seconds| Expression::Duration(seconds * 1_000_000_000)),
        names().prop_map(Expression::from),
        names().prop_map(|name| Expression::Key(name.into())),
        literal(),
    ];
    leaf.prop_recursive(8, 64, 2, |inner| {
        let inner = inner.boxed();
        prop_oneof![
            unary(Unary::Minus, inner.clone()),
            unary(Unary::Not, inner.clone()),
            binary(CALCULATIONS, inner.clone(), inner.clone()),
            binary(COMPARISONS, inner.clone(), inner.clone()),
            binary(CONNECTIVES, inner.clone(), inner.clone()),
            inner.clone().prop_map(|operand| {
                let pattern = Pattern::new("^a/b\\d+|'c\"").unwrap();
                Expression::Match(Box::new(operand), pattern, false)
            }),
            (inner.clone(), inner)
                .prop_map(|(a, b)| { Expression::Call(Function::Pow, vec![a, b]) }),
        ]
    })
    .boxed()
}
