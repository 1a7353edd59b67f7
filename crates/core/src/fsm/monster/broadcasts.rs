//! The messages that the FSM sends to many pirates at once, as data: any shard can create a pirate's messages from the
//! pirate's index.

use crate::fsm::Msg;
use crate::{AddrRange, Context, Random};
use std::num::NonZeroU16;

/// The upper bound (exclusive) of a pirate's gold.
const GOLD: u32 = 100;

/// The shortest random chat period, in milliseconds. The longest is 9,999.
const SHORTEST: NonZeroU16 = NonZeroU16::new(100).expect("100 is not 0");

/// The gold and the chat period of each pirate. Each pirate has its own random numbers, so the shares can be computed
/// in any order. After the random numbers that were used for buddies, one number determines the gold, and one the
/// period.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Share {
    pub(super) period_ms: Option<NonZeroU16>,
    /// The random numbers of the first pirate.
    pub(super) random: Random,
    pub(super) used_before: u64,
}

impl Share {
    /// Returns the random numbers of a pirate.
    #[inline(always)]
    pub(super) fn random_of(&self, index: u32) -> Random {
        let mut random = self.random.clone();
        random.skip(u64::from(index) * (self.used_before + 2));
        random
    }

    /// Returns the total gold of all pirates with a lower index than `pirates`.
    pub(super) fn minted(&self, pirates: u32) -> u64 {
        let golds = (0..pirates).map(|index| {
            let mut random = self.random_of(index);
            random.skip(self.used_before);
            u64::from(random.below(GOLD))
        });
        golds.sum()
    }

    /// Draws gold and a period.
    #[inline(always)]
    fn draw(&self, random: &mut Random) -> [Msg; 2] {
        let gold = random.below(GOLD);
        let at_random = SHORTEST.saturating_add(random.below(9_900) as u16);
        let period_ms = self.period_ms.unwrap_or(at_random);
        [Msg::GoldCoin(gold), Msg::Chat { period_ms }]
    }

    #[inline(always)]
    fn messages(&self, index: u32) -> [Msg; 2] {
        self.draw(&mut self.random_of(index))
    }
}

/// The messages that introduce a pirate: its name, two random other pirates as buddies, and its share.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Introduction {
    pub(super) pirates: AddrRange,
    /// The index of the first receiver among the pirates.
    pub(super) first: u32,
    /// The number of other pirates. A random index that is at least the pirate's own index is increased by one.
    pub(super) others: u32,
    pub(super) share: Share,
}

impl Introduction {
    #[inline(always)]
    fn messages(&self, index: u32) -> [Msg; 5] {
        let name = self.first + index;
        let mut random = self.share.random_of(index);
        let mut buddy = || {
            let other = random.below(self.others);
            let buddy = self.pirates.at(other + u32::from(other >= name));
            Msg::NameDrop { buddy }
        };
        let (first, second) = (buddy(), buddy());
        let [gold, chat] = self.share.draw(&mut random);
        [Msg::Hello { name }, first, second, gold, chat]
    }
}

/// A goodbye.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Goodbye;

impl Goodbye {
    #[inline(always)]
    fn messages(self, _: u32) -> [Msg; 1] {
        [Msg::Goodbye { gold: 0 }]
    }
}

/// A message, or several, for each of many pirates.
pub(super) trait Broadcast {
    /// Sends the messages to the pirates `to`.
    fn send_to<C: Context<Msg>>(self, to: AddrRange, cx: &mut C);
}

/// Implements [`Broadcast`]. With the feature `serde`, the implementation sends by kind.
macro_rules! broadcasts {
    ($($broadcast:ident $count:literal $name:literal)*) => {$(
        #[cfg(feature = "serde")]
        impl crate::EachKind<Msg, $count> for $broadcast {
            const NAME: &'static str = $name;

            #[inline(always)]
            fn bodies(&self, index: u32) -> [Msg; $count] {
                self.messages(index)
            }
        }

        impl Broadcast for $broadcast {
            #[inline(always)]
            fn send_to<C: Context<Msg>>(self, to: AddrRange, cx: &mut C) {
                #[cfg(feature = "serde")]
                cx.send_each_kind(to, self);
                #[cfg(not(feature = "serde"))]
                cx.send_each(to, move |index| self.messages(index));
            }
        }
    )*};
}

broadcasts! {
    Introduction 5 "corsair.introduction"
    Share 2 "corsair.share"
    Goodbye 1 "corsair.goodbye"
}
