//! A node for tests of processes. It solves `echo` and `unique-ids`, or misbehaves in the way that its first argument
//! selects.

#![expect(
    clippy::print_stdout,
    reason = "nodes write messages to standard output"
)]

use serde_json::{Value, json};
use std::io::{BufRead, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mode = std::env::args().nth(1).unwrap_or_default();
    if mode == "dead" {
        writeln!(std::io::stderr(), "cannot open the store")?;
        std::process::exit(3);
    }
    let (mut name, mut ids) = (Value::Null, 0);
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let body = &message["body"];
        let mut reply = match body["type"].as_str().unwrap_or_default() {
            "init" => {
                name = body["node_id"].clone();
                json!({"type": "init_ok"})
            }
            "echo" => json!({"type": "echo_ok", "echo": body["echo"]}),
            // Without the node's name, several nodes create the same ids.
            "generate" if mode == "same" => json!({"type": "generate_ok", "id": ids}),
            "generate" => json!({"type": "generate_ok", "id": [name, ids]}),
            _ => json!({"type": "error", "code": 10}),
        };
        ids += 1;
        reply["in_reply_to"] = body["msg_id"].clone();
        let dest = match (mode.as_str(), ids) {
            ("stray", 2..) => json!("n99"),
            _ => message["src"].clone(),
        };
        println!("{}", json!({"src": name, "dest": dest, "body": reply}));
        match mode.as_str() {
            "text" => println!("ready"),
            "long" => println!("{}", "x".repeat(2 << 20)),
            "exits" if ids > 2 => return Err("the disk is full".into()),
            "flood" => loop {
                let body = json!({"type": "x", "text": "x".repeat(20_000)});
                println!("{}", json!({"src": name, "dest": name, "body": body}));
            },
            _ => {}
        }
    }
    Ok(())
}
