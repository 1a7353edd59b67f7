//! Raft with a log, a client and membership changes, and one of five flaws.
//!
//! A new leader begins its term with an empty entry, except in the program for `Commit`: an entry of the leader's own
//! term that follows the entries of earlier terms protects them, and hides that flaw.
//!
//! | flaw | fault | report |
//! |---|---|---|
//! | `Commit` | a leader commits entries of earlier terms by counting copies | Ongaro and Ousterhout, USENIX ATC 2014, section 5.4.2, figure 8 |
//! | `Log` | votes go to candidates whose log is behind | the same paper, section 5.4.1; Fonseca et al., EuroSys 2017 |
//! | `Membership` | a leader changes the members before it has committed an entry of its term | Ongaro, "bug in single-server membership changes", raft-dev, 2015 |
//! | `Read` | a leader answers reads without asking whether it still leads | Jepsen, "etcd and Consul", 2014 |
//! | `Truncate` | an old append removes entries that it does not know | Gjengset, "Students' guide to Raft", 2016 |

use crate::prelude::*;
use std::collections::BTreeMap;

/// The flaw of the buggy version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    Commit,
    Log,
    Membership,
    Read,
    Truncate,
}

/// Three servers and a client; four servers if the membership changes.
#[derive(Debug)]
pub struct Raft {
    flaw: Flaw,
    bug: bool,
}

impl Raft {
    pub fn new(flaw: Flaw, bug: bool) -> Raft {
        Raft { flaw, bug }
    }

    fn servers(&self) -> u32 {
        if self.flaw == Flaw::Membership { 4 } else { 3 }
    }
}

/// An entry of the log: a number to write, 0 for an empty entry, or `MEMBERS` with the members as a bit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    term: u64,
    value: u64,
}

const MEMBERS: u64 = 1 << 63;

#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Asks for a vote: the term, the length of the log, and the term of its last entry.
    Ask(u64, u64, u64),
    /// A vote in a term.
    Vote(u64),
    /// Sends the entries that follow the first `previous` entries, the last of which has the term `previous_term`.
    Append {
        term: u64,
        previous: u64,
        previous_term: u64,
        entries: Vec<Entry>,
        commit: u64,
        round: u64,
    },
    /// Reports that the log agrees up to `matched`, or must be sent from `matched` on.
    Appended {
        term: u64,
        agrees: bool,
        matched: u64,
        round: u64,
    },
    /// From the client: writes a number.
    Put(u64),
    /// The number is committed.
    Done(u64),
    /// Sent by the client: asks for the number, after this number was acknowledged.
    Get(u64),
    /// Returns the largest number, and the number that was acknowledged when the client asked.
    Got(u64, u64),
    /// Sent by the client: adds or removes a server.
    Change(u32),
    /// Sent to the observer: this server leads in a term.
    Leads(u64),
    /// Sent to the observer: the entry with this index is committed.
    Applied(u64, Entry),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Role {
    #[default]
    Follower,
    Candidate,
    Leader,
}

/// A server, or the client.
#[derive(Debug)]
pub struct Peer {
    flaw: Option<Flaw>,
    changes_members: bool,
    /// True if a leader begins its term with an empty entry.
    begins_terms: bool,
    servers: u32,
    term: u64,
    /// The server for which this server has voted in the term, counted from 1; 0 if none.
    voted: u64,
    log: Vec<Entry>,
    role: Role,
    votes: u64,
    commit: u64,
    applied: u64,
    largest: u64,
    matched: [u64; 4],
    next: [u64; 4],
    rounds: [u64; 4],
    round: u64,
    /// Reads that wait for a round of messages: the client, the number that it has seen, and the round.
    reads: Vec<(Addr, u64, u64)>,
    /// The number of the current time-out; earlier ones are ignored.
    waiting: u16,
    /// For the client: the last written number, and the largest acknowledged one.
    last: u64,
    seen: u64,
}

const BEAT: u16 = u16::MAX;
const CLIENT: u16 = u16::MAX - 1;

impl Peer {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn term_of(&self, length: u64) -> u64 {
        length
            .checked_sub(1)
            .and_then(|index| self.log.get(index as usize))
            .map_or(0, |entry| entry.term)
    }

    fn length(&self) -> u64 {
        self.log.len() as u64
    }

    /// Returns the members, and the length of the log at the entry that defines them.
    fn members(&self) -> (u64, u64) {
        let found = self.log.iter().rposition(|entry| entry.value >= MEMBERS);
        found.map_or(((1 << self.servers) - 1, 0), |index| {
            (self.log[index].value & !MEMBERS, index as u64 + 1)
        })
    }

    /// Returns true if an entry of the server's own term is committed.
    fn has_own(&self) -> bool {
        self.term_of(self.commit) == self.term
    }

    fn is_majority(&self, servers: u64) -> bool {
        let (members, _) = self.members();
        (servers & members).count_ones() * 2 > members.count_ones()
    }

    /// True if a majority has reached a number.
    fn have_reached(&self, numbers: &[u64; 4], number: u64, me: u32) -> bool {
        let mut servers = 1 << me;
        for (index, reached) in numbers.iter().enumerate() {
            servers |= u64::from(*reached >= number) << index;
        }
        self.is_majority(servers)
    }

    fn save(&self, machine: &mut Machine) {
        machine.disk.write_number("term", self.term);
        machine.disk.write_number("voted", self.voted);
        let words = self.log.iter().flat_map(|entry| [entry.term, entry.value]);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        machine.disk.write("log", &bytes);
        machine.disk.sync();
    }

    fn wait<C: Context<Msg>>(&mut self, cx: &mut C, machine: &Machine) {
        self.waiting = (self.waiting + 1) % CLIENT;
        let time = 150 + cx.below(150);
        machine.timer(cx, time, self.waiting);
    }

    fn see(&mut self, term: u64, machine: &mut Machine) {
        if term > self.term {
            (self.term, self.voted, self.role) = (term, 0, Role::Follower);
            self.reads.clear();
            self.save(machine);
        }
    }

    fn stand<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.wait(cx, machine);
        if self.members().0 >> machine.index & 1 == 0 {
            return;
        }
        (self.term, self.role) = (self.term + 1, Role::Candidate);
        (self.voted, self.votes) = (u64::from(machine.index) + 1, 1 << machine.index);
        self.save(machine);
        let ask = Msg::Ask(self.term, self.length(), self.term_of(self.length()));
        self.send_servers(cx, machine, &ask);
    }

    fn send_servers<C: Context<Msg>>(&self, cx: &mut C, machine: &Machine, message: &Msg) {
        for index in (0..self.servers).filter(|index| *index != machine.index) {
            cx.send(machine.nodes.get(index), message.clone());
        }
    }

    fn lead<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.role = Role::Leader;
        self.matched = [0; 4];
        self.rounds = [0; 4];
        self.next = [self.length(); 4];
        if self.begins_terms {
            self.push(0, machine);
        }
        let parent = cx.parent();
        cx.send(parent, Msg::Leads(self.term));
        machine.timer(cx, 0, BEAT);
    }

    fn push(&mut self, value: u64, machine: &mut Machine) {
        let term = self.term;
        self.log.push(Entry { term, value });
        self.save(machine);
    }

    fn replicate<C: Context<Msg>>(&mut self, cx: &mut C, machine: &Machine) {
        self.round += 1;
        for index in (0..self.servers).filter(|index| *index != machine.index) {
            let previous = self.next[index as usize].min(self.length());
            let append = Msg::Append {
                term: self.term,
                previous,
                previous_term: self.term_of(previous),
                entries: self.log[previous as usize..].to_vec(),
                commit: self.commit,
                round: self.round,
            };
            cx.send(machine.nodes.get(index), append);
        }
    }

    /// Appends entries of the leader of this term. Returns whether the log agrees, and how far.
    fn append(&mut self, previous: u64, previous_term: u64, entries: &[Entry]) -> (bool, u64) {
        if previous > self.length() || self.term_of(previous) != previous_term {
            return (false, self.length().min(previous.saturating_sub(1)));
        }
        let from = previous as usize;
        if self.has(Flaw::Truncate) {
            self.log.truncate(from);
            self.log.extend_from_slice(entries);
        } else {
            for (index, entry) in (from..).zip(entries) {
                if self.log.get(index).is_none_or(|own| own.term != entry.term) {
                    self.log.truncate(index);
                    self.log.push(*entry);
                }
            }
        }
        (true, previous + entries.len() as u64)
    }

    fn advance<C: Context<Msg>>(&mut self, cx: &mut C, machine: &Machine) {
        let length = self.length();
        let committed = (self.commit + 1..=length).rev().find(|length| {
            let is_own = self.term_of(*length) == self.term || self.has(Flaw::Commit);
            is_own && self.have_reached(&self.matched, *length, machine.index)
        });
        if let Some(committed) = committed {
            self.commit = committed;
            self.apply(cx, machine);
        }
        let has_own = self.has_own();
        let mut reads = std::mem::take(&mut self.reads);
        reads.retain(|(client, seen, round)| {
            let is_safe = has_own && self.have_reached(&self.rounds, *round, machine.index);
            if is_safe {
                cx.send(*client, Msg::Got(self.largest, *seen));
            }
            !is_safe
        });
        self.reads = reads;
    }

    fn apply<C: Context<Msg>>(&mut self, cx: &mut C, machine: &Machine) {
        while self.applied < self.commit {
            let entry = self.log[self.applied as usize];
            self.applied += 1;
            let parent = cx.parent();
            cx.send(parent, Msg::Applied(self.applied, entry));
            if entry.value > 0 && entry.value < MEMBERS {
                self.largest = self.largest.max(entry.value);
                if self.role == Role::Leader {
                    cx.send(machine.nodes.get(self.servers), Msg::Done(entry.value));
                }
            }
        }
    }

    fn change<C: Context<Msg>>(&mut self, server: u32, cx: &mut C, machine: &mut Machine) {
        let (members, since) = self.members();
        let members = members ^ 1 << server;
        let has_own = self.has_own() || self.has(Flaw::Membership);
        if server != machine.index && members.count_ones() > 2 && since <= self.commit && has_own {
            self.push(MEMBERS | members, machine);
            sometimes!(cx, true, "members change");
            self.replicate(cx, machine);
        }
    }

    fn request<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        let server = machine.nodes.get(cx.below(self.servers));
        if self.changes_members && cx.below(4) == 0 {
            let other = cx.below(self.servers);
            cx.send(server, Msg::Change(other));
        } else if cx.below(2) == 0 {
            self.last += 1;
            machine.disk.write_number("last", self.last);
            machine.disk.sync();
            // The client does not know the leader.
            self.send_servers(cx, machine, &Msg::Put(self.last));
        } else {
            cx.send(server, Msg::Get(self.seen));
        }
        machine.timer(cx, 25, CLIENT);
    }

    /// Handles the requests that only a leader can answer.
    fn on_request<C: Context<Msg>>(
        &mut self,
        from: Addr,
        body: Msg,
        cx: &mut C,
        machine: &mut Machine,
    ) {
        if self.role != Role::Leader {
            return;
        }
        match body {
            Msg::Put(value) => {
                self.push(value, machine);
                self.replicate(cx, machine);
            }
            Msg::Get(seen) if self.has(Flaw::Read) && self.has_own() => {
                cx.send(from, Msg::Got(self.largest, seen));
            }
            Msg::Get(_) if self.has(Flaw::Read) => {}
            Msg::Get(seen) => {
                self.reads.push((from, seen, self.round + 1));
                self.replicate(cx, machine);
            }
            Msg::Change(server) => self.change(server, cx, machine),
            _ => {}
        }
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        if machine.index == self.servers {
            self.last = machine.disk.number("last").unwrap_or(0);
            self.seen = machine.disk.number("seen").unwrap_or(0);
            machine.timer(cx, 25, CLIENT);
            return;
        }
        self.term = machine.disk.number("term").unwrap_or(0);
        self.voted = machine.disk.number("voted").unwrap_or(0);
        let bytes = machine.disk.records("log").last().unwrap_or_default();
        let words = bytes
            .chunks_exact(8)
            .filter_map(|word| word.try_into().ok());
        let words: Vec<u64> = words.map(u64::from_le_bytes).collect();
        let entries = words.chunks_exact(2);
        self.log = entries
            .map(|pair| Entry {
                term: pair[0],
                value: pair[1],
            })
            .collect();
        self.wait(cx, machine);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        let (from, body) = match input {
            Input::Timer(CLIENT) => return self.request(cx, machine),
            Input::Timer(BEAT) => {
                if self.role == Role::Leader {
                    self.replicate(cx, machine);
                    machine.timer(cx, 40, BEAT);
                }
                return;
            }
            Input::Timer(name) => {
                if name == self.waiting && self.role != Role::Leader {
                    self.stand(cx, machine);
                }
                return;
            }
            Input::Message { from, body } => (from, body),
        };
        let sender = machine.nodes.index_of(from).unwrap_or(0);
        match body {
            Msg::Ask(term, length, last) => {
                self.see(term, machine);
                let is_free = self.voted == 0 || self.voted == u64::from(sender) + 1;
                let own = (self.term_of(self.length()), self.length());
                let is_ahead = (last, length) >= own || self.has(Flaw::Log);
                if term == self.term && is_free && is_ahead {
                    self.voted = u64::from(sender) + 1;
                    self.save(machine);
                    cx.send(from, Msg::Vote(term));
                    self.wait(cx, machine);
                }
            }
            Msg::Vote(term) => {
                if term == self.term && self.role == Role::Candidate {
                    self.votes |= 1 << sender;
                    if self.is_majority(self.votes) {
                        self.lead(cx, machine);
                    }
                }
            }
            Msg::Append {
                term,
                previous,
                previous_term,
                entries,
                commit,
                round,
            } => {
                self.see(term, machine);
                let (mut agrees, mut matched) = (false, 0);
                if term == self.term && self.role != Role::Leader {
                    self.role = Role::Follower;
                    self.wait(cx, machine);
                    (agrees, matched) = self.append(previous, previous_term, &entries);
                    self.save(machine);
                    if agrees {
                        self.commit = self.commit.max(commit.min(matched)).min(self.length());
                        self.apply(cx, machine);
                    }
                }
                let term = self.term;
                cx.send(
                    from,
                    Msg::Appended {
                        term,
                        agrees,
                        matched,
                        round,
                    },
                );
            }
            Msg::Appended {
                term,
                agrees,
                matched,
                round,
            } => {
                self.see(term, machine);
                if term == self.term && self.role == Role::Leader {
                    let index = sender as usize;
                    self.rounds[index] = self.rounds[index].max(round);
                    if agrees {
                        self.matched[index] = self.matched[index].max(matched);
                        self.next[index] = self.next[index].max(matched);
                        self.advance(cx, machine);
                    } else {
                        self.next[index] = matched.max(self.matched[index]);
                    }
                }
            }
            Msg::Done(value) => {
                self.seen = self.seen.max(value);
                machine.disk.write_number("seen", self.seen);
                machine.disk.sync();
            }
            Msg::Got(value, seen) => {
                always!(cx, value >= seen, "reads see acknowledged writes");
                sometimes!(cx, value > 3, "numbers are read");
            }
            body => self.on_request(from, body, cx, machine),
        }
    }

    fn state(&self) -> u64 {
        let open = &self.log[(self.commit as usize).min(self.log.len())..];
        let terms = open.windows(2).filter(|pair| pair[0].term != pair[1].term);
        let is_behind = self.term_of(self.length()) < self.term;
        let changes = open.iter().any(|entry| entry.value >= MEMBERS);
        self.role as u64
            | (open.len() as u64).min(3) << 2
            | (terms.count() as u64).min(3) << 4
            | u64::from(is_behind) << 6
            | u64::from(changes) << 7
    }
}

/// The leader of each term, and the committed entries.
#[derive(Debug, Default)]
pub struct Committed {
    leaders: BTreeMap<u64, Addr>,
    entries: BTreeMap<u64, Entry>,
}

impl Observer<Msg> for Committed {
    fn on<C: Context<Msg>>(&mut self, from: Addr, body: Msg, cx: &mut C) {
        match body {
            Msg::Leads(term) => {
                let leader = *self.leaders.entry(term).or_insert(from);
                always!(cx, leader == from, "a term has one leader");
                sometimes!(cx, term > 2, "there are several elections");
            }
            Msg::Applied(index, entry) => {
                let first = *self.entries.entry(index).or_insert(entry);
                always!(cx, first == entry, "committed entries do not change");
            }
            _ => {}
        }
    }
}

impl Program for Raft {
    type Message = Msg;
    type Node = Peer;
    type Observer = Committed;

    fn name(&self) -> &'static str {
        match self.flaw {
            Flaw::Commit => "raft_commit",
            Flaw::Log => "raft_log",
            Flaw::Membership => "raft_membership",
            Flaw::Read => "raft_read",
            Flaw::Truncate => "raft_truncate",
        }
    }

    fn nodes(&self) -> u32 {
        self.servers() + 1
    }

    fn time(&self) -> u32 {
        4_000
    }

    fn node(&self, _: u32) -> Peer {
        Peer {
            flaw: self.bug.then_some(self.flaw),
            changes_members: self.flaw == Flaw::Membership,
            begins_terms: self.flaw != Flaw::Commit,
            servers: self.servers(),
            term: 0,
            voted: 0,
            log: Vec::new(),
            role: Role::default(),
            votes: 0,
            commit: 0,
            applied: 0,
            largest: 0,
            matched: [0; 4],
            next: [0; 4],
            rounds: [0; 4],
            round: 0,
            reads: Vec::new(),
            waiting: 0,
            last: 0,
            seen: 0,
        }
    }

    fn observer(&self) -> Committed {
        Committed::default()
    }
}
