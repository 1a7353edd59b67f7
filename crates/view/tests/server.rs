//! Tests of the page's server with plain sockets: access control, the viewer that has the controls, and that a page
//! which does not draw gets no further frames.
#![cfg(feature = "server")]

use corsair::{CancelToken, Config};
use corsair_arch::{Plan, Scale, Topology, read};
use corsair_view::{Server, Services, Session};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// A session of LAMP whose page is served while `visit` runs.
fn served(visit: impl FnOnce(&str, &str) + Send) {
    let topology = Topology::new(
        &read("lamp", Path::new("nowhere")).unwrap(),
        Scale::default(),
    );
    let plan = Plan {
        duration: Duration::from_secs(60),
        ..Plan::default()
    };
    let world = Services::new(&Config::default(), topology.unwrap(), &plan).unwrap();
    let (session, handle) = Session::new(world, Default::default(), None);
    let server = Server::start("127.0.0.1:0".parse().unwrap(), handle).unwrap();
    let url = server.url();
    let (host, path) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let (host, path) = (host.to_owned(), format!("/{path}"));
    let cancel = CancelToken::default();
    std::thread::scope(|scope| {
        let ends = cancel.clone();
        let visitor = scope.spawn(move || {
            let visited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                visit(&host, &path);
            }));
            ends.cancel();
            visited
        });
        session.run(&cancel);
        visitor.join().unwrap().unwrap();
    });
    drop(server);
}

fn connect(host: &str) -> TcpStream {
    let stream = TcpStream::connect(host).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream
}

/// Reads the head of an answer.
fn head(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

fn get(host: &str, path: &str) -> String {
    let mut stream = connect(host);
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    head(&mut stream)
}

/// A page's socket.
#[derive(Debug)]
struct Page(TcpStream);

impl Page {
    /// Opens the socket, or returns the status with which it was refused.
    fn open(host: &str, path: &str, origin: Option<&str>) -> Result<Page, String> {
        let mut stream = connect(host);
        let origin = origin.map_or(String::new(), |origin| format!("Origin: {origin}\r\n"));
        write!(
            stream,
            "GET {path}socket HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{origin}\r\n"
        )
        .unwrap();
        let head = head(&mut stream);
        let status = head.split(' ').nth(1).unwrap().to_owned();
        if status == "101" {
            Ok(Page(stream))
        } else {
            Err(status)
        }
    }

    /// Returns the next message: true if it is text, and its bytes; `None` if no message arrives in time.
    fn next(&mut self) -> Option<(bool, Vec<u8>)> {
        let mut start = [0; 2];
        self.0.read_exact(&mut start).ok()?;
        let length = match start[1] {
            126 => {
                let mut length = [0; 2];
                self.0.read_exact(&mut length).ok()?;
                u16::from_be_bytes(length).into()
            }
            127 => {
                let mut length = [0; 8];
                self.0.read_exact(&mut length).ok()?;
                u64::from_be_bytes(length)
            }
            length => length.into(),
        };
        let mut bytes = vec![0; length as usize];
        self.0.read_exact(&mut bytes).ok()?;
        Some((start[0] & 15 == 1, bytes))
    }

    /// Returns the result of `of` for the next text for which there is one.
    fn find<T>(&mut self, of: impl Fn(&Value) -> Option<T>) -> T {
        loop {
            let (is_text, bytes) = self.next().expect("a message");
            if is_text && let Some(found) = of(&serde_json::from_slice(&bytes).unwrap()) {
                return found;
            }
        }
    }

    /// Sends a message of the page, masked as browsers do.
    fn say(&mut self, what: &Value) {
        let text = what.to_string();
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend((text.len() as u16).to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.0.write_all(&frame).unwrap();
    }

    fn ask(&mut self, id: u64, what: Value) -> Value {
        self.say(&json!({ "id": id, "ask": what }));
        self.find(|said| (said["type"] == "answer" && said["id"] == id).then(|| said.clone()))
    }

    fn controls(&mut self) -> bool {
        self.find(|said| (said["type"] == "controls").then(|| said["has"] == true))
    }
}

#[test]
fn only_the_token_opens_the_page_and_only_the_own_page_a_socket() {
    served(|host, path| {
        let page = get(host, path);
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        assert!(
            page.contains("content-security-policy: default-src 'none';"),
            "{page}"
        );
        assert!(!page.contains("unsafe"), "{page}");
        for file in [
            "app.js",
            "graph.js",
            "charts.js",
            "panels.js",
            "socket.js",
            "style.css",
        ] {
            assert!(
                get(host, &format!("{path}{file}")).starts_with("HTTP/1.1 200"),
                "{file}"
            );
        }
        let other = format!("/{}/", "0".repeat(32));
        for wrong in [
            "/",
            "/index.html",
            "//",
            &other,
            &format!("{path}../Cargo.toml"),
            &format!("{path}server.rs"),
        ] {
            assert!(get(host, wrong).starts_with("HTTP/1.1 404"), "{wrong}");
        }
        let refused = |path: &str, origin| Page::open(host, path, origin).err();
        assert_eq!(refused(&other, None).as_deref(), Some("404"));
        assert_eq!(
            refused(path, Some("http://evil.example")).as_deref(),
            Some("403")
        );
        assert_eq!(refused(path, Some("null")).as_deref(), Some("403"));
        let own = format!("http://{host}");
        assert!(Page::open(host, path, Some(&own)).is_ok());
    });
}

#[test]
fn a_foreign_host_name_opens_neither_the_page_nor_a_socket() {
    served(|host, path| {
        let port = host.rsplit_once(':').unwrap().1;
        let status = |name: &str, file: &str| {
            let mut stream = connect(host);
            let request = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                           Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
            write!(
                stream,
                "GET {path}{file} HTTP/1.1\r\nHost: {name}\r\n{request}\r\n\r\n"
            )
            .unwrap();
            head(&mut stream).split(' ').nth(1).unwrap().to_owned()
        };
        for evil in ["evil.example".to_owned(), format!("rebound.example:{port}")] {
            assert_eq!(status(&evil, ""), "421", "{evil}");
            assert_eq!(status(&evil, "socket"), "421", "{evil}");
        }
        assert_eq!(status(&format!("localhost:{port}"), ""), "200");
        assert_eq!(status("localhost:1234", "socket"), "101");
    });
}

#[test]
fn a_server_at_every_address_warns_and_shows_a_url_that_works() {
    let topology = Topology::new(
        &read("lamp", Path::new("nowhere")).unwrap(),
        Scale::default(),
    );
    let start = |address: &str| {
        let world = Services::new(
            &Config::default(),
            topology.clone().unwrap(),
            &Plan::default(),
        );
        let (session, handle) = Session::new(world.unwrap(), Default::default(), None);
        let server = Server::start(address.parse().unwrap(), handle).unwrap();
        drop(session);
        (server.url(), server.warning())
    };
    let (url, warning) = start("0.0.0.0:0");
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    assert!(warning.unwrap().contains("other machines"));
    assert_eq!(start("127.0.0.1:0").1, None);
}

#[test]
fn one_page_holds_the_controls_and_gives_them_up() {
    served(|host, path| {
        let mut first = Page::open(host, path, None).unwrap();
        assert!(first.controls());
        let mut second = Page::open(host, path, None).unwrap();
        assert!(!second.controls());
        let refused = second.ask(1, json!({ "control": "play" }));
        assert!(
            refused["wrong"].as_str().unwrap().contains("another page"),
            "{refused}"
        );
        assert!(second.ask(2, json!({ "look": { "find": "www" } }))["wrong"].is_null());
        second.say(&json!({ "take": true }));
        assert!(second.controls());
        assert!(first.ask(3, json!({ "control": "pause" }))["wrong"].is_string());
        assert!(second.ask(4, json!({ "control": { "step": "window" } }))["wrong"].is_null());
        drop(second);
        while !first.controls() {}
        assert!(first.ask(5, json!({ "control": "pause" }))["wrong"].is_null());
        // A request that is not understood gets an error, and the connection stays open.
        first.say(&json!({ "id": 6, "ask": { "fly": 1 } }));
        let wrong = first.find(|said| said["wrong"].as_str().map(str::to_owned));
        assert!(wrong.contains("not understood"), "{wrong}");
        assert!(first.ask(7, json!("save"))["value"]["digest"].is_string());
    });
}

#[test]
fn a_page_that_draws_nothing_gets_one_frame_and_then_the_newest() {
    served(|host, path| {
        let mut page = Page::open(host, path, None).unwrap();
        assert!(page.ask(1, json!({ "control": { "speed": null } }))["wrong"].is_null());
        assert!(page.ask(2, json!({ "control": "play" }))["wrong"].is_null());
        std::thread::sleep(Duration::from_millis(500));
        // Apart from the frame that was sent before, no further frame has arrived until now.
        let series = json!({ "series": "all" });
        page.say(&json!({ "id": 3, "ask": series }));
        let mut frames = 0;
        loop {
            let (is_text, bytes) = page.next().unwrap();
            if !is_text {
                frames += 1;
            } else if serde_json::from_slice::<Value>(&bytes).unwrap()["id"] == 3 {
                break;
            }
        }
        assert!(frames <= 1, "{frames}");
        page.say(&json!({ "drawn": true }));
        let newest = loop {
            let (is_text, bytes) = page.next().unwrap();
            if !is_text {
                break f64::from_le_bytes(bytes[24..32].try_into().unwrap());
            }
        };
        assert!(newest > 0.1, "{newest}");
    });
}

#[test]
fn at_most_sixteen_watch() {
    served(|host, path| {
        let pages: Vec<Page> = (0..16)
            .map(|_| Page::open(host, path, None).expect("there is room"))
            .collect();
        assert_eq!(Page::open(host, path, None).err().as_deref(), Some("503"));
        drop(pages);
        let again = || Page::open(host, path, None).is_ok();
        let patience = 200;
        assert!((0..patience).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            again()
        }));
    });
}
