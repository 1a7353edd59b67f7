//! The pirates written by hand: each is a tokio task with a bounded or unbounded channel, and uses only corsair's
//! messages and random numbers. This is the baseline for the tokio executor.

use corsair::fsm::{MAX_BUDDIES, Msg, Tally};
use corsair::{Addr, Random};
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant as WallClock};
use tokio::sync::mpsc::error::SendError;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout_at};

/// The capacity of a bounded mailbox, in envelopes.
const MAILBOX: usize = 256;
/// The number of the FSM, which is not a pirate.
const FSM: u32 = u32::MAX;

/// A message and its sender.
struct Letter {
    from: u32,
    body: Msg,
}

/// A kind of channel.
trait Channel: 'static {
    type Sender: Send + Sync + 'static;
    type Inbox: Inbox;

    fn new() -> (Self::Sender, Self::Inbox);
    /// Sends an envelope; returns it if the receiver has ended.
    fn send(to: &Self::Sender, letter: Letter) -> impl Future<Output = Result<(), Letter>> + Send;
}

/// The receiving end of a channel.
trait Inbox: Send + 'static {
    fn recv(&mut self) -> impl Future<Output = Option<Letter>> + Send;
    fn close(&mut self);
    fn left(&mut self) -> Option<Letter>;
}

/// Implements the receiver; tokio's receivers have the same methods, but no common trait.
macro_rules! inbox {
    ($receiver:ty) => {
        impl Inbox for $receiver {
            async fn recv(&mut self) -> Option<Letter> {
                self.recv().await
            }

            fn close(&mut self) {
                self.close();
            }

            fn left(&mut self) -> Option<Letter> {
                self.try_recv().ok()
            }
        }
    };
}

inbox!(mpsc::Receiver<Letter>);
inbox!(mpsc::UnboundedReceiver<Letter>);

/// Channels with a capacity of [`MAILBOX`] envelopes, like corsair's mailboxes.
struct Bounded;

impl Channel for Bounded {
    type Sender = mpsc::Sender<Letter>;
    type Inbox = mpsc::Receiver<Letter>;

    fn new() -> (Self::Sender, Self::Inbox) {
        mpsc::channel(MAILBOX)
    }

    async fn send(to: &Self::Sender, letter: Letter) -> Result<(), Letter> {
        to.send(letter).await.map_err(|SendError(letter)| letter)
    }
}

/// Channels without a bound.
struct Unbounded;

impl Channel for Unbounded {
    type Sender = mpsc::UnboundedSender<Letter>;
    type Inbox = mpsc::UnboundedReceiver<Letter>;

    fn new() -> (Self::Sender, Self::Inbox) {
        mpsc::unbounded_channel()
    }

    async fn send(to: &Self::Sender, letter: Letter) -> Result<(), Letter> {
        to.send(letter).map_err(|SendError(letter)| letter)
    }
}

/// The state that all tasks share.
struct World<C: Channel> {
    mailboxes: Vec<C::Sender>,
    fsm: C::Sender,
    /// The number of pirates that have not yet received their last message of the FSM.
    undelivered: AtomicU32,
    delivered: Notify,
    /// The gold in messages to pirates that had ended.
    salvaged: AtomicU64,
}

impl<C: Channel> World<C> {
    async fn send(&self, to: u32, from: u32, body: Msg) {
        let mailbox = self.mailboxes.get(to as usize).unwrap_or(&self.fsm);
        if let Err(letter) = C::send(mailbox, Letter { from, body }).await {
            self.salvage(letter);
        }
    }

    /// Counts the gold of an envelope whose receiver has ended.
    fn salvage(&self, letter: Letter) {
        if let Msg::GoldCoin(gold) = letter.body {
            self.salvaged.fetch_add(gold.into(), Ordering::Relaxed);
        }
    }
}

/// The durations of a run on the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The time from before the runtime is created to after it is dropped.
    pub whole: Duration,
    /// The time from the first message until the last one is handled.
    pub delivery: Duration,
}

/// Creates `population` pirates, sends five messages to each, and says goodbye. Uses `workers` threads and channels
/// with a capacity of 256 envelopes.
///
/// # Panics
/// If a pirate or any gold is missing at the end.
pub fn run(population: u32, workers: usize) -> Times {
    run_with::<Bounded>(population, workers)
}

/// Runs the pirates like [`run`], but with unbounded channels.
///
/// # Panics
/// If a pirate or any gold is missing at the end.
pub fn run_unbounded(population: u32, workers: usize) -> Times {
    run_with::<Unbounded>(population, workers)
}

fn run_with<C: Channel>(population: u32, workers: usize) -> Times {
    let begin = WallClock::now();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_time()
        .build()
        .expect("a tokio runtime");
    let root = runtime.spawn(fsm::<C>(population));
    let (tally, delivery) = runtime.block_on(root).expect("the root does not panic");
    drop(runtime);
    assert!(tally.is_complete(), "{tally:?}");
    Times {
        whole: begin.elapsed(),
        delivery,
    }
}

async fn fsm<C: Channel>(population: u32) -> (Tally, Duration) {
    let mut tally = Tally {
        pirates: population,
        ..Tally::default()
    };
    let (fsm, mut answers) = C::new();
    let (mailboxes, inboxes): (Vec<_>, Vec<_>) = (0..population).map(|_| C::new()).unzip();
    let undelivered = AtomicU32::new(population);
    let world = Arc::new(World::<C> {
        mailboxes,
        fsm,
        undelivered,
        delivered: Notify::new(),
        salvaged: AtomicU64::new(0),
    });
    for (me, inbox) in (0..).zip(inboxes) {
        tokio::spawn(pirate(me, inbox, Arc::clone(&world)));
    }

    let begin = WallClock::now();
    let mut random = Random::new(0);
    for to in 0..population {
        world.send(to, FSM, Msg::Hello { name: to }).await;
        for _ in 0..2 {
            let other = random.below(population - 1);
            let buddy = Addr::from_u32(other + u32::from(other >= to));
            world.send(to, FSM, Msg::NameDrop { buddy }).await;
        }
        let gold = random.below(100);
        tally.minted += u64::from(gold);
        world.send(to, FSM, Msg::GoldCoin(gold)).await;
        let period_ms = NonZeroU16::MIN.saturating_add(99 + random.below(9_900) as u16);
        world.send(to, FSM, Msg::Chat { period_ms }).await;
    }
    world.delivered.notified().await;
    let delivery = begin.elapsed();

    let goodbyes = async {
        for to in 0..population {
            world.send(to, FSM, Msg::Goodbye { gold: 0 }).await;
        }
    };
    let count = async {
        while tally.goodbyes < population {
            let letter = answers.recv().await.expect("the world has a sender");
            if let Msg::Goodbye { gold } = letter.body {
                tally.goodbyes += 1;
                tally.returned += u64::from(gold);
            }
        }
    };
    tokio::join!(goodbyes, count);
    tally.salvaged = world.salvaged.load(Ordering::Relaxed);
    (tally, delivery)
}

/// The state of a pirate.
struct Pirate {
    me: u32,
    buddies: [u32; MAX_BUDDIES],
    given: [u32; MAX_BUDDIES],
    known: usize,
    booty: u32,
    period: Duration,
    random: Random,
}

async fn pirate<C: Channel>(me: u32, mut inbox: C::Inbox, world: Arc<World<C>>) {
    let mut pirate = Pirate {
        me,
        buddies: [FSM; MAX_BUDDIES],
        given: [0; MAX_BUDDIES],
        known: 0,
        booty: 0,
        period: Duration::ZERO,
        random: Random::new(me.into()),
    };
    let mut next_chat: Option<Instant> = None;
    loop {
        let letter = match next_chat {
            None => inbox.recv().await,
            Some(at) => match timeout_at(at, inbox.recv()).await {
                Ok(letter) => letter,
                Err(_) => {
                    pirate.chat(&world).await;
                    next_chat = Some(at + pirate.period);
                    continue;
                }
            },
        };
        let Some(Letter { from, body }) = letter else {
            return;
        };
        match body {
            Msg::Hello { name } => pirate.me = name,
            Msg::NameDrop { buddy } => pirate.meet(buddy.as_u32()),
            Msg::GoldCoin(gold) => pirate.take(from, gold),
            Msg::Chat { period_ms } => {
                pirate.period = Duration::from_millis(period_ms.get().into());
                next_chat = Some(Instant::now() + pirate.period);
                if world.undelivered.fetch_sub(1, Ordering::AcqRel) == 1 {
                    world.delivered.notify_one();
                }
            }
            Msg::Goodbye { .. } => {
                inbox.close();
                while let Some(late) = inbox.left() {
                    world.salvage(late);
                }
                let gold = pirate.booty;
                return world.send(from, pirate.me, Msg::Goodbye { gold }).await;
            }
        }
    }
}

impl Pirate {
    fn meet(&mut self, buddy: u32) {
        let known = self.known;
        if buddy != self.me && known < MAX_BUDDIES && !self.buddies[..known].contains(&buddy) {
            self.buddies[known] = buddy;
            self.known += 1;
        }
    }

    fn take(&mut self, from: u32, gold: u32) {
        self.booty += gold;
        let giver = self.buddies[..self.known]
            .iter()
            .position(|&buddy| buddy == from);
        if let Some(giver) = giver {
            self.given[giver] += gold;
        }
    }

    async fn chat<C: Channel>(&mut self, world: &World<C>) {
        let buddies = &self.buddies[..self.known];
        let [first, others @ ..] = buddies else {
            return;
        };
        if self.random.below(2) == 0 {
            for &other in others {
                let buddy = Addr::from_u32(*first);
                world.send(other, self.me, Msg::NameDrop { buddy }).await;
            }
        } else {
            let lucky = buddies[self.random.below(self.known as u32) as usize];
            let gold = self.random.below(self.booty);
            if gold > 0 {
                self.booty -= gold;
                world.send(lucky, self.me, Msg::GoldCoin(gold)).await;
            }
        }
    }
}
