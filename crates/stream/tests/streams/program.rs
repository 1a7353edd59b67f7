//! The program: recordings through tasks, the server on loopback, bad input.

use super::terminal::{Terminal, signal};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

const COUNT: &str =
    "stream | from().measurement('cpu') | window(10s, every 10s) | count(value) | log('count')\n";
const LINES: &str = "cpu,host=a value=1 1000000000\ncpu,host=b value=2 2000000000\n\
                     mem used=5i 3000000000\ncpu,host=a value=3 11000000000\n";

/// A terminal with a task and a recording.
fn terminal() -> Terminal {
    let terminal = Terminal::new();
    terminal.write("count.tick", COUNT);
    terminal.write("points.lp", LINES);
    terminal
}

#[test]
fn a_recording_goes_through_a_task() {
    for executor in ["tokio", "threads", "pool"] {
        let args = format!("replay points.lp --task count.tick --executor {executor}");
        let stdout = terminal().succeed(&args);
        let lines: Vec<&str> = stdout.lines().collect();
        assert_eq!(lines[0], "count cpu count=2i 10000000000");
        assert_eq!(lines[1], "count cpu count=1i 20000000000");
        assert_eq!(lines[2], "task count: 3 points");
        assert!(lines[3].starts_with("4 lines, "), "{stdout}");
    }
}

#[test]
fn a_recording_is_replayed_in_its_own_time() {
    let begun = std::time::Instant::now();
    let stdout = terminal().succeed("replay points.lp --task count.tick --own-time 100");
    assert!(
        begun.elapsed().as_millis() >= 100,
        "ten seconds, a hundred times as fast"
    );
    assert!(stdout.contains("task count: 3 points"), "{stdout}");
}

#[test]
fn bad_lines_of_a_recording_are_named_and_the_rest_goes_through() {
    let terminal = terminal();
    terminal.write("bad.lp", "cpu value=1 1\ncpu value= 2\n\ncpu value=3 3\n");
    let said = terminal.run("replay bad.lp --task count.tick");
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("line 2: "), "{said:?}");
    assert!(said.stdout.contains("task count: 2 points"), "{said:?}");
}

#[test]
fn a_task_that_fails_says_why() {
    let terminal = terminal();
    terminal.write("bad.tick", "stream | from('cpu') | where(value > 'x')\n");
    let said = terminal.run("replay points.lp --task bad.tick --task count.tick");
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr.contains("task bad: where1 failed: "),
        "{said:?}"
    );
    assert!(said.stdout.contains("task count: 3 points"), "{said:?}");
}

#[test]
fn bad_input_is_refused() {
    let terminal = terminal();
    terminal.write("wrong.tick", "stream | from() | windaw(10s)\n");
    terminal.write("a b.tick", COUNT);
    for (args, parts) in [
        ("replay none.lp --task count.tick", &["none.lp"][..]),
        ("replay points.lp --task none.tick", &["none.tick"]),
        (
            "replay points.lp --task count.tick count.tick",
            &["count", "already"],
        ),
        ("replay points.lp --precision days", &["days", "ms"]),
        ("replay points.lp --own-time 0", &["greater than 0"]),
        ("replay points.lp --executor virtual", &["virtual", "tokio"]),
        (
            "replay points.lp --overflow never",
            &["never", "drop_newest"],
        ),
        ("replay points.lp --capacity 0", &["capacity", "0"]),
        ("serve --addr nowhere", &["nowhere"]),
        ("serve --addr 192.0.2.1:1", &["192.0.2.1:1"]),
        ("bench --tasks 0", &["tasks", "0"]),
        ("", &["`corsair-stream serve`", "`corsair-stream bench`"]),
        ("replay", &["<FILE>", "corsair-stream --help"]),
        ("serve --adr x", &["--adr", "did you mean --addr?"]),
    ] {
        let said = terminal.run(args);
        assert_eq!(said.code, Some(2), "{args}: {said:?}");
        assert!(!said.stderr.contains("panicked"), "{args}: {said:?}");
        for part in parts {
            assert!(
                said.stderr.contains(part),
                "{args} says {said:?}, and not {part:?}"
            );
        }
    }
    let said = terminal.run("replay points.lp --task wrong.tick");
    assert_eq!(said.code, Some(2));
    for part in [
        "wrong.tick",
        "line 1, column 19",
        "windaw(10s)",
        "^^^^^^",
        "did you mean `window`?",
    ] {
        assert!(
            said.stderr.contains(part),
            "{part:?} is not in {}",
            said.stderr
        );
    }
}

#[test]
fn help_is_that_of_the_subcommand() {
    let help = Terminal::new().succeed("replay --help");
    assert!(help.contains("--own-time"), "{help}");
    assert!(!help.contains("--max-body"), "{help}");
}

#[test]
fn the_bench_prints_a_line_for_each_work_and_number_of_tasks() {
    let args = "bench --tasks 1,3 --lines 50 --rounds 1";
    let table = Terminal::new().succeed(args);
    for work in ["from", "none", "count", "alert", "packets"] {
        let lines = table.lines().filter(|line| line.starts_with(work)).count();
        assert_eq!(lines, 2, "{work} in\n{table}");
    }
}

/// A server, ended with the test.
struct Server {
    child: Child,
    address: String,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Server {
    fn start(terminal: &Terminal, args: &str) -> Server {
        let mut command = terminal.command(&format!("serve --addr 127.0.0.1:0 {args}"));
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line
            .trim()
            .rsplit_once("http://")
            .expect("an address")
            .1
            .into();
        Server {
            child,
            address,
            stdout,
        }
    }

    fn request(&self, request: &str) -> String {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    }

    fn post(&self, path: &str, body: &str) -> String {
        let length = body.len();
        self.request(&format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
    }

    fn get(&self, path: &str) -> String {
        self.request(&format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        ))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
#[test]
fn a_server_takes_points_shows_tasks_and_drains_when_it_is_asked_to_end() {
    let terminal = terminal();
    let mut server = Server::start(&terminal, "--task count.tick");
    let answer = server.post("/write?db=db", LINES);
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    let answer = server.post(
        "/tasks",
        r#"{"name": "more", "text": "stream | from('mem')"}"#,
    );
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let answer = server.get("/tasks/count");
    assert!(answer.contains("\"state\":\"running\""), "{answer}");
    signal("-TERM", &server.child);
    let mut rest = String::new();
    server.stdout.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("task count: 3 points"), "{rest}");
    let mut log = String::new();
    server
        .child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut log)
        .unwrap();
    assert_eq!(
        log.lines().collect::<Vec<_>>(),
        [
            "count cpu count=2i 10000000000",
            "count cpu count=1i 20000000000"
        ]
    );
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_address_in_use_is_told() {
    let terminal = terminal();
    let server = Server::start(&terminal, "");
    let said = terminal.run(&format!("serve --addr {}", server.address));
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains(&server.address), "{said:?}");
}
