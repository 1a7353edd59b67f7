//! A cache of keys with a size and a time to live.

use crate::distribution::Zipf;
use crate::message::Msg;
use crate::saved::RestoreState;
use crate::script::CacheKind;
use corsair::Context;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The keys in a cache of an instance. Values are not stored.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Cache {
    #[serde(skip)]
    kind: CacheKind,
    /// The popularity of keys that are not equally likely.
    #[serde(skip)]
    popularity: Option<Zipf>,
    /// For each key, the time in nanoseconds at which it was stored, and its rank in the order of use.
    kept: FxHashMap<u32, (u64, u64)>,
    /// The keys in the order of their last use. Empty if the size of the cache is not limited.
    #[serde(skip)]
    order: BTreeMap<u64, u32>,
    uses: u64,
}

impl RestoreState for Cache {
    fn take_over(&mut self, saved: Cache) {
        let (kind, popularity) = (self.kind, self.popularity);
        *self = Cache {
            kind,
            popularity,
            ..saved
        };
        if kind.size < u32::MAX {
            let used = self.kept.iter();
            self.order = used.map(|(&key, &(_, place))| (place, key)).collect();
        }
        while self.order.len() > kind.size as usize
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.kept.remove(&oldest);
        }
    }
}

impl Cache {
    pub(super) fn new(kind: CacheKind) -> Cache {
        let law = kind.keys.zip(kind.skew);
        Cache {
            kind,
            popularity: law.map(|(keys, skew)| Zipf::new(keys, skew)),
            kept: FxHashMap::default(),
            order: BTreeMap::new(),
            uses: 0,
        }
    }

    /// Draws the key of a look-up; `None` if look-ups use the request's key.
    pub(super) fn draw<C: Context<Msg>>(&self, cx: &mut C) -> Option<u32> {
        match &self.popularity {
            Some(law) => Some(law.draw(|| cx.random())),
            None => self.kind.keys.map(|keys| cx.below(keys)),
        }
    }

    /// True if a key is present and fresh. A miss adds the key.
    pub(super) fn look_up(&mut self, key: u32, now: u64) -> bool {
        self.uses += 1;
        let is_bounded = self.kind.size < u32::MAX;
        let known = self.kept.get(&key).copied();
        let put = known.map(|(put, _)| put);
        let put = put.filter(|put| now.saturating_sub(*put) < self.kind.ttl);
        if is_bounded {
            if let Some((_, place)) = known {
                self.order.remove(&place);
            } else if self.kept.len() as u32 >= self.kind.size
                && let Some((_, oldest)) = self.order.pop_first()
            {
                self.kept.remove(&oldest);
            }
            self.order.insert(self.uses, key);
        }
        self.kept.insert(key, (put.unwrap_or(now), self.uses));
        put.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(size: u32, ttl: u64) -> Cache {
        Cache::new(CacheKind {
            keys: None,
            skew: None,
            size,
            ttl,
        })
    }

    #[test]
    fn the_key_that_was_not_used_for_longest_leaves() {
        let mut cache = cache(2, u64::MAX);
        let hits = [1, 2, 1, 3, 1, 2, 3].map(|key| cache.look_up(key, 0));
        // Key 3 evicts key 2, then key 2 evicts key 3.
        assert_eq!(hits, [false, false, true, false, true, false, false]);
        assert_eq!((cache.kept.len(), cache.order.len()), (2, 2));
    }

    #[test]
    fn a_key_grows_old() {
        let mut cache = cache(2, 10);
        let hits = [0, 9, 10, 19, 20].map(|now| cache.look_up(7, now));
        assert_eq!(hits, [false, true, false, true, false]);
    }
}
