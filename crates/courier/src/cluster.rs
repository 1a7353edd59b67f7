//! The members of a cluster: their connections, changes of the members, and copies of the index for new members.
//!
//! Every member opens a connection to every other one, over which it sends its frames. Nodes with the common key and
//! the same cluster are trusted. The leader refuses nodes that are not members.

pub(crate) mod begin;
pub(crate) mod link;
mod serve;
pub(crate) mod wire;

use crate::inner::Inner;
use crate::log::replicated::{Change, Member, Shared, Work};
use crate::metrics::Metrics;
use crate::seal::Key;
use crate::tls::Secure;
use link::{Link, Writer};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{interval, sleep, timeout};
use wire::{Answer, FORMAT, Frame, Hello, Request};

/// The maximum number of frames that wait for one member.
const QUEUE: usize = 128;
/// The interval of signs of life.
const PING: Duration = Duration::from_secs(1);
/// The silence after which a connection is closed.
const SILENCE: Duration = Duration::from_secs(4);
/// The pause before a connection is opened again.
const PAUSE: Duration = Duration::from_millis(100);
/// The time limit of a change of the members.
const PATIENCE: Duration = Duration::from_secs(15);
/// The maximum number of nodes that are connected before this node knows that they are members.
const MOST_STRANGERS: usize = 16;

/// The connections of this node to other members. See the [module](self).
pub(crate) struct Cluster {
    pub shared: Arc<Shared>,
    key: Key,
    secure: Option<Secure>,
    identity: u64,
    /// The address at which this node listens.
    address: String,
    data: PathBuf,
    /// The open connections over which this node sends.
    links: Mutex<HashMap<u64, mpsc::Sender<Frame>>>,
    /// The addresses of nodes that are not known as members.
    strangers: Mutex<HashMap<u64, String>>,
    presence: mpsc::Sender<Vec<u8>>,
    metrics: Metrics,
    /// The permit to make a copy of the index.
    copies: Semaphore,
    /// True if the node has ended.
    over: watch::Sender<bool>,
}

/// The address and the credentials of a node, with which it opens connections.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub key: Key,
    pub secure: Option<Secure>,
    pub address: String,
}

impl Cluster {
    pub fn new(
        shared: Arc<Shared>,
        credentials: Credentials,
        data: &Path,
        presence: mpsc::Sender<Vec<u8>>,
        metrics: Metrics,
    ) -> Cluster {
        let identity = shared.current.borrow().cluster;
        let Credentials {
            key,
            secure,
            address,
        } = credentials;
        Cluster {
            shared,
            key,
            secure,
            identity,
            address,
            data: data.to_owned(),
            links: Mutex::default(),
            strangers: Mutex::default(),
            presence,
            metrics,
            copies: Semaphore::new(1),
            over: watch::Sender::new(false),
        }
    }

    /// True if connections must have a certificate of the cluster's authority.
    pub fn is_secure(&self) -> bool {
        self.secure.is_some()
    }

    fn hello(&self) -> io::Result<Hello> {
        hello(self.identity, self.shared.node, &self.address)
    }

    /// Ends all connections.
    pub fn close(&self) {
        self.over.send_replace(true);
    }

    /// Returns when all connections must end.
    pub async fn is_over(&self) {
        let _ = self.over.subscribe().wait_for(|&over| over).await;
    }

    /// Sends a message about the online users to all members.
    pub fn broadcast(&self, message: &[u8]) {
        for link in self.links.lock().values() {
            // A member that misses a message asks for all users.
            let _ = link.try_send(Frame::Presence(message.to_vec()));
        }
    }

    /// Keeps connections to all other members until the node has ended.
    pub async fn run(self: Arc<Cluster>) {
        let mut dialing: HashMap<u64, (String, JoinHandle<()>)> = HashMap::new();
        while timeout(PAUSE, self.is_over()).await.is_err() {
            let current = self.shared.current.borrow().clone();
            let mut wanted: HashMap<u64, String> = self.strangers.lock().clone();
            let members = current.members.iter();
            wanted.extend(members.map(|member| (member.id, member.address.clone())));
            wanted.remove(&self.shared.node);
            self.strangers
                .lock()
                .retain(|id, _| current.member(*id).is_none());
            dialing.retain(|id, (address, task)| {
                let stays = wanted.get(id) == Some(&*address) && !task.is_finished();
                if !stays {
                    task.abort();
                    self.close_link(*id);
                }
                stays
            });
            for (id, address) in wanted {
                dialing.entry(id).or_insert_with(|| {
                    let task = tokio::spawn(self.clone().dial(id, address.clone()));
                    (address, task)
                });
            }
            let own = current.member(self.shared.node);
            if own.is_some_and(|own| own.address != self.address) {
                let moved = Change::Join {
                    id: self.shared.node,
                    address: self.address.clone(),
                };
                let _ = self.change(moved).await;
            }
        }
        for (_, (_, task)) in dialing {
            task.abort();
        }
    }

    fn close_link(&self, to: u64) {
        self.links.lock().remove(&to);
        self.shared.pass(Work::Link(to, None));
    }

    /// Opens a connection to a member whenever there is none.
    async fn dial(self: Arc<Cluster>, to: u64, address: String) {
        let mut reported = String::new();
        loop {
            if let Err(error) = self.follow(to, &address).await {
                let reason = error.to_string();
                if error.kind() == io::ErrorKind::InvalidData && reason != reported {
                    tracing::warn!("the member at {address} cannot be used: {reason}");
                    reported = reason;
                }
            }
            self.close_link(to);
            sleep(PAUSE).await;
        }
    }

    /// Sends frames to a member until the connection ends.
    async fn follow(&self, to: u64, address: &str) -> io::Result<()> {
        let Link {
            mut writer,
            mut reader,
            hello,
        } = link::connect(address, self.secure.as_ref(), &self.key, self.hello()?).await?;
        writer.send(&Request::Frames).await?;
        match timeout(SILENCE, reader.receive())
            .await
            .map_err(|_| io::ErrorKind::TimedOut)??
        {
            Answer::Accepted if hello.node == to => {}
            Answer::NotMember => {
                self.shared.pass(Work::Removed);
                return Ok(());
            }
            Answer::Refused(reason) => return Err(invalid(reason)),
            _ => {
                return Err(invalid(format!(
                    "another node, {:016x}, has its address",
                    hello.node
                )));
            }
        }
        let (sender, mut frames) = mpsc::channel(QUEUE);
        self.links.lock().insert(to, sender.clone());
        self.shared.pass(Work::Link(to, Some(sender)));
        let heard = async {
            loop {
                match timeout(SILENCE, reader.receive::<Frame>()).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => break error,
                    Err(_) => break io::ErrorKind::TimedOut.into(),
                }
            }
        };
        tokio::select! {
            error = heard => Err(error),
            ended = send_all(&mut writer, &mut frames) => ended,
        }
    }

    fn leads(&self) -> bool {
        self.shared.leads.load(Relaxed)
    }

    fn has(&self, node: u64) -> bool {
        self.shared.current.borrow().member(node).is_some()
    }

    fn leader(&self) -> Option<Member> {
        let leader = self.shared.leader.load(Relaxed);
        self.shared.current.borrow().member(leader).cloned()
    }

    /// Fetches copies of the index of other members when they ask for it, until the node closes.
    pub async fn follow_snapshots(self: Arc<Cluster>, node: Arc<Inner>) {
        let mut wanted = self.shared.wants_snapshot.subscribe();
        loop {
            let from = tokio::select! {
                changed = wanted.wait_for(Option::is_some) => changed.map(|from| *from).ok().flatten(),
                () = node.closing() => return,
            };
            let Some(from) = from else { return };
            self.shared.wants_snapshot.send_replace(None);
            let current = self.shared.current.borrow().clone();
            let address = current.member(from).map(|member| member.address.clone());
            let Some(address) = address.or_else(|| self.strangers.lock().get(&from).cloned())
            else {
                continue;
            };
            let Ok(hello) = self.hello() else { continue };
            let fetched = begin::fetch(
                &address,
                self.secure.as_ref(),
                &self.key,
                hello,
                &self.data,
                self.shared.node,
            )
            .await;
            match fetched {
                Ok(base) if base.position > node.index.applied() => {
                    tracing::warn!(
                        "this node is behind, and starts again from a copy of the index at {address}"
                    );
                    self.shared.pass(Work::Restart);
                    return;
                }
                Ok(_) => begin::forget(&self.data),
                Err(error) => {
                    tracing::warn!("the index at {address} cannot be copied: {error}");
                    begin::forget(&self.data);
                    sleep(PING).await;
                }
            }
        }
    }
}

/// Sends frames, and signs of life between them.
async fn send_all(writer: &mut Writer, frames: &mut mpsc::Receiver<Frame>) -> io::Result<()> {
    let mut pings = interval(PING);
    loop {
        let frame = tokio::select! {
            frame = frames.recv() => frame.ok_or(io::ErrorKind::BrokenPipe)?,
            _ = pings.tick() => Frame::Ping,
        };
        writer.write(&frame).await?;
        while let Ok(frame) = frames.try_recv() {
            writer.write(&frame).await?;
        }
        writer.flush().await?;
    }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Returns the first message of a node.
pub(crate) fn hello(cluster: u64, node: u64, address: &str) -> io::Result<Hello> {
    let mut nonce = [0; 32];
    getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(Hello {
        format: FORMAT,
        cluster,
        node,
        address: address.to_owned(),
        nonce,
    })
}

/// Sends a request to the member at an address, and returns the answer.
///
/// # Errors
/// The member cannot be reached, or does not have the common key.
pub(crate) async fn ask(
    address: &str,
    secure: Option<&Secure>,
    key: &Key,
    hello: Hello,
    request: &Request,
) -> io::Result<Answer> {
    let mut link = link::connect(address, secure, key, hello).await?;
    link.writer.send(request).await?;
    let answer = timeout(PATIENCE + SILENCE, link.reader.receive()).await;
    answer.map_err(|_| io::ErrorKind::TimedOut)?
}
