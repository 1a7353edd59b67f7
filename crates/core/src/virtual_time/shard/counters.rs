//! Counters, digest and failures of a shard.

use super::{ROOT, Shard};
use crate::contract::config::fold;
use crate::contract::{ActorTotals, Addr, Message, PanicReport, Probes, Report, Time, Token};
use crate::virtual_time::addresses::{PAGE, PAGE_BITS};
use crate::virtual_time::event::{Head, Kind, ScheduledEvent, TIMER_FROM};
use crate::virtual_time::header::Header;
#[cfg(doc)]
use crate::virtual_time::stored_event::EventRef;
use std::any::Any;
use std::cmp::Ordering;

/// The first message for an actor that had ended, which strict runs report.
#[derive(Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(in super::super) struct FirstDead {
    /// The time, the receiver and the sender.
    pub(in super::super) order: (u64, u32, u32),
    pub(in super::super) kind: usize,
}

/// A failure of an actor or an event that stops the run.
#[derive(Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(in super::super) struct Failure {
    /// True if the failure happened at the end of the run; then it may be the consequence of an earlier failure on any
    /// shard.
    pub(in super::super) at_end: bool,
    pub(in super::super) time: u64,
    pub(in super::super) who: u32,
    pub(in super::super) name: String,
    pub(in super::super) cause: FailureCause,
}

impl Failure {
    /// Returns the key by which failures are ordered; the run reports the first failure. Panics of one actor at the
    /// same time are ordered by their text.
    pub(in super::super) fn order(&self) -> (bool, u64, u32, Option<u32>, &str) {
        let (peer, text) = match &self.cause {
            FailureCause::Panic { peer, report } => (*peer, report.message.as_str()),
            _ => (None, ""),
        };
        (self.at_end, self.time, self.who, peer, text)
    }
}

/// The cause of a failure.
#[derive(Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(in super::super) enum FailureCause {
    /// The actor panicked.
    Panic {
        report: PanicReport,
        /// The actor whose name completes the description of the event; it may be on another shard.
        peer: Option<u32>,
    },
    /// The actor received this number of events from itself at one instant.
    Livelock(u32),
    /// The actor used up the sequence numbers of messages.
    Sends,
}

/// An event in the log. Events are ordered by time, receiver, sender and sequence number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LoggedEvent {
    pub(crate) time: u64,
    pub(crate) to: u32,
    pub(crate) from: u32,
    pub(crate) sequence: u32,
    pub(crate) what: LoggedKind,
    pub(crate) contents: u64,
}

/// The kind of a recorded event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum LoggedKind {
    /// A message of this kind; the contents are its fingerprint.
    Message(usize),
    /// A timer; the contents are its token.
    Timer,
    /// A message of this kind that had no receiver.
    DeadLetter(usize),
    /// The actor starts.
    Start,
    /// The actor is stopped.
    Stop,
    /// The actor receives the addresses of actors that it has spawned: the contents are the first address and the
    /// count.
    Spawned,
    /// The actor is notified that another actor has ended.
    Down,
    /// The actor is notified that a request will not be answered.
    Unanswered,
    /// The root gets a dead letter.
    Returned,
}

/// The counters of a shard.
#[derive(Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(in super::super) struct Counters {
    pub(in super::super) messages: Vec<u64>,
    pub(in super::super) dead: Vec<u64>,
    pub(in super::super) first_dead: Option<FirstDead>,
    pub(in super::super) fired: u64,
    /// Messages lost by the network.
    pub(in super::super) lost: u64,
    pub(in super::super) duplicated: u64,
    pub(in super::super) digest: u64,
    pub(in super::super) begun: u64,
    pub(in super::super) ended: u64,
    /// The number of actors that ended before they began.
    pub(in super::super) never: u64,
    pub(in super::super) last: u64,
    /// A counter that changes with every event that is neither a message nor a timer.
    pub(in super::super) others: u64,
    /// The time at which the root ended, plus the smallest latency.
    pub(in super::super) root_end: u64,
    pub(in super::super) root_ended: Option<u64>,
    /// The first failure in virtual time.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(in super::super) failure: Option<Failure>,
    /// Panics that ended only their actors. The name of the second actor, if there is one, must be appended to the
    /// description of the event.
    pub(in super::super) panics: Vec<(PanicReport, Option<u32>)>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(in super::super) received: Vec<Vec<u64>>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(in super::super) too_many: bool,
    pub(in super::super) probes: Probes,
}

/// Compares panics by the order in which they are reported. This order does not depend on shards.
pub(in super::super) fn compare_panics(
    (one, peer): &(PanicReport, Option<u32>),
    (other, others): &(PanicReport, Option<u32>),
) -> Ordering {
    let one = (one.time, one.who, peer, &one.message);
    one.cmp(&(other.time, other.who, others, &other.message))
}

impl Counters {
    pub(in super::super) fn new(kinds: usize) -> Counters {
        Counters {
            messages: vec![0; kinds],
            dead: vec![0; kinds],
            first_dead: None,
            fired: 0,
            lost: 0,
            duplicated: 0,
            digest: 0,
            begun: 0,
            ended: 0,
            never: 0,
            last: 0,
            others: 0,
            root_end: u64::MAX,
            root_ended: None,
            failure: None,
            panics: Vec::new(),
            received: Vec::new(),
            too_many: false,
            probes: Probes::default(),
        }
    }

    /// Records a panic that does not end the run. Only the first panics are stored.
    fn survive(&mut self, panicked: PanicReport, peer: Option<u32>) {
        self.panics.push((panicked, peer));
        if self.panics.len() >= 2 * Report::MOST_PANICS {
            self.panics.sort_by(compare_panics);
            self.panics.truncate(Report::MOST_PANICS);
        }
    }

    /// Records that an event happened at this time.
    #[inline(always)]
    pub(in super::super) fn note_time(&mut self, now: u64) {
        self.last = self.last.max(now);
    }

    /// Returns the number of actors that have begun and not ended.
    pub(in super::super) fn live(&self) -> u64 {
        self.begun + self.never - self.ended
    }
}

impl<M: Message> Shard<M> {
    /// Counts a message that is being delivered, with its [parties](EventRef::parties), its number, and the
    /// fingerprint of its contents. The time must have been recorded before.
    #[inline(always)]
    pub(in super::super) fn count_message(
        &mut self,
        parties: u64,
        seq: u32,
        kind: usize,
        fingerprint: u64,
    ) {
        self.counters.messages[kind] += 1;
        self.turn.kind = kind;
        let what = (seq as u64) << 32 | kind as u64;
        self.digest(parties, what, fingerprint);
        if self.settings.attentive {
            self.attend(LoggedKind::Message(kind), fingerprint);
        }
    }

    /// Counts a timer being delivered.
    #[inline(always)]
    pub(in super::super) fn count_timer(&mut self, token: u64) {
        self.counters.fired += 1;
        self.counters.note_time(self.turn.now);
        let parties = (self.turn.me as u64) << 32 | TIMER_FROM as u64;
        // All internal tokens count as one value, because their numbers depend on the shard.
        self.digest(parties, 0, token.min(Token::OWN as u64));
        if self.settings.attentive {
            self.attend(LoggedKind::Timer, token.min(Token::OWN as u64));
        }
    }

    /// Adds an event to the run's digest. The digest is a sum of hashes, so it does not depend on the shard of a
    /// receiver or the order of receivers. Each hash includes time, receiver, sender and sequence number, so the digest
    /// still depends on the order at each receiver.
    #[inline(always)]
    fn digest(&mut self, parties: u64, what: u64, contents: u64) {
        let inner = fold(
            self.turn.now ^ 0x8BB8_4B93_962E_ACC9,
            contents ^ 0x2D35_8DCC_AA6C_78A5,
        );
        let outer = fold(
            parties ^ inner,
            what.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ inner.rotate_left(32) | 1,
        );
        self.counters.digest = self.counters.digest.wrapping_add(outer);
    }

    /// Records the event being delivered, in runs that compare events.
    #[cold]
    fn attend(&mut self, what: LoggedKind, contents: u64) {
        let head = self.current();
        self.log(&head, what, contents);
        if self.settings.per_actor && matches!(what, LoggedKind::Message(_)) {
            self.count_received();
        }
    }

    /// Records an event that is neither a message nor a timer.
    #[cold]
    pub(in super::super) fn attend_other(&mut self) {
        let head = self.current();
        let what = match head.kind() {
            Kind::Start => LoggedKind::Start,
            Kind::Stop => LoggedKind::Stop,
            Kind::Spawned => LoggedKind::Spawned,
            Kind::Down => LoggedKind::Down,
            Kind::Unanswered | Kind::AskUnanswered => LoggedKind::Unanswered,
            Kind::DeadLetter => LoggedKind::Returned,
            _ => return,
        };
        self.log(&head, what, head.cause.parent);
    }

    fn log(&mut self, head: &Head, what: LoggedKind, contents: u64) {
        let time = self.turn.now;
        if let Some(trail) = &mut self.trail {
            trail.push(LoggedEvent {
                time,
                to: head.to,
                from: head.from,
                sequence: head.seq,
                what,
                contents,
            });
        }
    }

    fn count_received(&mut self) {
        let number = (self.turn.me >> PAGE_BITS) as usize;
        let received = &mut self.counters.received;
        if received.len() <= number {
            received.resize_with(number + 1, Vec::new);
        }
        let page = &mut received[number];
        page.resize(PAGE as usize, 0);
        page[(self.turn.me % PAGE) as usize] += 1;
    }

    /// Counts an event for an actor that has ended, or for an unused address. `kind` is its
    /// [`ScheduledEvent::message_kind`]. The caller drops the returned event.
    #[cold]
    #[inline(never)]
    #[must_use = "dropping a message runs foreign code; drop it where no reference is held"]
    pub(in super::super) fn undeliverable(
        &mut self,
        event: ScheduledEvent<M>,
        kind: Option<usize>,
    ) -> Option<ScheduledEvent<M>> {
        let head = event.head;
        self.counters.others += 1;
        let Some(kind) = kind else { return Some(event) };
        self.counters.dead[kind] += 1;
        self.log(&head, LoggedKind::DeadLetter(kind), 0);
        let order = (self.turn.now, head.to, head.from);
        if self
            .counters
            .first_dead
            .as_ref()
            .is_none_or(|first| order < first.order)
        {
            self.counters.first_dead = Some(FirstDead { order, kind });
        }
        let unanswered = match head.kind() {
            Kind::Request => Some(Kind::Unanswered),
            Kind::Ask => Some(Kind::AskUnanswered),
            _ => None,
        };
        if let Some(unanswered) = unanswered {
            let time = self.arrival(head.to, head.from);
            let mut answer = Head::new(0, unanswered, head.from, head.to, head.seq, self.turn.now);
            answer.cause.parent = head.span();
            self.schedule(time, ScheduledEvent::bare(answer));
        }
        if !self.settings.to_root || head.to == ROOT {
            return Some(event);
        }
        let time = self.turn.now.saturating_add(self.settings.latency.min);
        self.schedule(time, event.returned_to(ROOT, self.turn.now));
        None
    }

    /// Records a panic of the actor being run. The name of `peer` completes the description of the event.
    pub(in super::super) fn note_panic(
        &mut self,
        event: String,
        peer: Option<u32>,
        panic: &(dyn Any + Send),
    ) {
        let (who, time) = (self.turn.me, self.turn.now);
        let report = PanicReport {
            who: Addr(who),
            name: self.places.name_of(who),
            time: Time(time),
            event,
            message: crate::contract::report::panic_text(panic),
        };
        self.report_panic(report, peer);
    }

    /// Records a panic. The panic ends the run, unless the configuration lets runs survive panics of actors.
    pub(super) fn report_panic(&mut self, report: PanicReport, peer: Option<u32>) {
        let who = report.who.as_u32();
        if self.settings.survives_panics && who != ROOT {
            return self.counters.survive(report, peer);
        }
        self.fail_by(Failure {
            at_end: self.over,
            time: report.time.as_nanos(),
            who,
            name: report.name.clone(),
            cause: FailureCause::Panic { report, peer },
        });
    }

    /// Records that the actor being run stops the run, if this is the first failure in virtual time.
    pub(in super::super) fn fail(&mut self, cause: FailureCause) {
        let failure = Failure {
            at_end: self.over,
            time: self.turn.now,
            who: self.turn.me,
            name: self.places.name_of(self.turn.me),
            cause,
        };
        self.fail_by(failure);
    }

    /// Records a failure, if it is the first in virtual time.
    fn fail_by(&mut self, failure: Failure) {
        self.notable = true;
        let first = self.counters.failure.as_ref();
        if first.is_none_or(|first| failure.order() < first.order()) {
            self.counters.failure = Some(failure);
        }
    }

    /// Describes the event being handled for a report, and returns the actor whose name completes the description.
    pub(in super::super) fn describe_current(&self) -> (String, Option<u32>) {
        let head = self.current();
        let own = head.cause.parent as u32 >= Token::OWN;
        let from = Some(head.from);
        match head.kind() {
            Kind::Plain | Kind::Message | Kind::Request | Kind::Ask | Kind::Reply => {
                (format!("{} from ", M::KINDS[self.turn.kind]), from)
            }
            Kind::DeadLetter => ("a dead letter for ".to_owned(), from),
            Kind::Timer if own => ("the end of a wait".to_owned(), None),
            Kind::Timer => (format!("timer {}", head.cause.parent), None),
            Kind::Start => ("its start".to_owned(), None),
            Kind::Stop => ("its end".to_owned(), None),
            Kind::Spawned => ("the end of its spawn".to_owned(), None),
            Kind::Down => ("the end of ".to_owned(), from),
            Kind::Unanswered | Kind::AskUnanswered => {
                ("a request left unanswered by ".to_owned(), from)
            }
        }
    }

    /// Returns the totals of an actor.
    pub(in super::super) fn totals_of(&self, actor: u32, header: &Header) -> ActorTotals {
        let page = self.counters.received.get((actor >> PAGE_BITS) as usize);
        let received = page.and_then(|page| page.get((actor % PAGE) as usize));
        ActorTotals {
            who: Addr(actor),
            sent: header.seq as u64,
            received: received.copied().unwrap_or(0),
            ended: header.ended(),
        }
    }
}
