//! A pirate: the messages it gets, the state it keeps, and its answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A pirate keeps at most this many buddies.
const MOST_BUDDIES: usize = 10;

/// Messages that make up a delivery to one pirate.
pub(crate) const DELIVERY: u32 = 5;

/// A message to a pirate. `P` is the address of a pirate, `F` the address of the FSM, as the runtime has
/// them.
#[derive(Clone, Debug)]
pub enum Message<P, F> {
    /// The pirate's name, and where its answers go.
    Hello {
        /// The name: the number in order of creation.
        name: u32,
        /// The address for answers.
        fsm: F,
    },
    /// Another pirate, a buddy to be.
    NameDrop {
        /// Its name.
        name: u32,
        /// Its address.
        address: P,
    },
    /// Gold.
    GoldCoin {
        /// How much.
        coins: u32,
        /// The name of the giver.
        from: u32,
    },
    /// How often to talk to buddies, had the run a duration.
    Chat {
        /// Milliseconds.
        period: u32,
    },
    /// The end.
    Goodbye,
}

/// A message to the FSM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All pirates have their five messages.
    Delivered,
    /// One pirate's last word.
    Goodbye(Farewell),
}

/// What a pirate leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Farewell {
    /// Its gold.
    pub booty: u32,
    /// Messages it was sent, the Goodbye included.
    pub seen: u32,
}

/// Counts the pirates that have all of their delivery. Each touches it once, so the count costs a
/// fifth of an atomic addition per message.
#[derive(Debug)]
pub struct Muster {
    missing: AtomicU32,
}

impl Muster {
    /// Awaits this many pirates.
    pub fn of(pirates: u32) -> Arc<Muster> {
        Arc::new(Muster {
            missing: AtomicU32::new(pirates),
        })
    }

    /// Counts one; whether it was the last.
    fn present(&self) -> bool {
        self.missing.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// A pirate's state.
#[derive(Debug)]
pub struct Pirate<P, F> {
    name: u32,
    seen: u32,
    booty: u32,
    chat_period: u32,
    fsm: Option<F>,
    buddies: Vec<Buddy<P>>,
    muster: Arc<Muster>,
}

/// Another pirate that this one knows.
#[derive(Debug)]
struct Buddy<P> {
    name: u32,
    /// Gold it has given.
    gifts: u32,
    /// Where a chat would go.
    #[expect(
        dead_code,
        reason = "kept as any pirate keeps it; a run without chat never reads it"
    )]
    address: P,
}

impl<P, F> Pirate<P, F> {
    /// A pirate that knows nothing yet.
    pub fn new(muster: Arc<Muster>) -> Pirate<P, F> {
        Pirate {
            name: u32::MAX,
            seen: 0,
            booty: 0,
            chat_period: 0,
            fsm: None,
            buddies: Vec::new(),
            muster,
        }
    }

    /// Handles a message. If something is to be said, to whom and what; after
    /// [`Answer::Goodbye`] the pirate ends.
    #[inline]
    pub fn on(&mut self, message: Message<P, F>) -> Option<(&F, Answer)> {
        self.seen += 1;
        match message {
            Message::Hello { name, fsm } => {
                self.name = name;
                self.fsm = Some(fsm);
            }
            Message::NameDrop { name, address } => self.meet(name, address),
            Message::GoldCoin { coins, from } => {
                self.booty += coins;
                if let Some(buddy) = self.buddies.iter_mut().find(|buddy| buddy.name == from) {
                    buddy.gifts += coins;
                }
            }
            Message::Chat { period } => self.chat_period = period,
            Message::Goodbye => {
                let last = Farewell {
                    booty: self.booty,
                    seen: self.seen,
                };
                return self.fsm.as_ref().map(|fsm| (fsm, Answer::Goodbye(last)));
            }
        }
        if self.seen == DELIVERY && self.muster.present() {
            return self.fsm.as_ref().map(|fsm| (fsm, Answer::Delivered));
        }
        None
    }

    /// Keeps a new buddy: never itself, none twice, not more than [`MOST_BUDDIES`].
    fn meet(&mut self, name: u32, address: P) {
        let known = name == self.name || self.buddies.iter().any(|buddy| buddy.name == name);
        if !known && self.buddies.len() < MOST_BUDDIES {
            self.buddies.push(Buddy {
                name,
                gifts: 0,
                address,
            });
        }
    }
}
