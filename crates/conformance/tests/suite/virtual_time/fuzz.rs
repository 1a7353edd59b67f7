//! Whole scenarios at random, run in several ways, also with pauses: results, reports, what actors saw, and that
//! nothing is left in memory. `cargo run -p corsair-conformance --example fuzz` goes on where these end.

mod case;

#[test]
fn random_scenarios_are_the_same_for_any_workers_and_lookahead() {
    let cases = if cfg!(miri) { 3 } else { 50 };
    for number in 0..cases {
        if let Err(difference) = case::check(number) {
            panic!("{difference}");
        }
    }
}
