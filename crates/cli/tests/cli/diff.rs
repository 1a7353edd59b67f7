//! `corsair diff`: two recorded runs, and their first difference.

use crate::terminal::Terminal;

#[test]
fn runs_of_one_seed_are_the_same_on_any_number_of_workers() {
    let terminal = Terminal::new();
    for (out, workers) in [("a", 1), ("b", 2)] {
        terminal.succeed(&format!(
            "-a fsm -p 50 -d 1 -j --out {out} --workers {workers}"
        ));
    }
    let said = terminal.succeed("diff a b");
    assert!(
        said.starts_with("The runs are the same in 1 file, "),
        "{said}"
    );
}

#[test]
fn runs_of_two_seeds_differ_in_an_event_that_is_named() {
    let terminal = Terminal::new();
    for (out, seed) in [("a", 1), ("b", 2)] {
        terminal.succeed(&format!("-a fsm -p 50 -d 1 -j --out {out} --seed {seed}"));
    }
    let said = terminal.run("diff a/json/fsm.json b/json/fsm.json");
    assert_eq!((said.code, said.stderr.as_str()), (Some(1), ""));
    let lines: Vec<&str> = said.stdout.lines().collect();
    let [first, a, b] = lines[..] else {
        panic!("{}", said.stdout);
    };
    let begins = "The runs differ first in event ";
    assert!(first.starts_with(begins) && first.contains(" of fsm.json, at 1970-01-01T"));
    assert!(a.starts_with("  A: {\"") && b.starts_with("  B: {\"") && a[5..] != b[5..]);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let terminal = Terminal::new();
    terminal.write("a/json/x.json", "");
    let said = terminal.refuse("diff a nowhere");
    assert!(said.starts_with("cannot read nowhere"), "{said}");
}
