//! Processes that can be killed: nodes and a NATS server.

use corsair_courier_load::client::Http;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The time limit for the start of a process.
const PATIENCE: Duration = Duration::from_secs(30);

/// The contents of the key file of all nodes.
pub const NODES_KEY: &str = "a key that the nodes of a test share";

/// Returns a port that is currently free.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A node in a separate process, which is killed when this value is dropped.
pub struct NodeProcess {
    child: Child,
    port: u16,
    data: PathBuf,
    flags: Vec<String>,
}

impl NodeProcess {
    pub async fn start(port: u16, data: &Path, nats: Option<&str>) -> NodeProcess {
        NodeProcess::start_with(port, data, nats, &[]).await
    }

    /// Starts a node like [`NodeProcess::start`], with additional flags.
    pub async fn start_with(
        port: u16,
        data: &Path,
        nats: Option<&str>,
        more: &[&str],
    ) -> NodeProcess {
        let mut flags: Vec<String> = more.iter().map(|&flag| flag.to_owned()).collect();
        if let Some(nats) = nats {
            flags.extend(with_nats(data, nats));
        }
        let node = NodeProcess {
            child: spawn(port, data, &flags, Stdio::inherit()),
            port,
            data: data.to_owned(),
            flags,
        };
        node.ready().await;
        node
    }

    /// Returns the error of a node that cannot start.
    pub fn refused(port: u16, data: &Path) -> String {
        NodeProcess::refused_for(spawn(port, data, &[], Stdio::piped()))
    }

    /// Returns the error of this node, which has ended and cannot start again.
    pub fn refuses(&self) -> String {
        let flags = &self.flags;
        NodeProcess::refused_for(spawn(self.port, &self.data, flags, Stdio::piped()))
    }

    /// Returns the error of a node that cannot join other nodes.
    pub fn refused_with(port: u16, data: &Path, nats: &str, more: &[&str]) -> String {
        let mut flags = with_nats(data, nats);
        flags.extend(more.iter().map(|&flag| flag.to_owned()));
        NodeProcess::refused_for(spawn(port, data, &flags, Stdio::piped()))
    }

    fn refused_for(child: Child) -> String {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: &str) {
        self::signal(signal, &self.child);
    }

    /// Sends SIGTERM: the process saves its data and ends.
    pub fn stop(&mut self) {
        self.signal("-TERM");
        self.child.wait().unwrap();
    }

    /// Sends SIGKILL: the process ends at once.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Restarts it on the same port and directory.
    pub async fn restart(&mut self) {
        let stderr = Stdio::inherit();
        self.child = spawn(self.port, &self.data, &self.flags, stderr);
        self.ready().await;
    }

    async fn ready(&self) {
        let begun = Instant::now();
        let host = self.host();
        while begun.elapsed() < PATIENCE {
            if let Ok(mut http) = Http::connect(&host).await
                && let Ok((status, _)) = http.send(hyper::Method::GET, "/ping", &[], "").await
                && status.is_success()
            {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
        panic!("the node at {host} does not start");
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn with_nats(data: &Path, nats: &str) -> Vec<String> {
    let key = data.with_file_name("nodes.key");
    std::fs::write(&key, NODES_KEY).unwrap();
    let key = key.to_str().unwrap();
    ["--nats", nats, "--nats-key", key]
        .map(str::to_owned)
        .into()
}

fn spawn(port: u16, data: &Path, flags: &[String], stderr: Stdio) -> Child {
    let many = u32::MAX.to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_corsair-courier"));
    command
        .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
        .args(["--rate", &many, "--strangers", &many, "--fanout", &many])
        .args(["--password-memory", "8", "--data"])
        .arg(data)
        .args(flags)
        .stdout(Stdio::null())
        .stderr(stderr);
    command.spawn().unwrap()
}

/// A NATS server with JetStream, which is killed when this value is dropped.
pub struct Nats {
    child: Child,
    port: u16,
    data: PathBuf,
    configuration: Option<PathBuf>,
}

impl Nats {
    pub async fn start(port: u16, data: &Path) -> Nats {
        Nats::start_with(port, data, None).await
    }

    /// Starts a server like [`Nats::start`], with a configuration file.
    pub async fn start_with(port: u16, data: &Path, configuration: Option<&Path>) -> Nats {
        let nats = Nats {
            child: nats_server(port, data, configuration),
            port,
            data: data.to_owned(),
            configuration: configuration.map(Path::to_owned),
        };
        nats.ready().await;
        nats
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Kills the server and restarts it on its data.
    pub async fn restart(&mut self) {
        self.kill();
        sleep(Duration::from_secs(1)).await;
        self.start_again().await;
    }

    /// Sends a signal to the server.
    pub fn signal(&self, signal: &str) {
        self::signal(signal, &self.child);
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub async fn start_again(&mut self) {
        self.child = nats_server(self.port, &self.data, self.configuration.as_deref());
        self.ready().await;
    }

    /// Returns the data directory of the server.
    pub fn data(&self) -> &Path {
        &self.data
    }

    async fn ready(&self) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if tokio::net::TcpStream::connect(("127.0.0.1", self.port))
                .await
                .is_ok()
            {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
        panic!("nats-server does not start");
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn signal(signal: &str, process: &Child) {
    let pid = process.id().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status();
    assert!(sent.unwrap().success());
}

fn nats_server(port: u16, data: &Path, configuration: Option<&Path>) -> Child {
    // Debian installs the server in a directory that is only in root's path.
    let sbin = Path::new("/usr/sbin/nats-server");
    let program = if sbin.exists() {
        sbin
    } else {
        Path::new("nats-server")
    };
    Command::new(program)
        .args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"])
        .arg(data)
        .args(
            configuration
                .into_iter()
                .flat_map(|file| [Path::new("-c"), file]),
        )
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nats-server is installed (apt-get install nats-server)")
}
