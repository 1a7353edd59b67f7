//! A pirate among services: it hoards gold and gossips with whom it knows.

use super::role::Role;
use super::{Node, Routes};
use crate::message::Msg;
use corsair::Context;

/// A pirate's gold and buddies.
#[derive(Debug, Default)]
pub(crate) struct Purse {
    pub(crate) buddies: Routes,
    /// It gossips once in so many nanoseconds; 0: not at all.
    pub(super) period: u64,
    gold: u32,
}

impl Node {
    pub(super) fn take_gold(&mut self, pieces: u32) {
        if let Role::Pirate(purse) = &mut self.role {
            purse.gold = purse.gold.saturating_add(pieces);
        }
    }

    /// Tells one buddy of another, or gives it some gold.
    pub(super) fn gossip<C: Context<Msg>>(&mut self, cx: &mut C) {
        let (bits, share) = (cx.random(), cx.random());
        let Role::Pirate(purse) = &mut self.role else {
            return;
        };
        let Some(lucky) = purse.buddies.pick(bits) else {
            return;
        };
        let news = purse.buddies.pick(share).filter(|&other| other != lucky);
        match news {
            Some(node) if bits & 1 == 0 => self.tell(lucky, Msg::NameDrop { node }, cx),
            _ if purse.gold > 0 => {
                let gold = 1 + ((u128::from(share) * u128::from(purse.gold)) >> 64) as u32;
                purse.gold -= gold;
                self.tell(lucky, Msg::GoldCoin(gold), cx);
            }
            _ => {}
        }
    }
}
