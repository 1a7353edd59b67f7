//! Go: each pirate is a goroutine with a channel. The program is in `benches/versus/go/`.

use super::{Contender, MAILBOX};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use versus::{Fsm, Load, Run};

/// Channels that hold [`MAILBOX`] messages.
pub struct Buffered;

/// Channels without a buffer: a sender waits for its receiver.
pub struct Unbuffered;

impl Contender for Buffered {
    fn name(&self) -> &'static str {
        "go-buffered"
    }

    fn prepare(&self) -> Result<(), String> {
        built()
    }

    fn run(&self, load: Load) -> Result<Run, String> {
        run(load, MAILBOX)
    }
}

impl Contender for Unbuffered {
    fn name(&self) -> &'static str {
        "go-unbuffered"
    }

    fn prepare(&self) -> Result<(), String> {
        built()
    }

    fn run(&self, load: Load) -> Result<Run, String> {
        run(load, 0)
    }
}

/// Returns the path of the built program.
fn program() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("versus-go")
}

/// Builds the program, at most once per process.
fn built() -> Result<(), String> {
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    BUILT.get_or_init(build).clone()
}

fn build() -> Result<(), String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("go");
    let output = Command::new("go")
        .env("GOTOOLCHAIN", "local")
        .args(["build", "-buildvcs=false", "-o"])
        .arg(program())
        .arg(".")
        .current_dir(&sources)
        .output()
        .map_err(|error| {
            format!("cannot run `go` ({error}); install Go 1.26 or newer to compare with it")
        })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "`go build` in {} failed:\n{}",
        sources.display(),
        said.trim_end()
    ))
}

fn run(load: Load, mailbox: usize) -> Result<Run, String> {
    let output = Command::new(program())
        .args(["-pirates", &load.pirates.to_string()])
        .args(["-seed", &load.seed.to_string()])
        .args(["-mailbox", &mailbox.to_string()])
        .output()
        .map_err(|error| format!("cannot run the Go program: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "the Go program failed ({}): {}",
            output.status,
            said.trim_end()
        ));
    }
    let run = Run::parse(&String::from_utf8_lossy(&output.stdout)).map_err(|e| e.to_string())?;
    match Fsm::gold(load) {
        gold if gold == run.given => Ok(run),
        gold => Err(format!(
            "the Go program gave {} gold instead of {gold}",
            run.given
        )),
    }
}
