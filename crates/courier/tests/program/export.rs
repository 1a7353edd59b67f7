//! Tests of `export` and `import`, as an operator uses them.

use crate::operate::{Node, get};
use crate::terminal::Terminal;
use crate::{PROGRAM, request};
use std::fs;
use std::io::Write;
use std::process::Stdio;

fn token(answer: &str) -> String {
    let token = answer.split("\"token\":\"").nth(1).unwrap();
    token.split('"').next().unwrap().to_owned()
}

/// Starts a node with two users, and posts a message. Returns the sender's token.
fn node_with_a_message<'t>(terminal: &'t Terminal, data: &str) -> (Node<'t>, String) {
    let node = Node::start(terminal, &format!("--data {data}"));
    let mut tokens = Vec::new();
    for name in ["anne", "mary"] {
        let body = format!(r#"{{"name":"{name}","password":"correct horse"}}"#);
        tokens.push(token(&request(&node.host, "/users", "", &body)));
    }
    let made = request(
        &node.host,
        "/conversations",
        &tokens[0],
        r#"{"recipients":[2]}"#,
    );
    assert!(made.contains(r#"{"id":1}"#), "{made}");
    post(&node, &tokens[0], "ahoy", "key-1");
    (node, tokens.remove(0))
}

/// Posts with an idempotency key, and returns the answer.
fn post(node: &Node<'_>, token: &str, text: &str, key: &str) -> String {
    let path = format!("/conversations/1/messages HTTP/1.1\r\nidempotency-key: {key}\r\nx:");
    request(&node.host, &path, token, &format!(r#"{{"text":"{text}"}}"#))
}

// Guarantee: courier-27.
#[test]
fn an_export_goes_on_in_another_directory_and_nothing_is_lost_or_doubled() {
    let terminal = Terminal::new(PROGRAM);
    let (node, anne) = node_with_a_message(&terminal, "data");
    let running = terminal.run("export --data data --to running.jsonl");
    assert_eq!(running.code, Some(0), "{}", running.stderr);
    let again = terminal.refuse("export --data data --to running.jsonl");
    assert!(again.contains("running.jsonl"), "{again}");
    node.stop();
    let stopped = terminal.run("export --data data");
    assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
    let read = |name: &str| fs::read_to_string(terminal.directory.path().join(name)).unwrap();
    assert_eq!(stopped.stdout, read("running.jsonl"));
    assert!(!terminal.directory.path().join("data/index.export").exists());
    let imported = terminal.run("import --from running.jsonl --data new");
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    let twice = terminal.refuse("import --from running.jsonl --data new");
    assert!(twice.contains("already exists"), "{twice}");
    let back = terminal.run("export --data new");
    assert_eq!(back.stdout, stopped.stdout);
    // The token, the key and the numbers are valid at the new node, also after a kill.
    let node = Node::start(&terminal, "--data new");
    let repeated = post(&node, &anne, "ahoy", "key-1");
    assert!(
        repeated.starts_with("HTTP/1.1 200") && repeated.contains(r#""number":1"#),
        "{repeated}"
    );
    let next = post(&node, &anne, "next", "key-2");
    assert!(next.contains(r#""number":2"#), "{next}");
    node.kill();
    let node = Node::start(&terminal, "--data new");
    let repeated = post(&node, &anne, "next", "key-2");
    assert!(repeated.contains(r#""number":2"#), "{repeated}");
    assert!(get(&node.host, "/readyz").starts_with("HTTP/1.1 200"));
    node.stop();
}

// Guarantee: courier-27.
#[test]
fn what_is_not_an_export_is_refused_in_a_sentence_and_leaves_no_data() {
    let terminal = Terminal::new(PROGRAM);
    let (node, _) = node_with_a_message(&terminal, "data");
    node.stop();
    let whole = terminal.run("export --data data").stdout;
    let lines: Vec<&str> = whole.lines().collect();
    let without_end = whole.trim_end().rsplit_once('\n').unwrap().0;
    let cases = [
        (String::new(), "ends within line 1"),
        ("nonsense\n".to_owned(), "line 1 cannot be read"),
        ("{\"kind\":\"rum\"}\n".to_owned(), "line 1 cannot be read"),
        (
            format!("{without_end}\n"),
            "ends with a line of the kind 'end'",
        ),
        (
            whole[..whole.len() / 2].to_owned(),
            "the export ends within line",
        ),
        (whole.replace("ahoy", "ahoi"), "was changed"),
        (
            format!("{whole}{}\n", lines[1]),
            "lines follow the last line",
        ),
        (format!("{}\n{}\n", lines[1], whole), "the first"),
        (
            whole.replacen("\"courier\":1", "\"courier\":2", 1),
            "format 2",
        ),
    ];
    for (input, part) in cases {
        fs::write(terminal.directory.path().join("input"), input).unwrap();
        let said = terminal.refuse("import --from input --data new");
        assert!(said.contains(part), "{said:?} does not contain {part:?}");
        let new = terminal.directory.path().join("new");
        assert!(fs::read_dir(new).unwrap().next().is_none());
    }
    for (args, part) in [
        ("export --data none", "no data"),
        ("import --from none --data new", "none"),
        ("import --from input --data data", "already exists"),
    ] {
        let said = terminal.refuse(args);
        assert!(said.contains(part), "{args}: {said}");
    }
    // A line without an end does not fill the memory.
    let mut import = terminal.command("import --from - --data new");
    let mut import = import
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = import.stdin.take().unwrap();
    let part = vec![b'x'; 1 << 20];
    for _ in 0..80 {
        if stdin.write_all(&part).is_err() {
            break;
        }
    }
    drop(stdin);
    let output = import.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("line 1 has more than"), "{said}");
}
