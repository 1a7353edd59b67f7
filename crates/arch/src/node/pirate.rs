//! A pirate among services, which hoards gold and gossips with its buddies.

use super::TO_TALK;
use super::host::Host;
use super::routes::Routes;
use crate::message::Msg;
use corsair::Context;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A pirate's gold and buddies.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pirate {
    pub(super) buddies: Routes,
    /// The gossip period in nanoseconds; 0 means never.
    period: u64,
    gold: u32,
}

impl Pirate {
    pub(super) fn gold(&self) -> u32 {
        self.gold
    }

    pub(super) fn take_gold(&mut self, pieces: u32) {
        self.gold = self.gold.saturating_add(pieces);
    }

    /// Sets the gossip period in nanoseconds; 0 means never.
    pub(super) fn set_period<C: Context<Msg>>(&mut self, period: u64, cx: &mut C) {
        let was_silent = std::mem::replace(&mut self.period, period) == 0;
        if was_silent && period > 0 {
            cx.timer(Duration::from_nanos(period), TO_TALK);
        }
    }

    /// Handles the gossip timer: sets the next timer and gossips, unless the instance is down or paused.
    pub(super) fn talk<C: Context<Msg>>(&mut self, host: &mut Host, cx: &mut C) {
        if self.period == 0 {
            return;
        }
        cx.timer(Duration::from_nanos(self.period), TO_TALK);
        if !host.health.is_down() && !host.health.is_paused() {
            self.gossip(host, cx);
        }
    }

    /// Introduces one buddy to another, or gives a buddy some gold.
    fn gossip<C: Context<Msg>>(&mut self, host: &mut Host, cx: &mut C) {
        let (bits, share) = (cx.random(), cx.random());
        let Some(lucky) = self.buddies.pick(bits) else {
            return;
        };
        let news = self.buddies.pick(share).filter(|&other| other != lucky);
        match news {
            Some(node) if bits & 1 == 0 => host.notify(lucky, Msg::NameDrop { node }, cx),
            _ if self.gold > 0 => {
                let gold = 1 + ((u128::from(share) * u128::from(self.gold)) >> 64) as u32;
                self.gold -= gold;
                host.notify(lucky, Msg::GoldCoin(gold), cx);
            }
            _ => {}
        }
    }
}
