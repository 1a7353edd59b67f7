//! A pirate: its messages, its state and its answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The largest number of buddies that a pirate keeps.
const MOST_BUDDIES: usize = 10;

/// The number of messages in a delivery to one pirate.
pub(crate) const DELIVERY: u32 = 5;

/// A message to a pirate. `P` is the runtime's address of a pirate, and `F` is its address of the FSM.
#[derive(Clone, Debug)]
pub enum Message<P, F> {
    /// Gives the pirate its name and the address for its answers.
    Hello {
        /// The name, which is the pirate's number in the order of creation.
        name: u32,
        /// The address for answers.
        fsm: F,
    },
    /// Introduces another pirate, which may become a buddy.
    NameDrop {
        /// The name of the other pirate.
        name: u32,
        /// The address of the other pirate.
        address: P,
    },
    /// A gift of gold.
    GoldCoin {
        /// The number of coins.
        coins: u32,
        /// The name of the giver.
        from: u32,
    },
    /// The period at which the pirate would talk to its buddies if the run had a duration.
    Chat {
        /// The period in milliseconds.
        period: u32,
    },
    /// Ends the pirate.
    Goodbye,
}

/// A message to the FSM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All pirates have their five messages.
    Delivered,
    /// The last message of a pirate.
    Goodbye(Farewell),
}

/// The final state of a pirate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Farewell {
    /// The gold of the pirate.
    pub booty: u32,
    /// The number of messages that the pirate received, including the Goodbye.
    pub seen: u32,
}

/// Counts the pirates that have received their whole delivery. Each pirate changes the counter once, so counting costs
/// one atomic operation for every five messages.
#[derive(Debug)]
pub struct Muster {
    missing: AtomicU32,
}

impl Muster {
    /// Creates a counter for `pirates` pirates.
    pub fn of(pirates: u32) -> Arc<Muster> {
        Arc::new(Muster {
            missing: AtomicU32::new(pirates),
        })
    }

    /// Counts one pirate; returns true if it was the last.
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

/// Another pirate that this pirate knows.
#[derive(Debug)]
struct Buddy<P> {
    name: u32,
    /// The gold that the buddy has given.
    gifts: u32,
    /// The address to which the pirate would send chats.
    #[expect(
        dead_code,
        reason = "every pirate stores it; a run without chat never reads it"
    )]
    address: P,
}

impl<P, F> Pirate<P, F> {
    /// Creates a pirate that has not received any messages.
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

    /// Handles a message. Returns the answer and its receiver, if there is one; after [`Answer::Goodbye`] the pirate
    /// ends.
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

    /// Adds a buddy, unless it is the pirate itself or already a buddy, or the pirate has [`MOST_BUDDIES`] buddies.
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
