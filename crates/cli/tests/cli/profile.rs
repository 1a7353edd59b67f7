//! CPU profiles: `go tool pprof` can read the file that -cpuprofile writes.

use crate::terminal::Terminal;
use std::process::Command;

/// Returns the fields of a protocol buffer at its top level: the number and, for fields with a length, the bytes.
fn fields(mut rest: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(rest: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (byte, left) = rest.split_first().expect("a varint ends");
            *rest = left;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let key = varint(&mut rest);
        let length = match key & 7 {
            0 => {
                varint(&mut rest);
                0
            }
            2 => varint(&mut rest) as usize,
            other => panic!("wire type {other}"),
        };
        let (bytes, left) = rest.split_at(length);
        fields.push((key >> 3, bytes));
        rest = left;
    }
    fields
}

/// Takes a profile of a run that is long enough for samples, and returns the terminal with `cpu.pprof`.
fn profiled() -> Terminal {
    let terminal = Terminal::new();
    terminal.succeed("-a fsm -p 30000 -d 5 -kv chat:100ms -cpuprofile cpu.pprof");
    terminal
}

#[test]
fn a_profile_has_samples_and_names() {
    let bytes = std::fs::read(profiled().path("cpu.pprof")).unwrap();
    let fields = fields(&bytes);
    // Field numbers of the format: 1 is a type of samples, 2 a sample, 6 a string.
    let strings: Vec<_> = fields
        .iter()
        .filter(|f| f.0 == 6)
        .map(|f| String::from_utf8_lossy(f.1))
        .collect();
    assert!(strings.iter().any(|name| name == "cpu"), "{strings:?}");
    assert!(
        strings.iter().any(|name| name.contains("corsair")),
        "{strings:?}"
    );
    assert!(fields.iter().any(|field| field.0 == 2), "no samples");
}

#[test]
#[ignore = "needs go; ci runs it where there is one"]
fn go_reads_the_profile() {
    let terminal = profiled();
    let output = Command::new("go")
        .args(["tool", "pprof", "-top"])
        .arg(terminal.path("cpu.pprof"))
        .output()
        .expect("go is installed");
    let (top, complaint) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{complaint}");
    let rows = top
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("flat"));
    assert!(rows.count() > 1, "{top}\n{complaint}");
}
