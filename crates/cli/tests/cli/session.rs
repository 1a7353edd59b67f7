//! Sessions without a page: a recorded session is replayed.

use crate::terminal::{Terminal, refuse};

const COMMANDS: &str = r#"
    {"at": 1500000000, "do": "kill", "who": "login00"},
    {"at": 2000000000, "do": "load", "percent": 300},
    {"at": 2500000000, "do": "revive", "who": "login00"}"#;

fn write(terminal: &Terminal, commands: &str, digest: &str) {
    let text = format!(
        r#"{{"version": "corsair-session-1", "flags": {{"arch": "netflixoss", "duration": 3}},
        "commands": [{commands}], "until": 2700000000, "digest": "{digest}"}}"#
    );
    std::fs::write(terminal.path("session.json"), text).unwrap();
}

#[test]
fn a_replay_does_what_was_done_and_notices_if_the_digest_is_another() {
    let terminal = Terminal::new();
    write(&terminal, COMMANDS, "0000000000000000");
    let said = terminal.refuse("--replay session.json");
    let digest = said.split("digest ").nth(1).unwrap();
    let digest = &digest[..16];
    assert!(said.contains("the session had 0000000000000000"), "{said}");
    write(&terminal, COMMANDS, digest);
    let digests = ["--cpus 1", "--cpus 2", "--cpus 3 -j"]
        .map(|more| terminal.json(&format!("--replay session.json {more}"))["digest"].clone());
    assert!(digests.iter().all(|other| *other == digests[0]));
    let plain = terminal.json("-a netflixoss -d 3")["digest"].clone();
    assert_ne!(plain, digests[0]);
    // The command line takes precedence over the flags of the session, so the digest differs.
    terminal.refuse("--replay session.json --seed 7");
}

#[test]
fn what_a_session_needs_is_said_in_a_sentence() {
    let terminal = Terminal::new();
    write(
        &terminal,
        r#"{"at": 1, "do": "kill", "who": "login0"}"#,
        "0000000000000000",
    );
    let said = terminal.refuse("--replay session.json");
    assert!(
        said.contains("command 1 of the session (kill login0): "),
        "{said}"
    );
    assert!(said.contains("did you mean login00?"), "{said}");
    assert!(refuse("--replay none.json").contains("--replay: cannot read none.json"));
    assert!(refuse("--open").contains("add --ui"));
    assert!(refuse("--ui --executor tokio").contains("virtual time"));
    assert!(refuse("--ui nowhere").contains("write for example 127.0.0.1:8080"));
    if !cfg!(feature = "ui") {
        assert!(refuse("-a lamp --ui").contains("cargo run --features ui -- -a lamp --ui"));
    }
}
