//! Clients that write to a server as fast as it accepts lines, each over its own connection.
//!
//! A client uses little processor time: it creates its bodies before the measurement, and reads only the head of each
//! answer.

use std::fmt::Write;
use std::io;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The parameters of the clients.
#[derive(Clone, Debug)]
pub struct Writers {
    /// The address of the server, such as `127.0.0.1:9092`.
    pub address: String,
    /// The token of the server, if it requires one.
    pub token: Option<String>,
    /// The number of clients.
    pub writers: usize,
    /// The number of lines in a body.
    pub lines: usize,
    /// The number of different values of the tag `host`.
    pub hosts: usize,
    /// The number of measurements.
    pub measurements: usize,
    /// The duration of writing.
    pub time: Duration,
}

/// The result of the clients.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wrote {
    /// The number of lines in writes that were answered with 204.
    pub lines: u64,
    /// The number of bytes in the bodies of these writes.
    pub bytes: u64,
    /// The number of writes that were answered with 503 and repeated.
    pub busy: u64,
    /// The time from the first write to the last answer.
    pub time: Duration,
}

/// The time of the first line of a body, in seconds.
const BEGIN: usize = 1_700_000_000;
/// The number of bodies of a client, which are written in turn.
const BODIES: usize = 8;
/// The pause before a refused write is repeated.
const PAUSE: Duration = Duration::from_millis(5);

/// Writes until the time is up and returns how much the server accepted.
///
/// # Errors
/// The connection failed, or an answer was neither 204 nor 503.
pub async fn write(writers: &Writers) -> io::Result<Wrote> {
    let requests: Vec<Vec<Vec<u8>>> = (0..writers.writers)
        .map(|writer| {
            let bodies = 0..BODIES;
            bodies.map(|body| request(writers, writer, body)).collect()
        })
        .collect();
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for requests in requests {
        let stream = TcpStream::connect(&writers.address).await?;
        stream.set_nodelay(true)?;
        clients.spawn(client(
            stream,
            requests,
            writers.lines,
            begun + writers.time,
        ));
    }
    let mut all = Wrote::default();
    while let Some(ended) = clients.join_next().await {
        let wrote = ended.map_err(io::Error::other)??;
        all.lines += wrote.lines;
        all.bytes += wrote.bytes;
        all.busy += wrote.busy;
    }
    all.time = begun.elapsed();
    Ok(all)
}

/// Returns a request with its body. The lines have consecutive seconds, and use the hosts and the measurements in turn.
fn request(writers: &Writers, writer: usize, body: usize) -> Vec<u8> {
    let mut lines = String::new();
    for at in 0..writers.lines {
        let measurement = (writer + body) % writers.measurements.max(1);
        let host = at % writers.hosts.max(1);
        let time = BEGIN + body * writers.lines + at;
        let value = (at * 7 + writer) % 1000;
        let _ = writeln!(
            lines,
            "m{measurement},host=h{host},writer=w{writer} value={value}.5 {time}"
        );
    }
    let token = match &writers.token {
        Some(token) => format!("authorization: Bearer {token}\r\n"),
        None => String::new(),
    };
    let head = format!(
        "POST /write?db=load&precision=s HTTP/1.1\r\nhost: {}\r\n{token}content-length: {}\r\n\r\n",
        writers.address,
        lines.len()
    );
    [head.into_bytes(), lines.into_bytes()].concat()
}

async fn client(
    stream: TcpStream,
    requests: Vec<Vec<u8>>,
    lines: usize,
    end: Instant,
) -> io::Result<Wrote> {
    let mut stream = BufReader::new(stream);
    let mut wrote = Wrote::default();
    let mut next = 0;
    while Instant::now() < end {
        let request = &requests[next % requests.len()];
        stream.get_mut().write_all(request).await?;
        match answer(&mut stream).await? {
            204 => {
                next += 1;
                wrote.lines += lines as u64;
                wrote.bytes += request.len() as u64;
            }
            503 => {
                wrote.busy += 1;
                let address = stream.get_ref().peer_addr()?;
                tokio::time::sleep(PAUSE).await;
                // The server closes the connection after a refusal.
                stream = BufReader::new(TcpStream::connect(address).await?);
            }
            status => {
                let message = format!("a write was answered with {status}");
                return Err(io::Error::other(message));
            }
        }
    }
    Ok(wrote)
}

/// Reads an answer and returns its status.
async fn answer(stream: &mut BufReader<TcpStream>) -> io::Result<u16> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("no answer but `{line}`")))?;
    let mut length = 0;
    loop {
        line.clear();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(status)
}
