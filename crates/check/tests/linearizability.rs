//! Tests that the search agrees with an exhaustive search, and that minimized histories are
//! violations.

use corsair_check::models::{
    Bag, Counter, CounterInput, Lock, LockInput, Queue, QueueInput, Register, RegisterInput, Set,
    SetInput,
};
use corsair_check::{
    Bound, Limits, Model, Operation, Value, Verdict, check, smallest_violation, timeline,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;

/// True if an order of the operations is valid for the model. Tries all orders.
fn brute_force<M: Model>(
    model: &M,
    state: &M::State,
    left: &[Operation<M::Input, M::Output>],
) -> bool {
    if left.iter().all(|operation| operation.completion.is_none()) {
        return true;
    }
    let earliest = left
        .iter()
        .map(Operation::returned)
        .min()
        .unwrap_or(u64::MAX);
    left.iter().enumerate().any(|(index, operation)| {
        let (input, output) = (&operation.input, operation.output());
        operation.call <= earliest
            && model.step(state, input, output).is_some_and(|next| {
                let mut rest = left.to_vec();
                rest.remove(index);
                brute_force(model, &next, &rest)
            })
    })
}

type Spans = Vec<(u64, u64, bool, u8, u8)>;

fn spans() -> impl Strategy<Value = Spans> {
    vec(
        (
            0u64..12,
            0u64..6,
            proptest::bool::weighted(0.8),
            0u8..4,
            0u8..3,
        ),
        1..7,
    )
}

fn history<I>(spans: &Spans, make: impl Fn(u8, u8) -> (I, Value)) -> Vec<Operation<I, Value>> {
    let operation = |(process, (call, length, returned, kind, value)): (usize, &_)| {
        let (input, output) = make(*kind, *value);
        let process = process as u64;
        match returned {
            true => Operation::completed(process, input, *call, call + length, output),
            false => Operation::unknown(process, input, *call),
        }
    };
    spans.iter().enumerate().map(operation).collect()
}

/// Checks that the search, the exhaustive search and the minimizer agree.
fn agree<M: Model<Output = Value>>(model: &M, history: &[Operation<M::Input, Value>]) {
    let expected = brute_force(model, &model.initial(), history);
    let report = check(model, history, &Limits::default());
    match report.verdict {
        Verdict::Linearizable => assert!(expected, "no order fits {history:?}"),
        Verdict::Violation(violation) => {
            assert!(!expected, "an order fits {history:?}");
            let least = smallest_violation(model, history, &violation, &Limits::default());
            assert!(!brute_force(model, &model.initial(), &least), "{least:?}");
            assert!(least.len() <= history.len());
        }
        Verdict::Unknown(bound) => panic!("{bound:?} of {} operations", history.len()),
    }
}

fn value(number: u8) -> Value {
    Value::Int(number.into())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    // Guarantee: check-1.
    #[test]
    fn registers_agree_with_trying_every_order(spans in spans()) {
        let history = history(&spans, |kind, number| match kind {
            0 => (RegisterInput::Write(value(number)), true.into()),
            1 => (RegisterInput::CompareAndSet(value(number), value((number + 1) % 3)), true.into()),
            2 => (RegisterInput::CompareAndSet(value(number), value(0)), false.into()),
            _ => (RegisterInput::Read, value(number)),
        });
        agree(&Register, &history);
    }

    // Guarantee: check-1.
    #[test]
    fn registers_without_cas_agree_with_trying_every_order(spans in spans()) {
        let history = history(&spans, |kind, number| match kind {
            0 | 1 => (RegisterInput::Write(value(number)), true.into()),
            _ => (RegisterInput::Read, value(number)),
        });
        agree(&Register, &history);
    }

    // Guarantee: check-1.
    #[test]
    fn queues_agree_with_trying_every_order(spans in spans()) {
        let history = history(&spans, |kind, number| match kind {
            0 | 1 => (QueueInput::Enqueue(value(number)), true.into()),
            2 => (QueueInput::Dequeue, value(number)),
            _ if number == 0 => (QueueInput::Dequeue, Value::Nil),
            _ => (QueueInput::Dequeue, value(number)),
        });
        agree(&Queue, &history);
    }

    // Guarantee: check-1.
    #[test]
    fn sets_agree_with_trying_every_order(spans in spans()) {
        let history = history(&spans, |kind, number| match kind {
            0 => (SetInput::Add(value(number)), true.into()),
            1 => (SetInput::Remove(value(number)), true.into()),
            2 => (SetInput::Contains(value(number)), (number == 1).into()),
            _ => (SetInput::Read, [value(number)].into()),
        });
        agree(&Set, &history);
    }

    // Guarantee: check-1.
    #[test]
    fn locks_and_counters_agree_with_trying_every_order(spans in spans()) {
        let locks = history(&spans, |kind, process| match kind {
            0 | 1 => (LockInput::Acquire(process.into()), true.into()),
            _ => (LockInput::Release(process.into()), true.into()),
        });
        agree(&Lock, &locks);
        let counters = history(&spans, |kind, number| match kind {
            0 | 1 => (CounterInput::Add(number.into()), true.into()),
            _ => (CounterInput::Read, value(number)),
        });
        agree(&Counter, &counters);
    }
}

fn write(process: u64, number: i64, call: u64, returned: u64) -> Operation<RegisterInput, Value> {
    let input = RegisterInput::Write(number.into());
    Operation::completed(process, input, call, returned, true.into())
}

fn read(process: u64, number: i64, call: u64, returned: u64) -> Operation<RegisterInput, Value> {
    Operation::completed(process, RegisterInput::Read, call, returned, number.into())
}

// Guarantee: check-2.
#[test]
fn a_stale_read_is_reduced_to_the_operations_that_show_it() {
    let mut history: Vec<_> = (0..200)
        .flat_map(|step| {
            [
                write(1, step, 4 * step as u64, 4 * step as u64 + 1),
                read(2, step, 4 * step as u64 + 2, 4 * step as u64 + 3),
            ]
        })
        .collect();
    history.push(read(3, 7, 1000, 1001));
    let report = check(&Register, &history, &Limits::default());
    let Verdict::Violation(violation) = report.verdict else {
        panic!("{:?}", report.verdict);
    };
    let least = smallest_violation(&Register, &history, &violation, &Limits::default());
    assert_eq!(
        least.len(),
        3,
        "a write, the next, the stale read: {least:?}"
    );
    let explanation = timeline::explain(&Register, &least, &Limits::default());
    assert_eq!(explanation.blocked, Some(2));
    let text = timeline::text(&Register, &least, &explanation);
    assert!(text.contains("cannot follow"), "{text}");
}

// Guarantee: check-3.
#[test]
fn the_violation_of_the_first_key_is_reported_for_any_number_of_threads() {
    let keyed = |key: i64, operation: Operation<RegisterInput, Value>| {
        let input = RegisterInput::Keyed(Box::new(key.into()), Box::new(operation.input.clone()));
        Operation { input, ..operation }
    };
    let mut history = Vec::new();
    for key in 0..40 {
        history.push(keyed(key, write(0, 1, 0, 1)));
        history.push(keyed(key, read(1, if key % 10 == 3 { 9 } else { 1 }, 2, 3)));
    }
    for threads in 1..=4 {
        let limits = Limits {
            threads,
            ..Limits::default()
        };
        let Verdict::Violation(violation) = check(&Register, &history, &limits).verdict else {
            panic!("a register that reads 9 was found correct");
        };
        assert_eq!(violation.key, Some(Value::Int(3)));
    }
}

/// Writes that are all concurrent, and reads that contradict each other: every order is tried.
fn hard(writes: u64) -> Vec<Operation<RegisterInput, Value>> {
    let mut history: Vec<_> = (0..writes).map(|n| write(n, n as i64, 0, 100)).collect();
    history.extend((0..writes).map(|n| read(writes + n, n as i64, 0, 200)));
    history.push(read(999, -1, 0, 300));
    history
}

// Guarantee: check-4.
#[test]
fn time_and_memory_are_bounded_and_the_result_says_which() {
    let history = hard(40);
    let limits = Limits {
        time: Duration::from_millis(50),
        ..Limits::default()
    };
    let report = check(&Register, &history, &limits);
    assert_eq!(report.verdict, Verdict::Unknown(Bound::Time));
    assert_eq!((report.progress.objects, report.progress.finished), (1, 0));
    let limits = Limits {
        memory: 1 << 20,
        ..Limits::default()
    };
    let report = check(&Register, &history, &limits);
    assert_eq!(report.verdict, Verdict::Unknown(Bound::Memory));
    assert!(report.progress.configurations > 1000);
}

// Guarantee: check-8.
#[test]
fn a_timeline_is_well_formed_whatever_the_values_are() {
    let evil = "<script>&\"'\u{0}\u{7}\n日本";
    let text = |text: &str| Value::from(text);
    let history = [
        Operation::completed(0, RegisterInput::Write(text(evil)), 0, 1, true.into()),
        Operation::completed(1, RegisterInput::Read, 2, 3, text("]]>")),
        Operation::unknown(2, RegisterInput::Write(Value::Nil), 3),
    ];
    let explanation = timeline::explain(&Register, &history, &Limits::default());
    let svg = timeline::svg(&Register, &history, &explanation, evil);
    let mut reader = quick_xml::Reader::from_str(&svg);
    let mut next = || reader.read_event().expect("the SVG is well-formed");
    while next() != quick_xml::events::Event::Eof {}
    assert!(!svg.contains("<script>"));
}

#[test]
fn a_removal_without_a_result_may_have_emptied_the_bag() {
    let bag =
        |process, input, call, output| Operation::completed(process, input, call, call + 1, output);
    let mut history = vec![
        bag(0, QueueInput::Enqueue(1.into()), 0, true.into()),
        Operation::unknown(1, QueueInput::Dequeue, 2),
        bag(2, QueueInput::Dequeue, 4, Value::Nil),
    ];
    let verdict = |history: &[_]| check(&Bag, history, &Limits::default()).verdict;
    assert_eq!(verdict(&history), Verdict::Linearizable);
    // The operation that then returns the element returns an element that was already removed.
    history.push(bag(2, QueueInput::Dequeue, 6, 1.into()));
    assert!(matches!(verdict(&history), Verdict::Violation(_)));
    history.swap_remove(1);
    assert!(matches!(verdict(&history), Verdict::Violation(_)));
}
