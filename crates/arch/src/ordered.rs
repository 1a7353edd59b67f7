//! Ordered delivery of the messages between instances and their registries and controllers, in both directions.
//! Messages to one receiver arrive in the order in which they were sent, even if faulty links delay them. A message
//! that must arrive is sent again when a link loses it.

use crate::message::Msg;
use crate::model::Model;
use corsair::network::LinkEffect;
use corsair::{Addr, Context, SpanId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Maximum number of times that a lost message is sent before the load ends.
const MOST_TRIES: u64 = 10_000;

/// The arrival time of the last message to each receiver. It stays empty if no link has faults.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ordered {
    due: FxHashMap<u32, u64>,
}

/// A message that is about to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transit {
    /// The number of the sender.
    pub(crate) sender: u32,
    /// The number of the receiver.
    pub(crate) receiver: u32,
    /// The time at which the message is sent, in nanoseconds.
    pub(crate) now: u64,
    /// The transit time without faults, in nanoseconds.
    pub(crate) travel: u64,
}

impl Ordered {
    /// Returns the nanoseconds until a message that is sent now arrives, or `None` if a link loses it. Lost
    /// messages are counted.
    #[inline]
    pub(crate) fn once(
        &mut self,
        model: &Model,
        transit: Transit,
        bits: impl FnMut() -> u64,
    ) -> Option<u64> {
        let Transit {
            sender,
            receiver,
            now,
            travel,
        } = transit;
        if !model.has_links() {
            return Some(travel);
        }
        let effect = model.effect(sender, receiver, now, bits);
        if effect.is_lost {
            model.dropped.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(self.in_turn(receiver, now, travel.saturating_add(delay(effect))))
    }

    /// Returns the nanoseconds until the arrival of a message that is repeated until it is not lost. The interval
    /// between two attempts is the interval at which instances poll registries. When the load ends, the message is
    /// delivered in any case.
    #[inline]
    pub(crate) fn surely(
        &mut self,
        model: &Model,
        transit: Transit,
        mut bits: impl FnMut() -> u64,
    ) -> u64 {
        let Transit {
            sender,
            receiver,
            now,
            travel,
        } = transit;
        if !model.has_links() {
            return travel;
        }
        for again in 0..MOST_TRIES {
            let later = again.saturating_mul(model.poll);
            let sent = now.saturating_add(later);
            if sent >= model.load_ends {
                break;
            }
            let effect = model.effect(sender, receiver, sent, &mut bits);
            if !effect.is_lost {
                let travel = later.saturating_add(travel).saturating_add(delay(effect));
                return self.in_turn(receiver, now, travel);
            }
        }
        let left = model.load_ends.saturating_sub(now);
        self.in_turn(receiver, now, left.saturating_add(travel))
    }

    /// Delays a message until the previous message to the same receiver has arrived.
    fn in_turn(&mut self, to: u32, now: u64, travel: u64) -> u64 {
        let due = self.due.entry(to).or_default();
        *due = now.saturating_add(travel).max(*due);
        *due - now
    }
}

/// Returns the additional travel time in nanoseconds.
pub(crate) fn delay(effect: LinkEffect) -> u64 {
    u64::try_from(effect.delay.as_nanos()).unwrap_or(u64::MAX)
}

/// Sends a message that arrives after `transit` nanoseconds.
#[inline]
pub(crate) fn post<C: Context<Msg>>(to: Addr, transit: u64, message: Msg, cx: &mut C) -> SpanId {
    cx.send_in(Duration::from_nanos(transit), to, message)
}
