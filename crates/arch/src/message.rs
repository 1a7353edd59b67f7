//! The messages of an architecture: spigo's twelve kinds.

use corsair::{Message, Plain};
use serde::{Deserialize, Serialize};

/// The key of a value: a number, and the namespace of an instance that shares a volume.
///
/// Key 0 is the key that every storage has from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Plain)]
pub struct Key(u64);

impl Key {
    /// The key that every storage has from the beginning.
    pub const WHY: Key = Key(0);

    /// Returns the `number`-th key that is put, counted from 0.
    #[inline]
    pub const fn numbered(number: u32) -> Key {
        Key(number as u64 + 1)
    }

    /// Returns the same key in the namespace of an instance.
    #[inline]
    pub const fn of_instance(self, instance: u32) -> Key {
        Key(self.0 & 0xFF_FFFF_FFFF | (instance as u64 + 1) << 40)
    }

    /// Creates the key of an endpoint: its number, the priority of the request, and the value.
    #[inline]
    pub const fn endpoint(endpoint: u16, priority: u8, about: u32) -> Key {
        Key(Key::ENDPOINT | (priority as u64 & 7) << 56 | (endpoint as u64) << 32 | about as u64)
    }

    /// Returns the endpoint number, the priority and the value; `None` if the key is the name of a value.
    #[inline]
    pub const fn as_endpoint(self) -> Option<(u16, u8, u32)> {
        if self.0 & Key::ENDPOINT == 0 {
            return None;
        }
        Some((
            (self.0 >> 32) as u16,
            (self.0 >> 56) as u8 & 7,
            self.0 as u32,
        ))
    }

    /// The highest bit, which the namespaces of instances do not use.
    const ENDPOINT: u64 = 1 << 63;

    /// Returns the text from which the hash of the key is computed: `why?`, or `Why` with the number and its square.
    pub fn text(self) -> String {
        match self.0 & 0xFF_FFFF_FFFF {
            0 => "why?".to_owned(),
            key => {
                let number = key - 1;
                format!("Why{number}{}", u128::from(number) * u128::from(number))
            }
        }
    }

    /// Returns the key's token on a ring: the CRC-32 of its text.
    #[inline]
    pub fn token(self) -> u32 {
        let mut text = [0u8; 40];
        let mut begin = text.len();
        let mut digits = |mut number: u64, begin: &mut usize| loop {
            *begin -= 1;
            text[*begin] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        };
        match self.0 & 0xFF_FFFF_FFFF {
            0 => return crc32fast::hash(b"why?"),
            key => {
                // A number has at most 32 bits (10 digits), and its square at most 64 bits (20 digits); the text also
                // contains "Why".
                let number = key - 1;
                digits(number * number, &mut begin);
                digits(number, &mut begin);
            }
        }
        begin -= 3;
        text[begin..begin + 3].copy_from_slice(b"Why");
        crc32fast::hash(&text[begin..])
    }

    /// Returns the key as a number.
    #[inline]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

/// The outcome of a request.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Plain,
)]
#[repr(u8)]
pub enum Answer {
    /// The value was found, or the work was done.
    Found,
    /// The value does not exist.
    Missing,
    /// An instance on the way failed.
    Failed,
    /// No instance was available.
    Unavailable,
    /// The instance that was asked is down.
    Refused,
    /// No answer arrived in time.
    Lost,
    /// The instance is overloaded, or cannot answer before the deadline.
    Overloaded,
}

impl Answer {
    /// True if the request has failed. A missing value does not count as a failure.
    #[inline]
    pub const fn is_error(self) -> bool {
        !matches!(self, Answer::Found | Answer::Missing)
    }
}

/// A request for a value, or a value to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Plain)]
pub struct Call {
    /// The key of the value that is requested or stored.
    pub key: Key,
    /// The client's number of the request. The upper bits count the passes through a service that may call itself.
    id: u32,
    /// The travel time in nanoseconds.
    pub travel: u32,
}

impl Call {
    const ID_BITS: u32 = 26;

    /// The maximum number of passes through a service that may call itself.
    pub const MOST_ROUNDS: u8 = (1 << (32 - Call::ID_BITS)) - 1;

    /// The maximum number of a client's unanswered requests.
    pub const MOST_IDS: u32 = 1 << Call::ID_BITS;

    /// Creates a request or value whose client number is below [`Call::MOST_IDS`].
    #[inline]
    pub const fn new(key: Key, id: u32, rounds: u8, travel: u32) -> Call {
        let id = id & (Call::MOST_IDS - 1) | (rounds as u32) << Call::ID_BITS;
        Call { key, id, travel }
    }

    /// Returns the client's number, which the response repeats.
    #[inline]
    pub const fn id(&self) -> u32 {
        self.id & (Call::MOST_IDS - 1)
    }

    /// Returns the number of passes through a service that may call itself.
    #[inline]
    pub const fn rounds(&self) -> u8 {
        (self.id >> Call::ID_BITS) as u8
    }
}

/// A change in a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Plain)]
pub struct Change {
    /// The index of the instance.
    pub node: u32,
    /// True if the instance is present.
    pub there: bool,
}

/// A command to an instance, given from outside during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Plain)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    /// Kills the instance: requests to it fail, and it leaves the registries.
    Kill,
    /// Revives the instance, even if a fault has killed it.
    Revive,
    /// Pauses the instance; messages wait.
    Pause,
    /// Resumes the instance, even if a fault has paused it.
    Resume,
    /// Sets the instance's times to this percentage of the usual times; 100 restores them.
    Slow(u32),
    /// Cuts the instance off from other zones.
    Partition,
    /// Ends all partitions of the instance.
    Rejoin,
    /// To an entry point: sets the load to this percentage of the defined one; 0 stops it.
    Load(u32),
    /// Adds the instance to the registries, or removes it; it then completes its current requests.
    Serve(bool),
    /// Applies rules that have changed to the work in progress and to the queue.
    Revise,
}

impl Command {
    /// Returns a number that is different for each command, for the message's fingerprint.
    fn code(self) -> u64 {
        let (code, value) = match self {
            Command::Kill => (0, 0),
            Command::Revive => (1, 0),
            Command::Pause => (2, 0),
            Command::Resume => (3, 0),
            Command::Slow(percent) => (4, percent),
            Command::Partition => (5, 0),
            Command::Rejoin => (6, 0),
            Command::Load(percent) => (7, percent),
            Command::Serve(there) => (8, there.into()),
            Command::Revise => (9, 0),
        };
        code << 32 | u64::from(value)
    }
}

/// A message of an architecture. Instances and services are given by their indices in the
/// [`Topology`](crate::Topology).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Plain)]
#[allow(missing_docs, reason = "fields are named after what they are")]
pub enum Msg {
    /// Starts an instance, which does not know any other instance yet.
    Hello,
    /// Introduces an instance that the receiver may call.
    NameDrop { node: u32 },
    /// Names a service that the receiver depends on.
    Depend { service: u32 },
    /// Starts requests, with this many nanoseconds between two of them; 0 stops them.
    Chat { period: u64 },
    /// Gives a pirate this number of gold pieces.
    GoldCoin(u32),
    /// Names a registry of the receiver.
    Inform { registry: u32 },
    /// An instance knows another.
    Edge { source: u32, target: u32 },
    /// Requests a value or an endpoint; the second field is the microseconds until the deadline, or 0 without
    /// one.
    GetRequest(Call, u32),
    /// Asks a registry for the changes of a service since the last look-up.
    LookUp { service: u32 },
    /// Answers a request.
    GetResponse {
        id: u32,
        travel: u32,
        answer: Answer,
    },
    /// Stores a value.
    Put(Call),
    /// Passes a value from a neighbour on the ring to the node that owns it.
    PutOwned(Call),
    /// Registers the sending instance.
    Register { node: u32 },
    /// Stores a copy of a value.
    Replicate(Call),
    /// Stores a copy of a value, and passes it on within the receiver's region.
    ReplicateRegion(Call),
    /// Reports a change.
    ReplicateNode(Change),
    /// Reports that an instance is no longer present.
    Forget { node: u32 },
    /// Reports that an instance no longer knows another.
    ForgetEdge { source: u32, target: u32 },
    /// Reports that an instance has left.
    Delete { node: u32, killed: bool },
    /// To an instance, from its controller: asks for its busy time.
    Probe,
    /// Answers [`Msg::Probe`] with the busy time since the start in nanoseconds, averaged over the slots or processors
    /// of the instance.
    Pulse { busy: u64 },
    /// To an instance, from its controller: starts or stops serving.
    Serve { there: bool },
    /// To an instance: kills it.
    Kill,
    /// To an instance, from outside the architecture.
    Command(Command),
    /// To an instance, at the end of the run; from an instance, when it has ended.
    Goodbye,
}

/// The names of the kinds in reports and logs.
const KINDS: [&str; 12] = [
    "Hello",
    "NameDrop",
    "Chat",
    "GoldCoin",
    "Inform",
    "GetRequest",
    "GetResponse",
    "Put",
    "Replicate",
    "Forget",
    "Delete",
    "Goodbye",
];

impl Key {
    /// Returns the flow label of a message about this call: its endpoint, or the message's kind.
    pub(crate) fn operation(self, kind: usize) -> usize {
        let endpoint = self.as_endpoint();
        endpoint.map_or(kind, |(endpoint, ..)| KINDS.len() + usize::from(endpoint))
    }
}

/// The index of a kind in [`Message::KINDS`].
pub(crate) mod kind {
    pub(crate) const GET_REQUEST: usize = 5;
    pub(crate) const PUT: usize = 7;
    pub(crate) const REPLICATE: usize = 8;
}

impl Message for Msg {
    const KINDS: &'static [&'static str] = &KINDS;

    #[inline]
    fn kind(&self) -> usize {
        match self {
            Msg::Hello | Msg::Serve { .. } => 0,
            Msg::NameDrop { .. } | Msg::Depend { .. } => 1,
            Msg::Chat { .. } => 2,
            Msg::GoldCoin(_) => 3,
            Msg::Inform { .. } | Msg::Edge { .. } => 4,
            Msg::GetRequest(..) | Msg::LookUp { .. } | Msg::Probe => kind::GET_REQUEST,
            Msg::GetResponse { .. } | Msg::Pulse { .. } => 6,
            Msg::Put(_) | Msg::PutOwned(_) | Msg::Register { .. } => kind::PUT,
            Msg::Replicate(_) | Msg::ReplicateRegion(_) | Msg::ReplicateNode(_) => kind::REPLICATE,
            Msg::Forget { .. } | Msg::ForgetEdge { .. } => 9,
            Msg::Delete { .. } => 10,
            Msg::Kill | Msg::Command(_) | Msg::Goodbye => 11,
        }
    }

    #[inline]
    fn fingerprint(&self) -> u64 {
        // The highest bits distinguish the forms of a message that has several.
        let pair = |a: u32, b: u32| u64::from(a) << 32 | u64::from(b);
        let call = |call: &Call| {
            call.key.0.rotate_left(20) ^ pair(call.travel, call.id).wrapping_mul(0x9E37_79B9)
        };
        match *self {
            Msg::Hello | Msg::Goodbye => 0,
            Msg::Kill => 1,
            Msg::Command(command) => 1 << 63 | command.code(),
            Msg::Probe => 3 << 62,
            Msg::Pulse { busy } => busy | 1 << 63,
            Msg::Serve { there } => 1 << 63 | u64::from(there),
            Msg::NameDrop { node } | Msg::Forget { node } => node.into(),
            Msg::Depend { service } | Msg::LookUp { service } => 1 << 63 | u64::from(service),
            Msg::Chat { period } => period,
            Msg::GoldCoin(gold) => gold.into(),
            Msg::Inform { registry } => registry.into(),
            Msg::Edge { source, target } | Msg::ForgetEdge { source, target } => {
                1 << 63 | pair(source, target)
            }
            Msg::GetRequest(ref c, left) => call(c) ^ u64::from(left).rotate_left(40),
            Msg::Put(ref c) | Msg::Replicate(ref c) => call(c),
            Msg::PutOwned(ref c) | Msg::ReplicateRegion(ref c) => !call(c),
            Msg::GetResponse { id, travel, answer } => pair(travel, id) ^ (answer as u64) << 56,
            Msg::Register { node } => 1 << 63 | u64::from(node),
            Msg::ReplicateNode(Change { node, there }) => {
                1 << 63 | u64::from(there) << 62 | u64::from(node)
            }
            Msg::Delete { node, killed } => u64::from(killed) << 32 | u64::from(node),
        }
    }
}

impl Msg {
    /// Returns the request or value in the message, if there is one.
    pub(crate) fn call(&self) -> Option<Call> {
        match *self {
            Msg::GetRequest(call, _)
            | Msg::Put(call)
            | Msg::PutOwned(call)
            | Msg::Replicate(call)
            | Msg::ReplicateRegion(call) => Some(call),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_with_its_message_has_one_cache_line() {
        // The envelope adds 40 bytes.
        assert!(size_of::<Msg>() <= 24, "{}", size_of::<Msg>());
    }

    #[test]
    fn calls_give_back_their_number_and_rounds() {
        let call = Call::new(Key::WHY, Call::MOST_IDS - 1, Call::MOST_ROUNDS, 7);
        assert_eq!(
            (call.id(), call.rounds()),
            (Call::MOST_IDS - 1, Call::MOST_ROUNDS)
        );
        let call = Call::new(Key::WHY, 5, 0, 7);
        assert_eq!((call.id(), call.rounds(), call.travel), (5, 0, 7));
    }

    #[test]
    fn tokens_are_the_crc_of_the_text() {
        for key in [
            Key::WHY,
            Key::numbered(0),
            Key::numbered(17),
            Key::numbered(u32::MAX),
        ] {
            assert_eq!(key.token(), crc32fast::hash(key.text().as_bytes()));
        }
        assert_eq!(Key::numbered(12).text(), "Why12144");
        assert_eq!(Key::numbered(12).of_instance(3).text(), "Why12144");
        assert_ne!(Key::numbered(12).of_instance(3), Key::numbered(12));
    }

    #[test]
    fn keys_of_endpoints_give_back_what_they_were_made_of() {
        let key = Key::endpoint(u16::MAX, 7, u32::MAX);
        assert_eq!(key.as_endpoint(), Some((u16::MAX, 7, u32::MAX)));
        let last_instance = 4_000_000;
        assert_eq!(
            Key::numbered(u32::MAX)
                .of_instance(last_instance)
                .as_endpoint(),
            None
        );
    }

    #[test]
    fn the_kinds_are_spigos_twelve() {
        let call = Call::new(Key::WHY, 0, 0, 0);
        let kind = |message: Msg| Msg::KINDS[message.kind()];
        assert_eq!(Msg::KINDS.len(), 12);
        assert_eq!(kind(Msg::Hello), "Hello");
        assert_eq!(kind(Msg::Depend { service: 1 }), "NameDrop");
        assert_eq!(
            kind(Msg::Edge {
                source: 1,
                target: 2
            }),
            "Inform"
        );
        assert_eq!(kind(Msg::GetRequest(call, 0)), "GetRequest");
        assert_eq!(kind(Msg::Put(call)), "Put");
        assert_eq!(kind(Msg::ReplicateRegion(call)), "Replicate");
        assert_eq!(kind(Msg::Kill), "Goodbye");
    }
}
