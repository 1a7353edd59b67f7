//! Nodes in processes that can be killed.

use corsair_courier_load::client::Http;
use serde_json::Value;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The time limit for the start of a process.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns a port that is currently free.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A node in a separate process, which is killed when this value is dropped.
pub struct NodeProcess {
    child: Child,
    port: u16,
    pub data: PathBuf,
    flags: Vec<String>,
}

impl NodeProcess {
    pub async fn start(port: u16, data: &Path) -> NodeProcess {
        NodeProcess::start_with(port, data, &[]).await
    }

    /// Starts a node like [`NodeProcess::start`], with additional flags.
    pub async fn start_with(port: u16, data: &Path, more: &[&str]) -> NodeProcess {
        let node = NodeProcess::spawn(port, data, more);
        node.ready().await;
        node
    }

    /// Starts a node like [`NodeProcess::start_with`], without waiting for it.
    pub fn spawn(port: u16, data: &Path, more: &[&str]) -> NodeProcess {
        let flags: Vec<String> = more.iter().map(|&flag| flag.to_owned()).collect();
        NodeProcess {
            child: spawn(port, data, &flags, Stdio::inherit()),
            port,
            data: data.to_owned(),
            flags,
        }
    }

    /// Returns the error of a node that cannot start.
    pub fn refused(port: u16, data: &Path, more: &[&str]) -> String {
        let flags: Vec<String> = more.iter().map(|&flag| flag.to_owned()).collect();
        let output = spawn(port, data, &flags, Stdio::piped())
            .wait_with_output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.unwrap().success());
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

    /// Starts it again on the same port and directory, without waiting for it.
    pub fn start_again(&mut self) {
        let stderr = Stdio::inherit();
        self.child = spawn(self.port, &self.data, &self.flags, stderr);
    }

    /// Restarts it on the same port and directory.
    pub async fn restart(&mut self) {
        self.start_again();
        self.ready().await;
    }

    pub async fn ready(&self) {
        self.answers(200, PATIENCE).await;
    }

    /// Waits until `GET /readyz` is answered with this status, and returns the body.
    pub async fn answers(&self, status: u16, patience: Duration) -> String {
        let begun = Instant::now();
        let host = self.host();
        let mut last = None;
        while begun.elapsed() < patience {
            if let Ok(mut http) = Http::connect(&host).await
                && let Ok((found, body)) = http.send(hyper::Method::GET, "/readyz", &[], "").await
            {
                let body = String::from_utf8_lossy(&body).into_owned();
                if found.as_u16() == status {
                    return body;
                }
                last = Some((found, body));
            }
            sleep(Duration::from_millis(20)).await;
        }
        panic!("the node at {host} does not answer {status}: {last:?}");
    }

    /// Runs a command of the program on the data of this node, and returns its exit code and its output.
    pub fn command(&self, command: &str, more: &[&str]) -> (Option<i32>, String) {
        let data = self.data.to_str().unwrap();
        program(&[&[command, "--data", data], more].concat())
    }

    /// Returns the members, as this node knows them.
    pub fn members(&self) -> Value {
        let (code, said) = self.command("members", &[]);
        assert_eq!(code, Some(0), "{said}");
        serde_json::from_str(&said).unwrap()
    }
}

/// Runs the program, and returns its exit code and its output.
pub fn program(arguments: &[&str]) -> (Option<i32>, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_corsair-courier"))
        .args(arguments)
        .output()
        .unwrap();
    let said = [run.stdout, run.stderr].concat();
    (run.status.code(), String::from_utf8(said).unwrap())
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
