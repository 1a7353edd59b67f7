//! The members of a cluster: their connections, changes of the members, and copies of the index for new members.
//!
//! Every member opens a connection to every other one, over which it sends its frames. Nodes with the common key and
//! the same cluster are trusted. The leader refuses nodes that are not members.

pub(crate) mod begin;
pub(crate) mod link;
mod request;
mod serve;
mod state;
mod wire;

pub(crate) use request::Credentials;
pub use serve::MemberRequest;
pub(crate) use state::Cluster;

use crate::index::Index;
use crate::log::replicated::{Change, Frame, Work};
use link::{Link, Writer};
use request::{PAUSE, SILENCE};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{interval, sleep, timeout};
use wire::{Answer, Request};

/// The maximum number of frames that wait for one member.
const QUEUE: usize = 128;
/// The interval of signs of life.
const PING: Duration = Duration::from_secs(1);

impl Cluster {
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

    /// Fetches copies of the index of other members when they ask for it, until `closing` is true.
    pub async fn follow_snapshots(
        self: Arc<Cluster>,
        index: Index,
        mut closing: watch::Receiver<bool>,
    ) {
        let mut wanted = self.shared.wants_snapshot.subscribe();
        loop {
            let from = tokio::select! {
                changed = wanted.wait_for(Option::is_some) => changed.map(|from| *from).ok().flatten(),
                _ = closing.wait_for(|&closing| closing) => return,
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
                Ok(base) if base.position > index.applied() => {
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
