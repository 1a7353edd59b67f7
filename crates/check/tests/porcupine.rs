//! The verdicts of porcupine on its published test histories.
//!
//! Some of them are in `histories`. The test of all of them takes a checkout of github.com/anishathalye/porcupine in
//! `PORCUPINE`, and reads nothing but its `test_data` and the verdicts that `porcupine_test.go` expects:
//! `PORCUPINE=path cargo test -p corsair-check --test porcupine -- --ignored`

use corsair_check::models::{self, FromRecords, KeyValue, Register};
use corsair_check::{Limits, Verdict, check, read};
use std::path::{Path, PathBuf};

fn is_linearizable<M: FromRecords + Default>(path: &Path) -> bool {
    let text = std::fs::read(path).unwrap();
    let history = models::operations::<M>(&read::parse(&text).unwrap()).unwrap();
    match check(&M::default(), &history, &Limits::default()).verdict {
        Verdict::Linearizable => true,
        Verdict::Violation(_) => false,
        Verdict::Unknown(bound) => panic!("{}: {bound:?}", path.display()),
    }
}

// Guarantee: check-1.
#[test]
fn some_published_histories_get_the_verdicts_of_porcupine() {
    let histories = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/histories");
    for name in ["c01-ok", "c01-bad", "c10-ok", "c10-bad"] {
        let path = histories.join(format!("{name}.txt"));
        let is_ok = name.ends_with("ok");
        assert_eq!(is_linearizable::<KeyValue>(&path), is_ok, "{name}");
    }
}

// Guarantee: check-1.
#[test]
#[ignore = "needs a checkout of porcupine in PORCUPINE"]
fn the_published_histories_get_the_verdicts_of_porcupine() {
    let checkout = PathBuf::from(std::env::var_os("PORCUPINE").expect("PORCUPINE is not set"));
    let expected = std::fs::read_to_string(checkout.join("porcupine_test.go")).unwrap();
    let mut compared = 0;
    // `checkJepsen(t, 98, true)` stands for etcd_098.log.
    for call in expected.split("checkJepsen(t, ").skip(1) {
        let Some((number, verdict)) = call.split_once(')').unwrap().0.split_once(", ") else {
            continue;
        };
        let Ok(number) = number.parse::<u32>() else {
            continue;
        };
        let path = checkout.join(format!("test_data/jepsen/etcd_{number:03}.log"));
        let linearizable = is_linearizable::<Register>(&path);
        assert_eq!(linearizable.to_string(), verdict, "{}", path.display());
        compared += 1;
    }
    assert!(
        compared >= 100,
        "only {compared} histories of etcd were compared"
    );
    for name in [
        "c01-ok", "c01-bad", "c10-ok", "c10-bad", "c50-ok", "c50-bad",
    ] {
        let path = checkout.join(format!("test_data/kv/{name}.txt"));
        let linearizable = is_linearizable::<KeyValue>(&path);
        assert_eq!(linearizable, name.ends_with("ok"), "{}", path.display());
    }
}
