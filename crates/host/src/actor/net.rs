//! The interface of an actor that is a host: clocks, random numbers, sockets, the log.

use super::tasks::Spawned;
use crate::packet::{Packet, Payload, Segment};
use crate::tcp::{Change, Connection, NEVER, State as TcpState};
use crate::uplink::Uplink;
use corsair::{Random, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// The first port that is assigned to outgoing connections.
const FIRST_PORT: u16 = 32_768;
const PORTS: u32 = 28_232;
/// The maximum number of connections that wait to be accepted, and of datagrams that wait to be received.
const BACKLOG: usize = 1_024;

/// The two ends of a connection: local, remote.
pub(super) type Pair = (SocketAddr, SocketAddr);

/// The network, the clock and the log of an actor that is a host. [`Sim::actor`](crate::Sim::actor) passes this value
/// to the actor's body.
///
/// Futures of other libraries, for example hyper on a [`Stream`](crate::Stream), work if they wait only for these
/// sockets and timers. The timers and channels of an async runtime do not work, because the runtime is not running.
#[derive(Clone)]
pub struct Net(Arc<Mutex<State>>);

/// A connection, and the futures that wait for it.
pub(super) struct Socket {
    pub connection: Connection,
    pub waiting: Vec<Waker>,
    /// The time of the connection's entry in `State::due`; `NEVER` if it has none.
    due: u64,
}

/// A UDP port or a listener, and the futures that wait for it.
pub(super) struct Port<T> {
    pub queue: VecDeque<T>,
    pub waiting: Vec<Waker>,
}

impl<T> Default for Port<T> {
    fn default() -> Port<T> {
        Port {
            queue: VecDeque::new(),
            waiting: vec![],
        }
    }
}

impl<T> Port<T> {
    fn push(&mut self, item: T) -> bool {
        let fits = self.queue.len() < BACKLOG;
        if fits {
            self.queue.push_back(item);
            self.waiting.drain(..).for_each(Waker::wake);
        }
        fits
    }
}

/// The state of a host that is an actor.
pub(super) struct State {
    uplink: Uplink,
    now: u64,
    random: Random,
    pub sockets: BTreeMap<Pair, Socket>,
    pub listeners: BTreeMap<u16, Port<Pair>>,
    pub datagrams: BTreeMap<u16, Port<(SocketAddr, Vec<u8>)>>,
    /// The times at which connections must act, for example retransmit.
    due: BTreeSet<(u64, Pair)>,
    sleeps: BTreeMap<(u64, u64), Waker>,
    sleep_count: u64,
    next_port: u32,
    packets: Vec<Packet>,
    spawned: Vec<Spawned>,
    /// True if names of other hosts can be looked up.
    has_names: bool,
}

impl Net {
    /// Creates the sockets of a host that is being started.
    pub(super) fn new(uplink: Uplink, starts: u32, now: u64) -> Net {
        let stream =
            uplink.world.seed ^ ((uplink.host as u64 + 1) << 32) ^ (u64::from(starts) << 56);
        let mut random = Random::new(stream);
        Net(Arc::new(Mutex::new(State {
            uplink,
            now,
            next_port: random.below(PORTS),
            random,
            sockets: BTreeMap::new(),
            listeners: BTreeMap::new(),
            datagrams: BTreeMap::new(),
            due: BTreeSet::new(),
            sleeps: BTreeMap::new(),
            sleep_count: 0,
            packets: vec![],
            spawned: vec![],
            has_names: true,
        })))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the virtual time.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.state().now)
    }

    /// Returns 64 random bits of this host.
    pub fn random(&self) -> u64 {
        self.state().random.bits()
    }

    /// Returns the name of this host.
    pub fn name(&self) -> String {
        let state = self.state();
        state.uplink.world.hosts[state.uplink.host].name.clone()
    }

    /// Returns a random number below `bound`, which is not 0.
    pub fn below(&self, bound: u32) -> u32 {
        self.state().random.below(bound)
    }

    /// Adds to a counter of the simulation, as [`Host::count`](crate::Host::count) does in a program.
    pub fn count(&self, name: &str, count: u64) {
        self.record(crate::log::COUNTERS, &crate::log::counter(name, count));
    }

    /// Writes a line to the log of the simulation.
    pub fn log(&self, text: &str) {
        self.write_log(1, text);
    }

    pub(super) fn log_error(&self, text: &str) {
        self.write_log(2, text);
    }

    fn write_log(&self, stream: u8, text: &str) {
        self.record(stream, format!("{text}\n").as_bytes());
    }

    fn record(&self, stream: u8, bytes: &[u8]) {
        let state = self.state();
        let host = state.uplink.host;
        crate::log::write_record(state.now, 0, stream, bytes, |record| {
            state.uplink.record().lines.take(host, record);
        });
    }

    /// Waits for a duration of virtual time.
    pub async fn sleep(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let (until, number) = {
            let mut state = self.state();
            state.sleep_count += 1;
            (state.now.saturating_add(nanos), state.sleep_count)
        };
        let _sleep = Sleep {
            net: self,
            key: (until, number),
        };
        std::future::poll_fn(|context| {
            let mut state = self.state();
            if state.now >= until {
                return Poll::Ready(());
            }
            state
                .sleeps
                .insert((until, number), context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Returns the output of a future, or `None` if the future is not ready after this duration of virtual time.
    pub async fn timeout<T>(
        &self,
        duration: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let mut future = std::pin::pin!(future);
        let mut sleep = std::pin::pin!(self.sleep(duration));
        std::future::poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => sleep.as_mut().poll(context).map(|()| None),
        })
        .await
    }

    /// Runs a future concurrently with the body. The future is dropped when the body ends.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.state().spawned.push(Box::pin(future));
    }

    /// Resolves `name:port` to an address.
    pub(super) fn resolve(&self, text: &str) -> io::Result<SocketAddr> {
        if let Ok(address) = text.parse() {
            return Ok(address);
        }
        let invalid = || {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("'{text}' is not a host and a port; expected for example server:80"),
            )
        };
        let (name, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let port = port.parse().map_err(|_| invalid())?;
        let state = self.state();
        if !state.has_names && name.parse::<IpAddr>().is_err() {
            return Err(io::Error::other("Temporary failure in name resolution"));
        }
        let ip = state.uplink.world.resolve(name).first().copied();
        ip.map(|ip| SocketAddr::new(ip, port)).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no host '{name}'"),
            )
        })
    }

    // ---- the engine's side ------------------------------------------------------------------------

    /// Sets whether names of other hosts can be looked up.
    pub(super) fn set_names(&self, has_names: bool) {
        self.state().has_names = has_names;
    }

    /// Advances the clock to `now`, and handles all sleeps and deliveries that are due.
    pub(super) fn advance(&self, now: u64) {
        let mut state = self.state();
        state.now = now;
        while let Some(entry) = state
            .sleeps
            .first_entry()
            .filter(|entry| entry.key().0 <= now)
        {
            entry.remove().wake();
        }
        while let Some(&(at, pair)) = state.due.first().filter(|(at, _)| *at <= now) {
            state.due.remove(&(at, pair));
            if let Some(socket) = state.sockets.get_mut(&pair) {
                socket.due = NEVER;
            }
            state.drive(pair, |connection, now, out| {
                ((), connection.on_timer(now, out))
            });
        }
    }

    /// Handles an arriving packet.
    pub(super) fn receive(&self, packet: Packet, now: u64) {
        self.advance(now);
        let mut state = self.state();
        let pair = (packet.destination, packet.source);
        let refusal = packet.refusal();
        let is_taken = match packet.payload {
            Payload::Tcp(segment) => state.on_segment(pair, &segment),
            Payload::Udp(data) => {
                let port = state.datagrams.get_mut(&packet.destination.port());
                // A datagram for a full queue is lost.
                port.map(|port| port.push((packet.source, data))).is_some()
            }
            Payload::Unreachable => true,
        };
        if !is_taken {
            state.packets.extend(refusal);
        }
    }

    /// Takes the packets to send.
    pub(super) fn take_packets(&self) -> Vec<Packet> {
        std::mem::take(&mut self.state().packets)
    }

    /// Takes the futures that were spawned.
    pub(super) fn take_spawned(&self) -> Vec<Spawned> {
        std::mem::take(&mut self.state().spawned)
    }

    /// Returns the time of the next sleep or delivery that happens even if no packet arrives.
    pub(super) fn next(&self) -> Option<u64> {
        let state = self.state();
        let sleep = state.sleeps.first_key_value().map(|((at, _), _)| *at);
        let due = state.due.first().map(|&(at, _)| at);
        sleep.into_iter().chain(due).min()
    }

    /// True if a future waits for a sleep or a socket of this host.
    pub(super) fn is_awaited(&self) -> bool {
        let state = self.state();
        !state.sleeps.is_empty()
            || state
                .sockets
                .values()
                .any(|socket| !socket.waiting.is_empty())
            || state
                .listeners
                .values()
                .any(|port| !port.waiting.is_empty())
            || state
                .datagrams
                .values()
                .any(|port| !port.waiting.is_empty())
    }
}

/// A guard that removes the entry of a sleep when the sleep is dropped.
struct Sleep<'a> {
    net: &'a Net,
    key: (u64, u64),
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        self.net.state().sleeps.remove(&self.key);
    }
}

impl std::fmt::Debug for Net {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Net").field(&self.name()).finish()
    }
}

impl State {
    pub(super) fn free_port(&mut self, is_used: impl Fn(&State, u16) -> bool) -> io::Result<u16> {
        for _ in 0..PORTS {
            let port = FIRST_PORT + self.next_port as u16;
            self.next_port = (self.next_port + 1) % PORTS;
            if !is_used(self, port) {
                return Ok(port);
            }
        }
        Err(io::ErrorKind::AddrNotAvailable.into())
    }

    fn own_ip(&self, peer: IpAddr) -> IpAddr {
        let [v4, v6] = self.uplink.world.hosts[self.uplink.host].addresses;
        if peer.is_ipv4() { v4 } else { v6 }
    }

    /// Opens a connection: sends a SYN, and returns the pair of addresses.
    pub(super) fn open(&mut self, peer: SocketAddr) -> io::Result<Pair> {
        if self.uplink.world.host_of(peer.ip()).is_none() {
            return Err(io::Error::from_raw_os_error(libc::ENETUNREACH));
        }
        let ip = self.own_ip(peer.ip());
        let pair = |port| (SocketAddr::new(ip, port), peer);
        let port = self.free_port(|state, port| state.sockets.contains_key(&pair(port)))?;
        self.add(pair(port), TcpState::Connecting, None);
        Ok(pair(port))
    }

    fn add(&mut self, pair: Pair, state: TcpState, listener: Option<u64>) {
        let mut connection = Connection::new(pair.0, pair.1, state, self.now);
        connection.listener = listener;
        let socket = Socket {
            connection,
            waiting: vec![],
            due: NEVER,
        };
        self.sockets.insert(pair, socket);
        self.drive(pair, |connection, now, out| {
            (connection.transmit(now, out), Change::default())
        });
    }

    /// Lets `act` use a connection, sends the resulting packets, and wakes waiting futures if the returned change
    /// requires it.
    pub(super) fn drive<T>(
        &mut self,
        pair: Pair,
        act: impl FnOnce(&mut Connection, u64, &mut Vec<Segment>) -> (T, Change),
    ) -> Option<T> {
        let socket = self.sockets.get_mut(&pair)?;
        let mut segments = vec![];
        let (result, change) = act(&mut socket.connection, self.now, &mut segments);
        if change.ready || change.accepted {
            socket.waiting.drain(..).for_each(Waker::wake);
        }
        let connection = &socket.connection;
        let (is_over, listener) = (connection.is_over(), connection.listener);
        let due = if is_over { NEVER } else { connection.due() };
        let before = std::mem::replace(&mut socket.due, due);
        self.due.remove(&(before, pair));
        if due != NEVER {
            self.due.insert((due, pair));
        }
        self.packets
            .extend(segments.into_iter().map(|segment| Packet {
                source: pair.0,
                destination: pair.1,
                payload: Payload::Tcp(segment),
            }));
        if is_over {
            self.sockets.remove(&pair);
        } else if change.accepted
            && let Some(port) = listener
        {
            let listener = self.listeners.get_mut(&(port as u16));
            if !listener.is_some_and(|listener| listener.push(pair)) {
                self.close(pair, true);
            }
        }
        Some(result)
    }

    /// Closes a connection to which no handle refers any more.
    pub(super) fn close(&mut self, pair: Pair, abort: bool) {
        self.drive(pair, |connection, now, out| {
            (connection.close(abort, now, out), Change::default())
        });
    }

    /// Handles a segment. Returns false if the connection does not exist and the segment cannot open it.
    fn on_segment(&mut self, pair: Pair, segment: &Segment) -> bool {
        if self.sockets.contains_key(&pair) {
            self.drive(pair, |connection, now, out| {
                ((), connection.on_segment(segment, now, out))
            });
            return true;
        }
        let opens = segment.has(Segment::SYN) && !segment.has(Segment::ACK);
        let port = pair.0.port();
        let is_open = opens && self.listeners.contains_key(&port);
        if is_open {
            self.add(pair, TcpState::Accepting, Some(port.into()));
        }
        is_open
    }

    /// Sends a datagram.
    pub(super) fn send_datagram(&mut self, port: u16, to: SocketAddr, data: &[u8]) {
        let source = SocketAddr::new(self.own_ip(to.ip()), port);
        self.packets.push(Packet {
            source,
            destination: to,
            payload: Payload::Udp(data.to_vec()),
        });
    }
}
