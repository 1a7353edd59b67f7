//! Every strategy, with any number of workers, gives the same documents as a plain loop, in the same order.

use crate::each::{self, Check};
use corsair_serial::{Batch, Json, ParallelTasks, Strategy};
use corsair_testing::people;
use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use serde::Serialize;
use std::collections::BTreeMap;

/// A value of any shape and size.
#[derive(Clone, Debug, Serialize)]
enum Value {
    Nothing,
    Truth(bool),
    Number(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Map(BTreeMap<String, Value>),
}

fn any_value() -> impl proptest::strategy::Strategy<Value = Value> {
    let leaf = prop_oneof![
        8 => Just(Value::Nothing),
        8 => any::<bool>().prop_map(Value::Truth),
        8 => any::<i64>().prop_map(Value::Number),
        8 => any::<f64>().prop_map(Value::Float),
        8 => ".{0,40}".prop_map(Value::Text),
        8 => (0..40_usize, any::<u8>()).prop_map(|(len, byte)| Value::Bytes(vec![byte; len])),
        // Some values are larger than a block.
        1 => (30_000..40_000_usize).prop_map(|len| Value::Text("\"x\n".repeat(len / 3))),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::List),
            prop::collection::btree_map(".{0,8}", inner, 0..6).prop_map(Value::Map),
        ]
    })
}

/// Checks that two runs into one batch give the documents of a loop over `serde_json::to_vec`.
struct LikeALoop<'a, T> {
    values: &'a [T],
    documents: Vec<Vec<u8>>,
}

impl<T: Serialize> LikeALoop<'_, T> {
    fn new(values: &[T]) -> LikeALoop<'_, T> {
        let document = |value| serde_json::to_vec(value).unwrap();
        LikeALoop {
            values,
            documents: values.iter().map(document).collect(),
        }
    }
}

impl<T: Serialize + Sync> Check for LikeALoop<'_, T> {
    fn check<S: Strategy + Sync>(&mut self, strategy: &S) {
        let mut batch = Batch::new();
        for _ in 0..2 {
            strategy
                .marshal_into(&Json, self.values, &mut batch)
                .unwrap();
            let name = strategy.name();
            assert_eq!(batch.len(), self.values.len(), "{name}");
            assert_eq!(batch.iter().len(), self.values.len(), "{name}");
            let mut size = 0;
            for (index, expected) in self.documents.iter().enumerate() {
                let document = batch.get(index).unwrap();
                assert_eq!(document, expected, "{name}");
                size += document.len();
            }
            assert_eq!(batch.size(), size, "{name}");
            assert_eq!(batch.get(self.values.len()), None, "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    // Guarantee: serial-1.
    #[test]
    fn any_values_on_1_to_64_workers_come_out_as_from_a_loop(
        values in prop::collection::vec(any_value(), 0..60),
        workers in 1..=64_usize,
    ) {
        each::strategy(workers, &mut LikeALoop::new(&values));
    }

    // Guarantee: serial-1.
    #[test]
    fn many_small_values_come_out_as_from_a_loop(
        values in prop::collection::vec(any::<u32>(), 0..4_000),
        workers in 1..=64_usize,
    ) {
        each::strategy(workers, &mut LikeALoop::new(&values));
    }
}

#[test]
fn one_to_64_workers_give_the_same_people() {
    let people = people::generate(300, 1);
    for workers in (1..=9).chain([16, 17, 64]) {
        each::strategy(workers, &mut LikeALoop::new(&people));
    }
}

// Guarantee: serial-1.
#[test]
fn no_value_one_value_and_fewer_values_than_workers() {
    let people = people::generate(5, 2);
    for count in 0..=5 {
        each::strategy(8, &mut LikeALoop::new(&people[..count]));
    }
}

#[test]
fn zero_workers_mean_one() {
    let people = people::generate(300, 2);
    each::strategy(0, &mut LikeALoop::new(&people));
}

#[test]
fn values_without_a_byte_of_their_own_are_still_one_document_each() {
    each::strategy(3, &mut LikeALoop::new(&[(); 70_000]));
}

/// Checks that a batch which a larger run on more workers has filled contains none of the earlier documents.
struct AfterALargerRun<'a> {
    batch: Batch<Json>,
    people: &'a [people::Person],
}

impl Check for AfterALargerRun<'_> {
    fn check<S: Strategy + Sync>(&mut self, strategy: &S) {
        for count in [self.people.len(), 3, 0] {
            let people = &self.people[..count];
            strategy
                .marshal_into(&Json, people, &mut self.batch)
                .unwrap();
            let documents: Vec<&[u8]> = self.batch.iter().collect();
            let expected: Vec<Vec<u8>> = people
                .iter()
                .map(|person| serde_json::to_vec(person).unwrap())
                .collect();
            assert_eq!(documents, expected, "{}", strategy.name());
        }
    }
}

#[test]
fn one_batch_serves_all_strategies_and_worker_counts() {
    let mut check = AfterALargerRun {
        batch: Batch::new(),
        people: &people::generate(700, 4),
    };
    for workers in [16, 2, 5, 1] {
        each::strategy(workers, &mut check);
    }
}

// Guarantee: serial-2.
#[test]
fn a_result_is_not_touched_by_the_next_run() {
    struct Owned;
    impl Check for Owned {
        fn check<S: Strategy + Sync>(&mut self, strategy: &S) {
            let people = people::generate(600, 9);
            let (first, second) = people.split_at(300);
            let kept = strategy.marshal(&Json, first).unwrap();
            let other = strategy.marshal(&Json, second).unwrap();
            for (index, person) in first.iter().enumerate() {
                assert_eq!(
                    kept.get(index).unwrap(),
                    serde_json::to_vec(person).unwrap()
                );
            }
            assert_ne!(kept.get(0), other.get(0));
        }
    }
    each::strategy(4, &mut Owned);
}

// Guarantee: serial-2.
#[test]
fn one_strategy_serves_several_threads_at_once() {
    struct Shared;
    impl Check for Shared {
        fn check<S: Strategy + Sync>(&mut self, strategy: &S) {
            std::thread::scope(|scope| {
                for seed in 0..3 {
                    scope.spawn(move || {
                        let people = people::generate(400, seed);
                        LikeALoop::new(&people).check(strategy);
                    });
                }
            });
        }
    }
    each::strategy(3, &mut Shared);
}

#[test]
fn tasks_called_inside_a_runtime_say_what_to_do_instead() {
    let tasks = ParallelTasks::new(2).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let error = runtime.block_on(async { tasks.marshal(&Json, &[1, 2]).unwrap_err() });
    assert!(error.to_string().contains("spawn_blocking"), "{error}");
    runtime.block_on(async { drop(tasks) });
}
