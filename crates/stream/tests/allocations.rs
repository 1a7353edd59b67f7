//! What reading allocates. A file of its own, with one test: counts are of the whole process.

use corsair_allocations::{Count, Counting};
use corsair_stream::block::{Builder, Origin};
use corsair_stream::line::{self, FieldValue, Precision};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn text(lines: usize) -> String {
    let line = |number: usize| {
        format!(
            "cpu\\ 1,host=h{},region=eu\\,west user={}.{},ticks={number}i,ok=t,note=\"a \\\" b\" {}\n",
            number % 10,
            number % 100,
            number % 7,
            1_700_000_000_000_000_000 + number,
        )
    };
    (0..lines).map(line).collect()
}

/// What reading every token of each line allocates.
fn reading(text: &str) -> u64 {
    let count = Count::start();
    let mut read = 0;
    for line in line::parse(text.as_bytes()) {
        let line = line.unwrap();
        read += line.measurement().spelling().len();
        read += line
            .tags()
            .map(|(key, value)| key.spelling().len() + value.spelling().len())
            .sum::<usize>();
        for (key, value) in line.fields() {
            read += key.spelling().len();
            if let FieldValue::Text(text) = value {
                read += text.spelling().len();
            }
        }
    }
    let total = count.stop();
    assert!(read > 0);
    total.allocations
}

/// What putting them into blocks allocates, the blocks not counted.
fn building(builder: &mut Builder, text: &str, want: bool) -> u64 {
    let origin = Arc::new(Origin {
        database: "db".into(),
        policy: "".into(),
        measurement: "cpu 1".into(),
    });
    let count = Count::start();
    let wanted = |_: &str| want.then(|| origin.clone());
    let fed = builder.feed(
        text.as_bytes(),
        Precision::Nanoseconds,
        0,
        wanted,
        |error| panic!("{error}"),
    );
    let total = count.stop();
    assert_eq!(fed.accepted(), text.lines().count());
    builder.finish();
    total.allocations
}

/// The least of some counts: the threads of the test harness allocate, too, now and then.
fn least(mut count: impl FnMut() -> u64) -> u64 {
    (0..10).map(|_| count()).min().unwrap()
}

#[test]
fn no_line_costs_an_allocation_once_buffers_have_grown() {
    let (few, many) = (text(100), text(10_000));
    // The list of a line's tags grows once, whatever the number of lines.
    let few_read = least(|| reading(&few));
    assert_eq!(few_read, least(|| reading(&many)));
    assert!(few_read <= 1, "{few_read}");

    let mut builder = Builder::new();
    // Nobody wants them: the measurement itself, and its place.
    let few_unwanted = least(|| building(&mut builder, &few, false));
    assert_eq!(few_unwanted, least(|| building(&mut builder, &many, false)));
    assert!(few_unwanted <= 4, "{few_unwanted}");
    // Columns grow by doubling: 100 times as many rows are seven times more for each of seven.
    let few_wanted = least(|| building(&mut builder, &few, true));
    let many_wanted = least(|| building(&mut builder, &many, true));
    assert!(
        many_wanted <= few_wanted + 7 * 7,
        "{few_wanted}, {many_wanted}"
    );
}
