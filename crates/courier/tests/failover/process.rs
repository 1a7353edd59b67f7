//! Processes that can be killed: nodes, and a NATS server.

use corsair_courier_load::client::Http;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// No process takes longer to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is in the key file of all nodes.
pub const NODES_KEY: &str = "a key that the nodes of a test share";

/// A port that is free now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A node in a process of its own; killed when this is dropped.
pub struct NodeProcess {
    child: Child,
    port: u16,
    data: PathBuf,
    nats: Option<String>,
}

impl NodeProcess {
    pub async fn start(port: u16, data: &Path, nats: Option<&str>) -> NodeProcess {
        let node = NodeProcess {
            child: spawn(port, data, nats, Stdio::inherit()),
            port,
            data: data.to_owned(),
            nats: nats.map(str::to_owned),
        };
        node.ready().await;
        node
    }

    /// What a node says that cannot start.
    pub fn refused(port: u16, data: &Path) -> String {
        let child = spawn(port, data, None, Stdio::piped());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// SIGKILL: the process has no time for anything.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it anew on the same port and directory.
    pub async fn restart(&mut self) {
        let stderr = Stdio::inherit();
        self.child = spawn(self.port, &self.data, self.nats.as_deref(), stderr);
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

fn spawn(port: u16, data: &Path, nats: Option<&str>, stderr: Stdio) -> Child {
    let many = u32::MAX.to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_corsair-courier"));
    command
        .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
        .args(["--rate", &many, "--strangers", &many, "--fanout", &many])
        .args(["--password-memory", "8", "--data"])
        .arg(data)
        .stdout(Stdio::null())
        .stderr(stderr);
    if let Some(nats) = nats {
        let key = data.with_file_name("nodes.key");
        std::fs::write(&key, NODES_KEY).unwrap();
        command.args(["--nats", nats, "--nats-key"]).arg(key);
    }
    command.spawn().unwrap()
}

/// A NATS server with JetStream; killed when this is dropped.
pub struct Nats {
    child: Child,
    port: u16,
    data: PathBuf,
}

impl Nats {
    pub async fn start(port: u16, data: &Path) -> Nats {
        let nats = Nats {
            child: nats_server(port, data),
            port,
            data: data.to_owned(),
        };
        nats.ready().await;
        nats
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Kills the server and starts it anew on its data.
    pub async fn restart(&mut self) {
        self.kill();
        sleep(Duration::from_secs(1)).await;
        self.start_again().await;
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub async fn start_again(&mut self) {
        self.child = nats_server(self.port, &self.data);
        self.ready().await;
    }

    /// Where its data are.
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

fn nats_server(port: u16, data: &Path) -> Child {
    // Debian has it where only root looks.
    let sbin = Path::new("/usr/sbin/nats-server");
    let program = if sbin.exists() {
        sbin
    } else {
        Path::new("nats-server")
    };
    Command::new(program)
        .args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"])
        .arg(data)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nats-server is installed (apt-get install nats-server)")
}
