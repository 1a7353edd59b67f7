//! A program as its users meet it: run in a directory of its own, with what it says.
//!
//! The tests of `corsair-courier` and of `corsair-courier-load` share this file.

use std::process::{Child, Command, Stdio};

/// Runs a program in a directory of its own.
pub struct Terminal {
    program: &'static str,
    pub directory: tempfile::TempDir,
}

/// What the program has said.
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Terminal {
    pub fn new(program: &'static str) -> Terminal {
        Terminal {
            program,
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// The program, not yet run. Its arguments are separated by spaces.
    pub fn command(&self, args: &str) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(args.split_whitespace())
            .current_dir(self.directory.path())
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &str) -> Said {
        let output = self.command(args).output().unwrap();
        Said {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs the program, which must refuse in one sentence, and returns that.
    pub fn refuse(&self, args: &str) -> String {
        let said = self.run(args);
        assert_eq!(said.code, Some(2), "{args}: {}", said.stderr);
        assert_eq!(said.stdout, "", "{args}");
        assert_eq!(said.stderr.lines().count(), 1, "{args}: {}", said.stderr);
        said.stderr
    }
}

/// Sends a signal, as `-TERM`, to a process.
pub fn signal(signal: &str, process: &Child) {
    let pid = process.id().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status();
    assert!(sent.unwrap().success());
}
