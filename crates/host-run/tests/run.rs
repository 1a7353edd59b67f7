//! Programs in C and Python as hosts: unmodified, from the shell.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs");

/// Runs the command on a file. The size of its environment depends on `padding`, which must not affect the results.
fn run(file: &Path, flags: &[&str], padding: usize) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_corsair-host"));
    command.arg("run").arg(file).args(flags);
    command.env("PADDING", "x".repeat(padding));
    command.output().unwrap()
}

fn texts(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// Writes the file of a simulation in its own directory.
fn file(directory: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = directory.path().join("simulation.toml");
    fs::write(&path, text).unwrap();
    path
}

/// Runs a file on 1, 2 and 4 workers, checks that their outputs are equal, and returns the output.
fn repeat(file: &Path) -> String {
    let outputs = [("1", 0), ("1", 999), ("2", 30), ("4", 7)].map(|(workers, padding)| {
        let (code, out, error) = texts(&run(file, &["--workers", workers], padding));
        assert_eq!(code, Some(0), "{out}{error}");
        out
    });
    let [first, ..] = &outputs;
    let different: BTreeSet<&String> = outputs.iter().collect();
    assert_eq!(different.len(), 1, "{different:#?}");
    first.clone()
}

fn compile(directory: &tempfile::TempDir, flags: &[&str]) -> PathBuf {
    let program = directory.path().join("threads");
    let status = Command::new("cc")
        .args(["-O1", "-pthread", "-o"])
        .arg(&program)
        .arg(format!("{PROGRAMS}/threads.c"))
        .args(flags)
        .status();
    assert!(status.unwrap().success());
    program
}

// Guarantee: host-11.
#[test]
fn a_program_in_c_repeats_and_sees_nothing_of_the_machine() {
    let directory = tempfile::tempdir().unwrap();
    compile(&directory, &[]);
    let text = "until = '10s'\npreemption = 50\n\
        [[host]]\nname = 'one'\nrun = ['threads', 'first']\n\
        [[host]]\nname = 'two'\nrun = ['./threads']\n";
    let out = repeat(&file(&directory, text));
    for part in [
        "first one: 15, slept 2, pid 100, block 0x2000",
        "root -1, write (nil)",
        " two: 15, slept 2",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!Path::new("/result").exists() && !Path::new("/usr/evil").exists());
}

// Guarantee: host-12.
#[test]
fn a_file_steps_a_clock_and_pauses_a_program() {
    let directory = tempfile::tempdir().unwrap();
    let text = "until = '1h'\n\
        [[host]]\nname = 'ahead'\nrun = ['/usr/bin/date', '+%Y']\n\
        [[host]]\nname = 'paused'\nrun = ['/usr/bin/sleep', '1']\n\
        [[fault]]\nat = '0s'\nclock_forward = ['ahead', '8784h']\n\
        [[fault]]\nat = '0s'\nclock_rate = ['paused', 100]\n\
        [[fault]]\nat = '500ms'\npause = 'paused'\n\
        [[fault]]\nat = '600ms'\nnames_fail = 'paused'\n\
        [[fault]]\nat = '9s'\nnames_work = 'paused'\n\
        [[fault]]\nat = '10s'\nresume = 'paused'\n";
    let out = repeat(&file(&directory, text));
    assert!(out.contains("ahead ] 2026"), "{out}");
}

/// Returns the path of Python's interpreter and its directory; `None` if Python is not installed.
fn python() -> Option<(String, String)> {
    let script = "import os, sys; print(os.path.realpath(sys.executable)); print(os.path.realpath(sys.prefix))";
    let output = Command::new("python3").args(["-c", script]).output();
    let output = output.ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    let mut next = || lines.next().unwrap().to_string();
    Some((next(), next()))
}

// Guarantee: host-11.
#[test]
fn asyncio_and_requests_survive_a_kill_and_a_power_loss() {
    let directory = tempfile::tempdir().unwrap();
    let Some((program, prefix)) = python() else {
        eprintln!("left out: python3 is not installed");
        return;
    };
    let text = format!(
        "until = '30s'\n\
        [network]\nlatency = ['500us', '1ms']\n\
        [[host]]\nname = 'server'\nrun = ['{program}', '/app/server.py']\nread = ['{prefix}']\n\
        files = {{ '/app/server.py' = '{PROGRAMS}/server.py', '/var/.keep' = '{PROGRAMS}/server.py' }}\n\
        [[host]]\nname = 'client'\nrun = ['{program}', '/app/client.py']\nread = ['{prefix}']\n\
        files = {{ '/app/client.py' = '{PROGRAMS}/client.py' }}\n\
        [[link]]\nbetween = ['server', 'client']\nlatency = ['2ms', '3ms']\n\
        [[fault]]\nat = '500ms'\nkill = 'server'\n\
        [[fault]]\nat = '900ms'\nstart = 'server'\n\
        [[fault]]\nat = '1200ms'\npower_loss = 'server'\n\
        [[fault]]\nat = '1300ms'\nstart = 'server'\n"
    );
    let out = repeat(&file(&directory, &text));
    assert_eq!(out.matches("serves").count(), 3, "{out}");
    assert_eq!(out.matches("done at").count(), 2, "{out}");
    assert!(out.contains("Error") && out.contains("digest"), "{out}");
}

#[test]
fn programs_that_cannot_be_simulated_are_refused_before_they_run() {
    let directory = tempfile::tempdir().unwrap();
    compile(&directory, &["-static"]);
    let script = directory.path().join("script");
    fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
    fs::write(directory.path().join("text"), "no program").unwrap();
    for name in ["script", "text"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(directory.path().join(name), mode).unwrap();
    }
    for (program, part) in [
        ("threads", "is linked statically"),
        ("script", "write its interpreter first"),
        ("text", "is not a program for Linux on x86-64"),
        ("nothing", "nothing cannot be read"),
        ("simulation.toml", "is not executable"),
    ] {
        let text = format!("until = '1s'\n[[host]]\nname = 'one'\nrun = ['{program}']\n");
        let (code, out, error) = texts(&run(&file(&directory, &text), &[], 0));
        assert_eq!(code, Some(2), "{program}: {out}{error}");
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn a_wrong_file_is_an_error_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let host = "[[host]]\nname = 'one'\nrun = ['/bin/true']\n";
    for (text, part) in [
        ("until = '10'\n".to_string(), "'10' is not a duration"),
        (
            format!("until = '1s'\nspeed = 3\n{host}"),
            "unknown field `speed`",
        ),
        (
            format!("until = '1s'\n{host}[[fault]]\nat = '1s'\nkill = 'two'\n"),
            "there is no host 'two'",
        ),
        (
            format!("until = '1s'\n{host}[[fault]]\nat = '1s'\n"),
            "a fault is one of",
        ),
        (
            format!("until = '1s'\n{host}{host}"),
            "'one' cannot name a host",
        ),
        (
            format!("until = '1s'\n{host}[network]\nlatency = ['2ms', '1ms']\n"),
            "the simulation cannot begin",
        ),
    ] {
        let (code, out, error) = texts(&run(&file(&directory, &text), &[], 0));
        assert_eq!(code, Some(2), "{part}: {out}{error}");
        assert!(error.contains(part), "{part}: {error}");
    }
}
