//! Pirates among services.

use crate::scene::{plan, run_services};

#[test]
fn pirates_gossip_and_give_gold_to_pirates_they_depend_on() {
    let ran = run_services(
        r#"{"name": "crew", "package": "pirate", "count": 9, "regions": 1, "dependencies": ["crew"]},
        {"name": "db", "package": "store"},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["db"]}"#,
        &plan(),
    );
    assert!(ran.messages("GoldCoin") > 9, "more than they were given");
    assert!(ran.messages("NameDrop") > 9 * 8 + 9 + 1);
    assert_eq!(ran.report.dead(), 0);
}
