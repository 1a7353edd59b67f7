//! One side of a TCP connection, as a state machine. The inputs are arriving segments and actions of the program; the
//! outputs are segments. The state machine uses neither clocks nor sockets.
//!
//! Segments may be lost, duplicated and reordered. Data that arrives out of order is stored. Lost data is retransmitted
//! after three duplicate acknowledgements or after a time-out. The time-out is computed from the measured round trip.
//! Congestion is not controlled: a sender fills the receiver's window.

use crate::packet::Segment;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// The id of an object of a host's kernel, such as a listener. Ids are never reused.
pub(crate) type Id = u64;

/// The maximum number of received bytes that have not been read.
pub(crate) const RECEIVE_BUFFER: usize = 256 << 10;
/// The maximum number of written bytes that have not been acknowledged.
pub(crate) const SEND_BUFFER: usize = 256 << 10;
/// The maximum number of data bytes in one segment.
const SEGMENT: usize = 32 << 10;

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;
const FIRST_TIMEOUT: u64 = SECOND;
const LEAST_TIMEOUT: u64 = 200 * MILLISECOND;
const MOST_TIMEOUT: u64 = 120 * SECOND;
/// The number of retransmissions of a SYN, and of data, before the connection fails (`tcp_syn_retries`,
/// `tcp_retries2`).
const SYN_RETRIES: u32 = 6;
const DATA_RETRIES: u32 = 15;
/// The time for which an acknowledgement waits for data that can carry it.
const DELAYED_ACKNOWLEDGEMENT: u64 = 40 * MILLISECOND;
/// The number of received bytes that are acknowledged without delay.
const UNDELAYED: u64 = 2 * SEGMENT as u64;
/// The time for which a closed socket waits until the peer closes as well (`tcp_fin_timeout`).
const FIN_TIMEOUT: u64 = 60 * SECOND;

/// The state of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// A SYN has been sent.
    Connecting,
    /// A SYN has been received and answered.
    Accepting,
    /// Both sides know the connection.
    Established,
    /// The connection no longer exists.
    Closed,
}

/// Settings of keep-alive probes, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepAlive {
    pub idle: u64,
    pub interval: u64,
    pub count: u32,
}

/// The changes that matter to the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// True if the readiness of the socket may have changed.
    pub ready: bool,
    /// True if the connection is established and its listener must be notified.
    pub accepted: bool,
}

/// One side of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub local: SocketAddr,
    pub peer: SocketAddr,
    pub state: State,
    /// The listener that is notified when the connection is established.
    pub listener: Option<Id>,
    /// The error that the next call reports; 0 means none.
    pub error: i32,
    /// True if the program has closed its socket.
    pub orphan: bool,
    pub keep_alive: Option<KeepAlive>,
    /// The time for which sent data may stay unacknowledged (`TCP_USER_TIMEOUT`), in nanoseconds; 0 means no limit.
    pub user_timeout: u64,
    /// The time at which the oldest unacknowledged data was sent.
    unanswered_since: u64,
    received: VecDeque<u8>,
    early: BTreeMap<u64, Vec<u8>>,
    /// The next sequence number expected from the peer.
    expected: u64,
    /// The sequence number that was acknowledged last.
    acknowledged: u64,
    /// The time at which received data is acknowledged without data of this side; [`NEVER`] if no acknowledgement is
    /// pending.
    acknowledgement_due: u64,
    /// The sequence number of the peer's FIN, once it has arrived.
    peer_end: Option<u64>,
    reading_shut: bool,
    sending: VecDeque<u8>,
    /// The first unacknowledged sequence number; after the SYN, the sequence number of `sending[0]`.
    unacknowledged: u64,
    /// The next sequence number to send.
    next: u64,
    /// The sequence number after the last one that was ever sent.
    sent: u64,
    /// True if the program will not write any more.
    closing: bool,
    /// The sequence number of this side's FIN, once it has been sent.
    end: Option<u64>,
    window: u64,
    /// The window that was advertised last.
    advertised: usize,
    duplicates: u32,
    timeout: u64,
    round_trip: Option<(u64, u64)>,
    /// A sequence number whose acknowledgement measures the round trip, and its send time.
    timed: Option<(u64, u64)>,
    retries: u32,
    /// The time at which unacknowledged data is retransmitted, or at which an orphan is dropped.
    due: u64,
    /// The time of the last segment from the peer, from which keep-alive probes are timed.
    heard: u64,
    probes: u32,
}

impl Connection {
    /// Creates a connection in this state, which has not sent anything.
    pub(crate) fn new(local: SocketAddr, peer: SocketAddr, state: State, now: u64) -> Connection {
        Connection {
            local,
            peer,
            state,
            listener: None,
            error: 0,
            orphan: false,
            keep_alive: None,
            user_timeout: 0,
            unanswered_since: now,
            received: VecDeque::new(),
            early: BTreeMap::new(),
            expected: u64::from(state == State::Accepting),
            acknowledged: 0,
            acknowledgement_due: NEVER,
            peer_end: None,
            reading_shut: false,
            sending: VecDeque::new(),
            unacknowledged: 0,
            next: 0,
            sent: 0,
            closing: false,
            end: None,
            window: SEGMENT as u64,
            advertised: RECEIVE_BUFFER,
            duplicates: 0,
            timeout: FIRST_TIMEOUT,
            round_trip: None,
            timed: None,
            retries: 0,
            due: NEVER,
            heard: now,
            probes: 0,
        }
    }

    /// Returns the number of bytes that can be read.
    pub(crate) fn readable(&self) -> usize {
        self.received.len()
    }

    /// Returns the number of bytes that can be written.
    pub(crate) fn writable(&self) -> usize {
        SEND_BUFFER.saturating_sub(self.sending.len())
    }

    /// True if nothing more can be read after the received data.
    pub(crate) fn is_at_end(&self) -> bool {
        self.peer_has_closed() || self.reading_shut || self.state == State::Closed
    }

    fn peer_has_closed(&self) -> bool {
        self.peer_end.is_some_and(|end| self.expected > end)
    }

    /// True if the program may not write any more.
    pub(crate) fn is_shut_for_writing(&self) -> bool {
        self.closing
    }

    fn window_now(&self) -> usize {
        RECEIVE_BUFFER.saturating_sub(self.received.len())
    }

    fn segment(&mut self, flags: u8, sequence: u64, data: Vec<u8>) -> Segment {
        self.advertised = self.window_now();
        self.acknowledged = self.expected;
        self.acknowledgement_due = NEVER;
        Segment {
            flags,
            sequence,
            acknowledged: self.expected,
            window: self.advertised as u32,
            data,
        }
    }

    fn reset(&mut self, out: &mut Vec<Segment>) {
        let segment = self.segment(Segment::RST | Segment::ACK, self.next, vec![]);
        out.push(segment);
        self.state = State::Closed;
        self.due = NEVER;
    }

    /// Returns received bytes and removes them, unless `peek` is true.
    pub(crate) fn read(&mut self, most: usize, peek: bool, out: &mut Vec<Segment>) -> Vec<u8> {
        let count = most.min(self.received.len());
        let bytes: Vec<u8> = self.received.range(..count).copied().collect();
        if !peek {
            self.received.drain(..count);
            // If a small window has stopped the sender, it is notified when half of the buffer is free again.
            let half = RECEIVE_BUFFER / 2;
            if self.advertised < half
                && self.window_now() >= half
                && self.state == State::Established
            {
                let update = self.segment(Segment::ACK, self.next, vec![]);
                out.push(update);
            }
        }
        bytes
    }

    /// Takes as many bytes to send as fit, and returns their number.
    pub(crate) fn write(&mut self, bytes: &[u8], now: u64, out: &mut Vec<Segment>) -> usize {
        let count = bytes.len().min(self.writable());
        self.sending.extend(&bytes[..count]);
        self.transmit(now, out);
        count
    }

    /// Records that the program will not write any more.
    pub(crate) fn shut_writing(&mut self, now: u64, out: &mut Vec<Segment>) {
        self.closing = true;
        self.transmit(now, out);
    }

    /// Records that the program will not read any more.
    pub(crate) fn shut_reading(&mut self) {
        self.reading_shut = true;
    }

    /// Closes the socket on behalf of the program. If data is unread or `abort` is true, the peer gets a reset.
    pub(crate) fn close(&mut self, abort: bool, now: u64, out: &mut Vec<Segment>) {
        self.orphan = true;
        match self.state {
            State::Established if abort || !self.received.is_empty() => self.reset(out),
            State::Established => {
                self.shut_writing(now, out);
                if self.due == NEVER {
                    self.due = now + FIN_TIMEOUT;
                }
            }
            State::Accepting => self.reset(out),
            _ => self.state = State::Closed,
        }
    }

    /// True if no program uses the connection any more and neither side has data left to send.
    pub(crate) fn is_over(&self) -> bool {
        let sent_all =
            self.end.is_some() && self.sending.is_empty() && self.unacknowledged == self.sent;
        self.orphan && (self.state == State::Closed || self.peer_has_closed() && sent_all)
    }

    /// Sends all segments that may be sent at `now`.
    pub(crate) fn transmit(&mut self, now: u64, out: &mut Vec<Segment>) {
        match self.state {
            State::Connecting | State::Accepting => {
                if self.next == 0 {
                    let flags = match self.state {
                        State::Connecting => Segment::SYN,
                        _ => Segment::SYN | Segment::ACK,
                    };
                    let segment = self.segment(flags, 0, vec![]);
                    out.push(segment);
                    self.advance(1, now);
                }
                return;
            }
            State::Closed => return,
            State::Established => {}
        }
        while let Some((data, fin)) = self.next_data() {
            let count = data.len() as u64 + u64::from(fin);
            let flags = Segment::ACK | if fin { Segment::FIN } else { 0 };
            if fin {
                self.end = Some(self.next + data.len() as u64);
            }
            let segment = self.segment(flags, self.next, data);
            out.push(segment);
            self.advance(count, now);
        }
        let waits = self.sent > self.unacknowledged || !self.sending.is_empty();
        if waits && self.due == NEVER {
            self.due = now + self.timeout;
        }
    }

    /// Returns the data of the next segment, and whether it ends with the FIN.
    fn next_data(&self) -> Option<(Vec<u8>, bool)> {
        let offset = (self.next - self.unacknowledged) as usize;
        let left = self.sending.len().checked_sub(offset)?;
        if left == 0 {
            let is_sent = self.end.is_some_and(|end| self.next > end);
            return (self.closing && !is_sent).then(|| (vec![], true));
        }
        let mut room = self.window.saturating_sub(offset as u64) as usize;
        if room == 0 && offset == 0 && self.retries > 0 {
            room = 1; // a probe of a closed window
        }
        let count = left.min(SEGMENT).min(room);
        if count == 0 {
            return None;
        }
        let data = self
            .sending
            .range(offset..offset + count)
            .copied()
            .collect();
        Some((data, count == left && self.closing))
    }

    fn advance(&mut self, count: u64, now: u64) {
        if self.timed.is_none() && self.next == self.sent {
            self.timed = Some((self.next + count, now));
        }
        if self.unacknowledged == self.sent {
            self.unanswered_since = now;
        }
        self.next += count;
        self.sent = self.sent.max(self.next);
        if self.due == NEVER {
            self.due = now + self.timeout;
        }
    }

    /// Returns the time at which [`Connection::on_timer`] must be called; [`NEVER`] if nothing is pending.
    pub(crate) fn due(&self) -> u64 {
        let probe = match self.keep_alive {
            Some(keep) if self.state == State::Established && !self.orphan => match self.probes {
                0 => self.heard + keep.idle,
                _ => self.heard + keep.idle + keep.interval * u64::from(self.probes),
            },
            _ => NEVER,
        };
        self.due.min(probe).min(self.acknowledgement_due)
    }

    /// Handles a due timer: retransmits, probes, or gives up.
    pub(crate) fn on_timer(&mut self, now: u64, out: &mut Vec<Segment>) -> Change {
        if self.state == State::Closed || self.due() > now {
            return Change::default();
        }
        if self.acknowledgement_due <= now {
            let acknowledgement = self.segment(Segment::ACK, self.next, vec![]);
            out.push(acknowledgement);
            return Change::default();
        }
        if self.due > now {
            return self.probe(out);
        }
        self.due = NEVER;
        if self.orphan && self.unacknowledged == self.sent && self.sending.is_empty() {
            self.state = State::Closed;
            return Change::default();
        }
        self.retries += 1;
        let most = match self.state {
            State::Established => DATA_RETRIES,
            _ => SYN_RETRIES,
        };
        let since = self.unanswered_since.max(self.heard);
        let is_too_late = self.user_timeout > 0 && now - since >= self.user_timeout;
        if self.retries > most || is_too_late {
            return self.fail(libc::ETIMEDOUT);
        }
        self.timeout = (self.timeout * 2).min(MOST_TIMEOUT);
        self.send_again(now, out);
        Change::default()
    }

    /// Retransmits from the first unacknowledged byte on.
    fn send_again(&mut self, now: u64, out: &mut Vec<Segment>) {
        self.timed = None;
        self.next = self.unacknowledged;
        self.due = NEVER;
        self.transmit(now, out);
    }

    fn probe(&mut self, out: &mut Vec<Segment>) -> Change {
        let count = self.keep_alive.map_or(0, |keep| keep.count);
        if self.probes >= count {
            self.reset(out);
            return self.fail(libc::ETIMEDOUT);
        }
        self.probes += 1;
        // The peer answers a sequence number that it has already received.
        let probe = self.segment(Segment::ACK, self.next.saturating_sub(1), vec![0]);
        out.push(probe);
        Change::default()
    }

    fn fail(&mut self, error: i32) -> Change {
        self.error = error;
        self.state = State::Closed;
        self.due = NEVER;
        self.acknowledgement_due = NEVER;
        self.sending.clear();
        Change {
            ready: true,
            accepted: false,
        }
    }

    /// Handles a segment from the peer.
    pub(crate) fn on_segment(
        &mut self,
        segment: &Segment,
        now: u64,
        out: &mut Vec<Segment>,
    ) -> Change {
        if segment.has(Segment::RST) {
            return self.on_reset(segment);
        }
        if self.state == State::Closed {
            out.extend(segment.refusal());
            return Change::default();
        }
        self.heard = now;
        self.probes = 0;
        let mut change = Change::default();
        let mut answer = false;
        if segment.has(Segment::SYN) {
            answer = self.on_syn(segment, &mut change);
        }
        if segment.has(Segment::ACK) {
            self.on_acknowledgement(segment, now, out, &mut change);
        }
        if self.state != State::Established {
            self.transmit(now, out);
            return change;
        }
        if !segment.data.is_empty() || segment.has(Segment::FIN) {
            if self.orphan && !segment.data.is_empty() && segment.sequence >= self.expected {
                self.reset(out);
                return change;
            }
            let expected = self.expected;
            change.ready |= self.on_data(segment);
            // The acknowledgement of data in order may wait for data of this side. Gaps and the FIN are acknowledged at
            // once.
            let in_order = segment.sequence == expected && self.early.is_empty();
            let is_small = self.expected - self.acknowledged < UNDELAYED;
            match in_order && is_small && !segment.has(Segment::FIN) {
                true if self.acknowledgement_due == NEVER => {
                    self.acknowledgement_due = now + DELAYED_ACKNOWLEDGEMENT;
                }
                true => {}
                false => answer = true,
            }
        }
        let before = out.len();
        self.transmit(now, out);
        if answer && out.len() == before {
            let acknowledgement = self.segment(Segment::ACK, self.next, vec![]);
            out.push(acknowledgement);
        }
        change
    }

    fn on_reset(&mut self, segment: &Segment) -> Change {
        if self.state == State::Closed {
            return Change::default();
        }
        // A reset that does not acknowledge this connection's SYN belongs to an earlier connection.
        if self.state == State::Connecting && segment.acknowledged != self.sent {
            return Change::default();
        }
        self.fail(match self.state {
            State::Connecting => libc::ECONNREFUSED,
            _ if self.peer_has_closed() => libc::EPIPE,
            _ => libc::ECONNRESET,
        })
    }

    /// Handles a SYN. Returns true if the segment must be acknowledged.
    fn on_syn(&mut self, segment: &Segment, change: &mut Change) -> bool {
        match self.state {
            State::Connecting if segment.has(Segment::ACK) => {
                self.state = State::Established;
                self.expected = 1;
                change.ready = true;
                true
            }
            // The peer repeats its SYN, because the answer was lost.
            State::Accepting => {
                self.next = 0;
                false
            }
            _ => true,
        }
    }

    fn on_acknowledgement(
        &mut self,
        segment: &Segment,
        now: u64,
        out: &mut Vec<Segment>,
        change: &mut Change,
    ) {
        let acknowledged = segment.acknowledged;
        let window_grew = u64::from(segment.window) > self.window;
        self.window = segment.window.into();
        if acknowledged > self.sent {
            return;
        }
        if acknowledged <= self.unacknowledged {
            let is_duplicate = acknowledged == self.unacknowledged
                && segment.data.is_empty()
                && !window_grew
                && self.sent > self.unacknowledged
                && segment.flags == Segment::ACK;
            self.duplicates = if is_duplicate { self.duplicates + 1 } else { 0 };
            if self.duplicates == 3 && self.state == State::Established {
                self.send_again(now, out);
            }
            return;
        }
        let mut bytes = acknowledged - self.unacknowledged;
        if self.unacknowledged == 0 {
            bytes -= 1; // the SYN
        }
        self.sending
            .drain(..(bytes as usize).min(self.sending.len()));
        self.unacknowledged = acknowledged;
        self.next = self.next.max(acknowledged);
        self.retries = 0;
        self.duplicates = 0;
        self.measure(acknowledged, now);
        self.due = match (self.sent > acknowledged, self.orphan) {
            (true, _) => now + self.timeout,
            (false, true) => now + FIN_TIMEOUT,
            (false, false) => NEVER,
        };
        change.ready = true;
        if self.state == State::Accepting {
            self.state = State::Established;
            change.accepted = true;
        }
    }

    /// Updates the time-out with a measured round trip (RFC 6298).
    fn measure(&mut self, acknowledged: u64, now: u64) {
        let Some((_, sent)) = self.timed.filter(|&(end, _)| acknowledged >= end) else {
            return;
        };
        self.timed = None;
        let sample = now - sent;
        let (mean, deviation) = match self.round_trip {
            None => (sample, sample / 2),
            Some((mean, deviation)) => (
                (mean * 7 + sample) / 8,
                (deviation * 3 + mean.abs_diff(sample)) / 4,
            ),
        };
        self.round_trip = Some((mean, deviation));
        self.timeout = (mean + 4 * deviation).clamp(LEAST_TIMEOUT, MOST_TIMEOUT);
    }

    /// Handles data and the FIN. Returns true if the program can read more than before.
    fn on_data(&mut self, segment: &Segment) -> bool {
        let end = segment.sequence + segment.data.len() as u64;
        if segment.has(Segment::FIN) {
            self.peer_end = Some(end);
        }
        let before = self.expected;
        let room = RECEIVE_BUFFER.saturating_sub(self.received.len()) as u64;
        if end > self.expected && segment.sequence < self.expected + room.max(1) {
            self.early
                .entry(segment.sequence)
                .or_insert_with(|| segment.data.clone());
        }
        while let Some(entry) = self.early.first_entry() {
            let (start, length) = (*entry.key(), entry.get().len() as u64);
            if start > self.expected {
                break;
            }
            let data = entry.remove();
            if start + length > self.expected {
                let skip = (self.expected - start) as usize;
                self.expected = start + length;
                if !self.reading_shut {
                    self.received.extend(&data[skip..]);
                }
            }
        }
        if self.peer_end == Some(self.expected) {
            self.expected += 1;
        }
        self.expected > before
    }

    /// Returns the readiness of the socket, as bits of epoll.
    pub(crate) fn readiness(&self) -> u32 {
        let mut ready = 0;
        if !self.received.is_empty() || self.is_at_end() {
            ready |= libc::EPOLLIN;
        }
        if self.is_at_end() {
            ready |= libc::EPOLLRDHUP;
        }
        let both_shut = self.closing && (self.reading_shut || self.peer_has_closed());
        if self.state == State::Closed || both_shut {
            ready |= libc::EPOLLHUP;
        }
        let can_write = self.state == State::Established
            && (self.closing || self.writable() >= SEND_BUFFER / 3);
        if can_write || self.state == State::Closed {
            ready |= libc::EPOLLOUT;
        }
        if self.error != 0 {
            ready |= libc::EPOLLERR;
        }
        ready as u32
    }
}
