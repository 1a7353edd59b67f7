//! Requests of other nodes, and of the owner of the data.

use super::begin;
use super::link::{self, Io, Link, Writer};
use super::request::{PATIENCE, PAUSE, SILENCE, ask};
use super::state::Cluster;
use super::wire::{Answer, Hello, Request};
use crate::index::Index;
use crate::log::replicated::{Change, Frame, Status, Work};
use std::io;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep, timeout};

/// The maximum number of frames that wait for the log.
const MOST_WORK: usize = 1 << 14;
/// The bytes of an index that are sent together.
const PART: usize = 128 << 10;
/// The maximum number of nodes that are connected before this node knows that they are members.
const MOST_STRANGERS: usize = 16;

/// A request about the members of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberRequest {
    /// Returns the members, as a line of JSON.
    List,
    /// Removes the member with this id.
    Remove(u64),
    /// Removes this node.
    Leave,
    /// Moves the leadership to the member with this id, or to the most advanced other member.
    Transfer(Option<u64>),
}

impl Cluster {
    /// Serves a connection that another node has opened.
    /// `counted` counts the connection until the node has proved that it has the common key.
    pub async fn serve(&self, stream: Box<dyn Io>, index: &Index, counted: impl Send) {
        // The other node sees the end of the connection.
        if let Err(error) = self.answer(stream, index, counted).await
            && error.kind() == io::ErrorKind::InvalidData
        {
            tracing::warn!("a node was refused: {error}");
        }
    }

    async fn answer(
        &self,
        stream: Box<dyn Io>,
        index: &Index,
        counted: impl Send,
    ) -> io::Result<()> {
        let mut link = link::open(stream, &self.key, self.hello()?, link::Side::Callee).await?;
        let request = timeout(SILENCE, link.reader.receive()).await;
        let request: Request = match request.map_err(|_| io::ErrorKind::TimedOut)? {
            Ok(request) => request,
            Err(error) => {
                // The other node finds that the answer has another key, too.
                let refused = Answer::Refused("it has another key".to_owned());
                let _ = link.writer.send(&refused).await;
                return Err(error);
            }
        };
        drop(counted);
        let Hello {
            cluster,
            node,
            ref address,
            ..
        } = link.hello;
        let is_join = matches!(
            request,
            Request::Change(Change::Join { .. }) | Request::Snapshot
        );
        let is_member = self.has(node);
        if cluster != self.identity && !(cluster == 0 && is_join) {
            let reason =
                "it belongs to another cluster; use another address, or an empty --data directory";
            return link.writer.send(&Answer::Refused(reason.to_owned())).await;
        }
        if matches!(request, Request::Frames) && !is_member && self.leads() {
            return link.writer.send(&Answer::NotMember).await;
        }
        match request {
            Request::Frames => {
                if !is_member {
                    let mut strangers = self.strangers.lock();
                    if strangers.len() < MOST_STRANGERS {
                        strangers.insert(node, address.clone());
                    }
                }
                self.receive(node, link).await
            }
            Request::Snapshot => self.send_index(&mut link.writer, index).await,
            Request::Change(change) => {
                let answer = self.change_here(change).await;
                link.writer.send(&answer).await
            }
        }
    }

    async fn receive(&self, from: u64, mut link: Link) -> io::Result<()> {
        link.writer.send(&Answer::Accepted).await?;
        loop {
            let frame = timeout(SILENCE, link.reader.receive()).await;
            match frame.map_err(|_| io::ErrorKind::TimedOut)?? {
                Frame::Ping if self.leads() && !self.has(from) => return Ok(()),
                Frame::Ping => link.writer.send(&Frame::Pong).await?,
                Frame::Presence(message) => drop(self.presence.try_send(message)),
                frame => self.shared.pass(Work::Frame(from, frame)),
            }
            while self.shared.backlog() > MOST_WORK {
                sleep(Duration::from_millis(1)).await;
            }
        }
    }

    /// Sends a copy of the index.
    async fn send_index(&self, writer: &mut Writer, index: &Index) -> io::Result<()> {
        let _permit = self.copies.acquire().await.map_err(io::Error::other)?;
        let copy = self.data.join(begin::OUTGOING);
        let _ = std::fs::remove_file(&copy);
        let position = index.copy_to(&copy).await.map_err(io::Error::other)?;
        // The file is removed when it is closed.
        let mut file = tokio::fs::File::open(&copy).await?;
        tokio::fs::remove_file(&copy).await?;
        let base = self.shared.ask(|reply| Work::BaseAt(position, reply)).await;
        let Some(base) = base.flatten() else {
            let reason = "the log does not have the position of the copy; try again";
            return writer.send(&Answer::Refused(reason.to_owned())).await;
        };
        writer.write(&Answer::Base(base)).await?;
        loop {
            let mut part = vec![0; PART];
            let read = file.read(&mut part).await?;
            part.truncate(read);
            let is_last = part.is_empty();
            timeout(10 * SILENCE, writer.send(&Answer::Part(part)))
                .await
                .map_err(|_| io::ErrorKind::TimedOut)??;
            if is_last {
                self.metrics.snapshots.inc();
                return Ok(());
            }
        }
    }

    async fn change_here(&self, change: Change) -> Answer {
        if !self.leads() {
            let leader = self.leader().filter(|leader| leader.id != self.shared.node);
            return Answer::NotLeader(leader.map(|leader| leader.address));
        }
        if change
            == (Change::Remove {
                id: self.shared.node,
            })
            && self.shared.current.borrow().members.len() > 1
        {
            // Another leader removes this one.
            self.shared.pass(Work::Transfer(None));
            return Answer::NotLeader(None);
        }
        let changed = timeout(
            PATIENCE,
            self.shared.ask(|reply| Work::Change(change, reply)),
        );
        match changed.await {
            Ok(Some(Ok(()))) => Answer::Accepted,
            Ok(Some(Err(Some(reason)))) => Answer::Refused(reason),
            Ok(Some(Err(None))) => Answer::NotLeader(None),
            _ => Answer::Refused(
                "a majority of the members does not answer; look at the members, and try again"
                    .to_owned(),
            ),
        }
    }

    /// Changes the members, at the leader.
    ///
    /// # Errors
    /// The reason why the change was refused.
    pub async fn change(&self, change: Change) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let reason = match self.change_here(change.clone()).await {
                Answer::Accepted => return Ok(()),
                Answer::NotLeader(Some(address)) => {
                    let hello = self.hello().map_err(|error| error.to_string())?;
                    let request = Request::Change(change.clone());
                    let asked = ask(&address, self.secure.as_ref(), &self.key, hello, &request);
                    match asked.await {
                        Ok(Answer::Accepted) => return Ok(()),
                        Ok(Answer::Refused(reason)) => return Err(reason),
                        Ok(_) => "the leader is being replaced".to_owned(),
                        Err(error) => format!("the leader at {address} cannot be reached: {error}"),
                    }
                }
                Answer::Refused(reason) => return Err(reason),
                _ => "no member leads, because a majority of the members cannot be reached"
                    .to_owned(),
            };
            if Instant::now() >= end {
                return Err(reason);
            }
            sleep(PAUSE).await;
        }
    }

    /// Returns the state of the cluster, as this node knows it.
    pub async fn status(&self) -> Option<Status> {
        self.shared.ask(Work::Status).await
    }

    /// Serves a request of the owner of the data.
    ///
    /// # Errors
    /// The reason why the request was refused.
    pub async fn serve_request(&self, request: MemberRequest) -> Result<String, String> {
        let known = |id| match self.has(id) {
            true => Ok(()),
            false => Err(format!(
                "the cluster has no member {id:016x}; `corsair-courier members` lists them"
            )),
        };
        let own = self.shared.node;
        match request {
            MemberRequest::List => {
                let status = self
                    .status()
                    .await
                    .ok_or("the log of this node has stopped")?;
                let members = status.current.members.iter().map(|member| {
                    let position = status.matched.iter().find(|(id, _)| *id == member.id);
                    serde_json::json!({
                        "id": format!("{:016x}", member.id),
                        "address": member.address,
                        "voter": !member.is_learner,
                        "leader": member.id == status.leader,
                        "position": position.map(|(_, position)| position),
                    })
                });
                let members: Vec<_> = members.collect();
                let node = format!("{:016x}", status.node);
                let list = serde_json::json!({
                    "node": node, "term": status.term, "committed": status.committed, "members": members,
                });
                Ok(list.to_string())
            }
            MemberRequest::Remove(id) => {
                known(id)?;
                self.change(Change::Remove { id }).await?;
                Ok("removed".to_owned())
            }
            MemberRequest::Leave => {
                self.change(Change::Remove { id: own }).await?;
                self.shared.pass(Work::Removed);
                Ok("left".to_owned())
            }
            MemberRequest::Transfer(to) => {
                if let Some(id) = to {
                    known(id)?;
                }
                if !self.leads() {
                    return Err("this node is not the leader; ask the leader, which `corsair-courier members` names".to_owned());
                }
                self.shared.pass(Work::Transfer(to));
                let end = Instant::now() + PATIENCE;
                while self.leads() {
                    if Instant::now() >= end {
                        return Err("the other member has not taken over; look at the members, and try again".to_owned());
                    }
                    sleep(PAUSE).await;
                }
                Ok("moved".to_owned())
            }
        }
    }
}
