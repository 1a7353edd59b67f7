//! Runs a program in a temporary directory and captures its output, for tests of programs.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A program under test.
pub trait Program {
    /// The prefix of the program's error messages.
    const NAME: &'static str;
    /// The path of the built program: `env!("CARGO_BIN_EXE_…")`.
    const PATH: &'static str;
}

/// A temporary directory in which a program is run. The directory is removed when this value is dropped.
#[derive(Debug)]
pub struct Terminal<P> {
    directory: tempfile::TempDir,
    program: PhantomData<fn() -> P>,
}

/// The exit code and the output of a program that has ended.
#[derive(Debug)]
pub struct ProgramOutput {
    /// The exit code.
    pub code: Option<i32>,
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
}

impl<P> Default for Terminal<P> {
    fn default() -> Terminal<P> {
        Terminal {
            directory: tempfile::tempdir().expect("a temporary directory"),
            program: PhantomData,
        }
    }
}

impl<P: Program> Terminal<P> {
    /// Creates a terminal in an empty temporary directory.
    pub fn new() -> Terminal<P> {
        Terminal::default()
    }

    /// Returns the path of a file in the directory.
    pub fn path(&self, file: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join(file)
    }

    /// Returns the text of a file in the directory.
    pub fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// Writes a file in the directory.
    pub fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("the directory");
        std::fs::write(path, text).expect("the file");
    }

    /// Returns a command for the program with these arguments, which are separated by spaces.
    pub fn command(&self, args: &str) -> Command {
        let mut command = Command::new(P::PATH);
        command
            .args(args.split_whitespace())
            .current_dir(self.directory.path());
        command.stdin(Stdio::null()).env_remove("RUST_BACKTRACE");
        command
    }

    /// Runs the program with these arguments, which are separated by spaces.
    pub fn run(&self, args: &str) -> ProgramOutput {
        let output = self.command(args).output().expect("the program starts");
        ProgramOutput {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }

    /// Runs the program, which must succeed, and returns its stdout.
    pub fn succeed(&self, args: &str) -> String {
        let said = self.run(args);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{args}");
        said.stdout
    }

    /// Runs the program with `--format json`, which must succeed, and returns the JSON object that
    /// it prints.
    pub fn json(&self, args: &str) -> serde_json::Value {
        let stdout = self.succeed(&format!("{args} --format json"));
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error} in {stdout}"))
    }

    /// Runs the program, which must fail with a one-sentence error, and returns the sentence.
    pub fn refuse(&self, args: &str) -> String {
        let ProgramOutput {
            code,
            stdout,
            stderr,
        } = self.run(args);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{args}: {stderr}");
        let sentence = stderr
            .strip_prefix(P::NAME)
            .and_then(|rest| rest.strip_prefix(": "))
            .unwrap_or_else(|| panic!("{args}: {stderr}"));
        assert_eq!(sentence.trim_end().lines().count(), 1, "{args}: {stderr}");
        assert!(!stderr.contains("panicked"), "{args}: {stderr}");
        sentence.trim_end().to_owned()
    }
}

/// Sends a signal, for example `-TERM`, to a process.
///
/// # Panics
/// If the signal cannot be sent.
pub fn signal(signal: &str, process: &Child) {
    let pid = process.id().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status();
    assert!(sent.expect("there is a `kill`").success());
}
