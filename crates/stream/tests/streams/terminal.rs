//! Runs the program in a directory of its own and keeps what it said.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A directory in which the program is run, gone afterwards.
pub struct Terminal {
    directory: tempfile::TempDir,
}

/// What the program has said.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Terminal {
    /// A terminal in an empty directory.
    pub fn new() -> Terminal {
        Terminal {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// The path of a file in the directory.
    pub fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    /// Writes a file in the directory.
    pub fn write(&self, file: &str, text: &str) {
        std::fs::write(self.path(file), text).unwrap();
    }

    /// The program, not yet run. Its arguments are separated by spaces.
    pub fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_corsair-stream"));
        command
            .args(args.split_whitespace())
            .current_dir(self.directory.path());
        command.stdin(Stdio::null()).env_remove("RUST_BACKTRACE");
        command
    }

    /// Runs the program with these arguments.
    pub fn run(&self, args: &str) -> Said {
        let output = self.command(args).output().unwrap();
        Said {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs the program, which must succeed, and returns its stdout.
    pub fn succeed(&self, args: &str) -> String {
        let said = self.run(args);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{args}");
        said.stdout
    }
}

/// Sends a signal, as `-TERM`, to a process.
pub fn signal(signal: &str, process: &Child) {
    let pid = process.id().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status();
    assert!(sent.unwrap().success());
}
