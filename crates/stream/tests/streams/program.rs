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
pub fn terminal() -> Terminal {
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
fn a_task_that_leaves_points_out_says_why() {
    let terminal = terminal();
    terminal.write("bad.tick", "stream | from('cpu') | where(value > 'x')\n");
    let said = terminal.run("replay points.lp --task bad.tick --task count.tick");
    assert_eq!(said.code, Some(0), "{said:?}");
    let told = "task bad: where1 left out 3 points";
    assert!(said.stderr.contains(told), "{said:?}");
    assert!(said.stderr.contains("float > string"), "{said:?}");
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
        ("show", &["<TASK>", "corsair-stream --help"]),
        ("", &["`corsair-stream serve`", "`corsair-stream show`"]),
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

/// A server, ended with the test.
pub struct Server {
    pub child: Child,
    pub address: String,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Server {
    pub fn start(terminal: &Terminal, args: &str) -> Server {
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

    pub fn post(&self, path: &str, body: &str) -> String {
        self.send("POST", path, body)
    }

    pub fn send(&self, method: &str, path: &str, body: &str) -> String {
        let length = body.len();
        self.request(&format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
    }

    /// Sends a signal and waits for the end. Returns the output since the start, and the exit code.
    #[cfg(unix)]
    pub fn end(&mut self, name: &str) -> (String, String, Option<i32>) {
        signal(name, &self.child);
        let (mut out, mut err) = (String::new(), String::new());
        self.stdout.read_to_string(&mut out).unwrap();
        let stderr = self.child.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut err).unwrap();
        (out, err, self.child.wait().unwrap().code())
    }

    pub fn get(&self, path: &str) -> String {
        self.request(&format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        ))
    }
}

#[test]
fn a_task_of_a_server_is_shown_or_why_it_is_not() {
    let terminal = terminal();
    let server = Server::start(&terminal, "--task count.tick");
    let at = format!("--server http://{}/", server.address);
    let svg = terminal.succeed(&format!("show count {at}"));
    assert!(
        svg.starts_with("<svg ") && svg.contains(">window1<"),
        "{svg}"
    );
    let dot = terminal.succeed(&format!("show count {at} --format dot"));
    assert!(dot.starts_with("digraph"), "{dot}");
    let said = terminal.refuse(&format!("show cuont {at}"));
    assert!(said.contains("did you mean `count`?"), "{said}");
    let said = terminal.refuse(&format!("show ../metrics {at}"));
    assert!(said.contains("no task is called"), "{said}");
    let said = terminal.refuse("show count --server http://127.0.0.1:1");
    assert!(said.contains("start `corsair-stream serve`"), "{said}");
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
    let mut log = log.lines();
    assert_eq!(log.next(), Some("count cpu count=2i 10000000000"));
    // A window that is not full is not logged as a result.
    let rest = log.next().unwrap();
    assert!(
        rest.contains("1 points in windows that are not full"),
        "{rest}"
    );
    assert!(rest.contains("--data"), "{rest}");
    assert_eq!(log.next(), None);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[cfg(unix)]
#[test]
fn tasks_and_windows_are_there_after_the_next_start() {
    let terminal = terminal();
    let mut server = Server::start(&terminal, "--data d --task count.tick");
    let task = r#"{"name": "sum", "text": "stream | from('cpu') | window(20s, every 20s) | sum(value) | http_out('sums')", "capacity": 7}"#;
    assert!(server.post("/tasks", task).starts_with("HTTP/1.1 201"));
    let gone = r#"{"name": "gone", "text": "stream | from('cpu')"}"#;
    assert!(server.post("/tasks", gone).starts_with("HTTP/1.1 201"));
    let delete = "DELETE /tasks/gone HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert!(server.request(delete).starts_with("HTTP/1.1 204"));
    assert!(
        server
            .post("/write?db=db", LINES)
            .starts_with("HTTP/1.1 204")
    );
    let said = server.end("-TERM");
    assert!(said.0.contains("4 points and bodies saved"), "{said:?}");
    assert_eq!(said.2, Some(0));
    let mut server = Server::start(&terminal, "--data d --task count.tick");
    assert!(server.get("/tasks/gone").starts_with("HTTP/1.1 404"));
    let more = "cpu,host=a value=10 15000000000\ncpu,host=a value=0 31000000000\n";
    assert!(
        server
            .post("/write?db=db", more)
            .starts_with("HTTP/1.1 204")
    );
    let shown = loop {
        let shown = server.get("/tasks/sum/sums");
        if shown.contains("values") {
            break shown;
        }
    };
    assert!(shown.contains("[[20000000000,16.0]]"), "{shown}");
    let said = server.end("-TERM");
    assert!(
        said.1.contains("count cpu count=2i 20000000000"),
        "{said:?}"
    );
}

/// Waits until the state is saved again, with everything that was written before.
#[cfg(unix)]
fn saved_after(file: &std::path::Path, before: Option<Vec<u8>>) -> Vec<u8> {
    for _ in 0..20_000 {
        match std::fs::read(file) {
            Ok(bytes) if Some(&bytes) != before.as_ref() => return bytes,
            _ => std::thread::sleep(std::time::Duration::from_millis(1)),
        }
    }
    panic!("nothing new was saved to {}", file.display());
}

#[cfg(unix)]
#[test]
fn windows_joins_counts_and_levels_go_on_after_a_kill() {
    let terminal = terminal();
    let tasks = [
        (
            "sum",
            "stream | from('m') | groupBy('h') | window(10s) | sum(v) | http_out('o')",
        ),
        (
            "last",
            "stream | from('m') | groupBy('h') | window().periodCount(4).everyCount(4) | max(v) | http_out('o')",
        ),
        (
            "state",
            "stream | from('m') | groupBy('h') | stateCount(v > 0) | http_out('o')",
        ),
        (
            "rate",
            "stream | from('m') | groupBy('h') | derivative(v) | http_out('o')",
        ),
        (
            "join",
            "var a = stream | from('m') | groupBy('h') var b = stream | from('n') | groupBy('h') a | join(b) | http_out('o')",
        ),
        (
            "level",
            "stream | from('m') | groupBy('h') | alert().crit(v > 0).stateChangesOnly() | count(v) | http_out('o')",
        ),
    ];
    let parts = [
        "m,h=a v=1i 1\nm,h=b v=2i 1\n",
        "m,h=a v=3i 2\nn,h=a w=7i 1\n",
        "m,h=b v=4i 3\nn,h=b w=8i 1\nm,h=a v=5i 4\n",
        "m,h=a v=6i 5\nm,h=b v=7i 6\nn,h=a w=9i 4\nm,h=b v=1i 7\n",
        "m,h=a v=1i 20\nm,h=b v=1i 21\nn,h=b w=1i 7\nn,h=a w=1i 20\nm,h=a v=-1i 22\n",
    ];
    let run = |directory: &str, kills: bool| {
        let flags = format!("--data {directory} --checkpoint 0.01");
        let file = terminal.path(directory).join("saved");
        let mut server = Server::start(&terminal, &flags);
        for (name, text) in tasks {
            let body = format!(r#"{{"name": "{name}", "text": "{text}"}}"#);
            let answer = server.post("/tasks", &body);
            assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        }
        let mut saved = Some(saved_after(&file, None));
        for part in parts {
            let answer = server.post("/write?db=db&precision=s", part);
            assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
            if kills {
                saved = Some(saved_after(&file, saved));
                // The checkpoint after this one has begun after the write.
                std::thread::sleep(std::time::Duration::from_millis(200));
                saved = std::fs::read(&file).ok().or(saved);
                server.child.kill().unwrap();
                server.child.wait().unwrap();
                server = Server::start(&terminal, &flags);
            }
        }
        let shown = |(name, _): (&str, &str)| {
            // The last write may still be in progress.
            std::thread::sleep(std::time::Duration::from_millis(200));
            let shown = server.get(&format!("/tasks/{name}/o"));
            let body = shown.rsplit("\r\n\r\n").next().unwrap().to_owned();
            assert_eq!(body.matches("values").count(), 2, "{name}: {body}");
            body
        };
        tasks[..5].iter().copied().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(run("killed", true), run("whole", false));
}

#[cfg(unix)]
#[test]
fn a_second_process_on_a_data_directory_is_refused() {
    let terminal = terminal();
    let _first = Server::start(&terminal, "--data d");
    let output = terminal
        .command("serve --addr 127.0.0.1:0 --data d")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("another process uses d as its data directory"),
        "{said}"
    );
}

// Guarantee: stream-8.
#[cfg(unix)]
#[test]
fn a_stop_ends_within_its_time_with_half_sent_bodies_and_hung_receivers_and_loses_nothing() {
    let terminal = terminal();
    // Other tests bind ports of 127.0.0.1, and this one is bound again below.
    let hung = std::net::TcpListener::bind("127.0.0.2:0").unwrap();
    let address = hung.local_addr().unwrap();
    let text = format!("stream | from('cpu') | http_post('http://{address}/hook')\n");
    terminal.write("post.tick", &text);
    let tasks = "--data d --shutdown 1 --task count.tick post.tick";
    let mut server = Server::start(&terminal, tasks);
    let half: Vec<TcpStream> = (0..5)
        .map(|_| {
            let mut socket = TcpStream::connect(&server.address).unwrap();
            let head = "POST /write?db=db HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n";
            socket.write_all(head.as_bytes()).unwrap();
            socket.write_all(LINES.as_bytes()).unwrap();
            socket
        })
        .collect();
    for _ in 0..3 {
        assert!(
            server
                .post("/write?db=db", LINES)
                .starts_with("HTTP/1.1 204")
        );
    }
    let said = server.end("-TERM");
    assert_eq!(said.2, Some(0), "{said:?}");
    assert!(said.0.contains("points and bodies saved"), "{said:?}");
    drop(half);
    drop(hung);
    // At the next start the receiver is there.
    let listener = std::net::TcpListener::bind(address).unwrap();
    let receiver = std::thread::spawn(move || received(listener, 3));
    let mut server = Server::start(&terminal, tasks);
    let received = receiver.join().unwrap();
    assert!(received.iter().all(|body| body.contains("cpu")));
    server.end("-TERM");
}

/// Bodies that a receiver gets until it has had a number of them.
#[cfg(unix)]
fn received(listener: std::net::TcpListener, most: usize) -> Vec<String> {
    let mut received = Vec::new();
    while received.len() < most {
        let (socket, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(socket);
        while received.len() < most {
            let (mut length, mut line) = (0, String::new());
            while reader.read_line(&mut line).unwrap() > 2 {
                let header = line.to_ascii_lowercase();
                if let Some(value) = header.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            if length == 0 {
                break;
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            received.push(String::from_utf8(body).unwrap());
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            reader.get_mut().write_all(answer).unwrap();
        }
    }
    received
}

// Guarantee: stream-8.
#[cfg(unix)]
#[test]
fn a_second_signal_ends_a_stop_at_once_and_loses_nothing() {
    let terminal = terminal();
    // Other tests bind ports of 127.0.0.1, and this one is bound again below.
    let hung = std::net::TcpListener::bind("127.0.0.2:0").unwrap();
    let address = hung.local_addr().unwrap();
    let text = format!("stream | from('cpu') | http_post('http://{address}/hook')\n");
    terminal.write("post.tick", &text);
    // A stop of an hour, which the test would not survive.
    let tasks = "--data d --shutdown 3600 --post-timeout 3600 --task post.tick";
    let mut server = Server::start(&terminal, tasks);
    for at in 0..20 {
        let line = format!("cpu value={at} {at}\n");
        assert!(
            server
                .post("/write?db=db", &line)
                .starts_with("HTTP/1.1 204")
        );
    }
    signal("-TERM", &server.child);
    let mut line = String::new();
    while !line.contains("ending") {
        line.clear();
        server.stdout.read_line(&mut line).unwrap();
    }
    let said = server.end("-INT");
    assert_eq!(said.2, Some(0), "{said:?}");
    assert!(said.0.contains("20 points and bodies saved"), "{said:?}");
    drop(hung);
    // Another program may use the port for a moment.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let listener = loop {
        match std::net::TcpListener::bind(address) {
            Ok(listener) => break listener,
            Err(error) => assert!(std::time::Instant::now() < until, "{error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    let receiver = std::thread::spawn(move || received(listener, 20));
    let mut server = Server::start(&terminal, "--data d --task post.tick");
    let received = receiver.join().unwrap();
    for (at, body) in received.iter().enumerate() {
        assert!(body.contains(&format!("{at}.0")), "{at}: {body}");
    }
    server.end("-TERM");
}

// Guarantee: stream-1.
#[cfg(unix)]
#[test]
fn a_stderr_that_is_not_read_stops_neither_a_task_nor_the_stop() {
    let terminal = terminal();
    terminal.write("log.tick", "stream | from('cpu') | log()\n");
    for task in 0..4 {
        let text = format!("stream | from('cpu') | where(value > 'x') | http_out('o{task}')\n");
        terminal.write(&format!("bad{task}.tick"), &text);
    }
    terminal.write("good.tick", "stream | from('cpu') | http_out('seen')\n");
    let tasks = "--shutdown 0.5 --task log.tick bad0.tick bad1.tick bad2.tick bad3.tick good.tick";
    let mut server = Server::start(&terminal, tasks);
    // Much more than the capacity of a pipe.
    let lines = "cpu value=1 1\n".repeat(20_000);
    assert!(
        server
            .post("/write?db=db", &lines)
            .starts_with("HTTP/1.1 204")
    );
    let last = "cpu value=7 7\n";
    assert!(
        server
            .post("/write?db=db", last)
            .starts_with("HTTP/1.1 204")
    );
    while !server.get("/tasks/good/seen").contains("7.0") {}
    let shown = loop {
        let shown = server.get("/tasks/bad3");
        if shown.contains("\"errors\":20001") {
            break shown;
        }
    };
    assert!(shown.contains("\"state\":\"running\""), "{shown}");
    signal("-TERM", &server.child);
    // The server ends although no line was read.
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn sixty_half_sent_bodies_of_sixteen_megabytes_take_less_than_200_mb() {
    let terminal = terminal();
    let server = Server::start(&terminal, "--task count.tick --patience 0.5");
    let part = vec![b'x'; 8 << 20];
    let senders: Vec<_> = (0..60)
        .map(|_| {
            let (address, part) = (server.address.clone(), part.clone());
            std::thread::spawn(move || {
                let mut socket = TcpStream::connect(address).unwrap();
                let head =
                    "POST /write?db=db HTTP/1.1\r\nHost: x\r\nContent-Length: 16777216\r\n\r\n";
                socket.write_all(head.as_bytes()).unwrap();
                // Those for which there is no memory are refused, and their connection is closed.
                let _ = socket.write_all(&part);
                socket
            })
        })
        .collect();
    let sockets: Vec<_> = senders
        .into_iter()
        .map(|sender| sender.join().unwrap())
        .collect();
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    let peak: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(peak < 200_000, "{peak} kB");
    assert!(server.get("/ping").starts_with("HTTP/1.1 204"));
    drop(sockets);
}

#[test]
fn an_address_in_use_is_told() {
    let terminal = terminal();
    let server = Server::start(&terminal, "");
    let said = terminal.run(&format!("serve --addr {}", server.address));
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains(&server.address), "{said:?}");
}
