//! A member whose leader changes: when commands are proposed again, and when they are not.

use super::*;
use crate::command::Command;
use crate::log::Entry;
use crate::log::replicated::entry::encode;
use crate::log::replicated::frame::Proposal;
use crate::log::replicated::membership::{Base, Member};
use crate::log::replicated::shared::Shared;
use crate::log::replicated::store::Store;
use crate::model::Millis;
use crossbeam_channel::Receiver;
use protobuf::Message as _;
use raft::eraftpb::Entry as LogEntry;
use tokio::sync::{mpsc, oneshot};

const ORIGIN: u64 = 42;

/// The member 2 of three.
struct Second {
    core: Core,
    feed: Receiver<Vec<Entry>>,
    replies: Vec<oneshot::Receiver<Result<crate::command::Outcome, LogError>>>,
    _data: tempfile::TempDir,
}

type Proposals = (u64, u64, Vec<Proposal>);

impl Second {
    fn new() -> Second {
        let data = tempfile::tempdir().unwrap();
        let member = |id| Member {
            id,
            address: format!("127.0.0.1:{id}"),
            is_learner: false,
        };
        let base = Base {
            cluster: 7,
            position: 1,
            term: 1,
            members: (1..=3).map(member).collect(),
        };
        let store = Store::create(data.path(), 2, base, (1, 0)).unwrap();
        let (works, received) = crossbeam_channel::unbounded();
        let shared = Shared::new(&store, ORIGIN, works);
        let (sender, feed) = crossbeam_channel::bounded(16);
        let groups = prometheus_client::metrics::counter::Counter::default();
        let core = Core::new(store, shared, received, sender, 1, groups).unwrap();
        Second {
            core,
            feed,
            replies: Vec::new(),
            _data: data,
        }
    }

    /// Opens a link to a member, and returns its other end.
    fn link(&mut self, to: u64) -> mpsc::Receiver<Frame> {
        let (sender, frames) = mpsc::channel(128);
        self.core.take(Work::Link(to, Some(sender)));
        frames
    }

    fn submit(&mut self) {
        let (reply, answer) = oneshot::channel();
        let command = Command::CreateUser {
            name: "ann".to_owned(),
            password: String::new(),
            at: Millis::now(),
        };
        let data = encode(ORIGIN, &command).unwrap();
        self.core.take(Work::Submit(data, reply));
        self.replies.push(answer);
    }

    /// Ends a round of the thread.
    fn settle(&mut self) {
        self.core.propose();
        self.core.ready().unwrap();
    }

    /// A leader appends entries after a position and its term, and commits.
    fn append(&mut self, from: u64, term: u64, after: (u64, u64), new: Vec<LogEntry>, commit: u64) {
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgAppend);
        (message.from, message.to, message.term) = (from, 2, term);
        (message.index, message.log_term, message.commit) = (after.0, after.1, commit);
        message.set_entries(new.into());
        let bytes = message.write_to_bytes().unwrap();
        self.core.take(Work::Frame(from, Frame::Raft(bytes)));
    }
}

fn entry(index: u64, term: u64, data: &[u8]) -> LogEntry {
    LogEntry {
        index,
        term,
        data: data.to_vec().into(),
        ..LogEntry::default()
    }
}

/// Returns the proposals that were sent over a link: the term, the last number before them, and the commands.
fn proposals(frames: &mut mpsc::Receiver<Frame>) -> Vec<Proposals> {
    let mut found = Vec::new();
    while let Ok(frame) = frames.try_recv() {
        if let Frame::Propose {
            term,
            after,
            proposals,
            ..
        } = frame
        {
            found.push((term, after, proposals));
        }
    }
    found
}

fn numbers(proposals: &[Proposal]) -> Vec<u64> {
    proposals.iter().map(|proposal| proposal.number).collect()
}

/// A member that has sent a command to the leader 1 in term 5, and the command.
fn member_with_a_command() -> (Second, Vec<u8>) {
    let mut member = Second::new();
    let mut first = member.link(1);
    member.append(1, 5, (1, 1), vec![entry(2, 5, &[])], 2);
    member.settle();
    member.submit();
    member.settle();
    let sent = proposals(&mut first);
    assert_eq!((sent[0].0, sent[0].1, numbers(&sent[0].2)), (5, 0, vec![1]));
    let data = sent[0].2[0].data.clone();
    (member, data)
}

// Guarantee: courier-1.
#[test]
fn a_command_in_the_log_of_a_new_leader_is_not_proposed_again() {
    let (mut member, data) = member_with_a_command();
    // The leader 1 had replicated the command before it failed. The leader 3 has not committed anything yet.
    member.append(3, 6, (2, 5), vec![entry(3, 5, &data)], 2);
    let mut third = member.link(3);
    member.settle();
    assert!(
        proposals(&mut third).is_empty(),
        "after the link was opened"
    );
    for _ in 0..2 * AGAIN {
        member.core.tick();
        member.append(3, 6, (3, 5), Vec::new(), 2);
        member.settle();
    }
    assert!(proposals(&mut third).is_empty(), "after some time");
    member.append(3, 6, (3, 5), vec![entry(4, 6, &[])], 4);
    member.settle();
    assert!(proposals(&mut third).is_empty(), "after the commit");
    let fed: Vec<Entry> = member.feed.try_iter().flatten().collect();
    let fed: Vec<_> = fed
        .iter()
        .map(|one| (one.position, one.reply.is_some()))
        .collect();
    assert_eq!(fed, [(2, false), (3, true), (4, false)]);
}

// Guarantee: courier-1.
#[test]
fn a_command_that_a_new_leader_lacks_is_proposed_again_after_its_first_commit() {
    let (mut member, _) = member_with_a_command();
    let mut third = member.link(3);
    member.append(3, 6, (2, 5), vec![entry(3, 6, &[])], 2);
    // A later command must not overtake the earlier one, because the leader would take that for a repetition then.
    member.submit();
    member.settle();
    assert!(proposals(&mut third).is_empty());
    member.append(3, 6, (3, 6), Vec::new(), 3);
    member.settle();
    member.settle();
    let sent = proposals(&mut third);
    assert_eq!(sent.len(), 1);
    assert_eq!(
        (sent[0].0, sent[0].1, numbers(&sent[0].2)),
        (6, 0, vec![1, 2])
    );
    // The leader of a term recognizes a command that it receives twice.
    let mut third = member.link(3);
    member.settle();
    let sent = proposals(&mut third);
    assert_eq!(
        (sent[0].0, sent[0].1, numbers(&sent[0].2)),
        (6, 0, vec![1, 2])
    );
}

/// The first proposal of a term does not refer to an earlier one, which its leader has not received. Each later one
/// does, so that the leader notices a proposal that was lost on its way.
#[test]
fn each_proposal_refers_to_the_one_before_it_in_its_term() {
    let (mut member, _) = member_with_a_command();
    let mut third = member.link(3);
    member.append(3, 6, (2, 5), vec![entry(3, 6, &[])], 3);
    member.submit();
    member.settle();
    member.settle();
    member.submit();
    member.settle();
    let sent = proposals(&mut third);
    let sent = sent
        .iter()
        .map(|(term, after, new)| (*term, *after, numbers(new)));
    assert_eq!(
        sent.collect::<Vec<_>>(),
        [(6, 0, vec![1, 2]), (6, 2, vec![3])]
    );
}
