//! The command `corsair`, built by `ci/observe.sh`, and its output.

use serde_json::Value;
use std::io;
use std::process::{Command, Output};

/// Returns the command with these flags, separated by spaces, and a summary as JSON.
pub fn command(flags: &str) -> Command {
    let program = std::env::var("CORSAIR").expect("CORSAIR is the path of the command");
    let mut command = Command::new(program);
    command
        .args(flags.split_whitespace())
        .args(["--format", "json"]);
    command
}

/// The output of a successful run.
pub struct Said {
    pub summary: Value,
    pub stderr: String,
}

impl From<io::Result<Output>> for Said {
    fn from(output: io::Result<Output>) -> Said {
        let output = output.expect("the command can be run");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{stderr}");
        let summary = serde_json::from_slice(&output.stdout).unwrap();
        Said { summary, stderr }
    }
}
