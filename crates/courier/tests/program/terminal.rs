//! A program from the point of view of its users. It runs in a separate directory, and its output is recorded.
//!
//! The tests of `corsair-courier` and of `corsair-courier-load` share this file.

use std::process::{Child, Command, Stdio};

/// A separate directory in which a program is run.
pub struct Terminal {
    program: &'static str,
    pub directory: tempfile::TempDir,
}

/// The exit code and the output of a program.
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

    /// Returns the command without running it. Arguments are separated by spaces.
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

    /// Runs the program, which must refuse with one sentence, and returns the sentence.
    pub fn refuse(&self, args: &str) -> String {
        let said = self.run(args);
        assert_eq!(said.code, Some(2), "{args}: {}", said.stderr);
        assert_eq!(said.stdout, "", "{args}");
        assert_eq!(said.stderr.lines().count(), 1, "{args}: {}", said.stderr);
        said.stderr
    }
}

/// Sends a signal, such as `-TERM`, to a process.
pub fn signal(signal: &str, process: &Child) {
    let pid = process.id().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status();
    assert!(sent.unwrap().success());
}
