//! Queries about a single pirate by its name, and about the distribution of all pirates.

use super::Pirates;
use crate::world::World;
use corsair::fsm::{MAX_BUDDIES, Watch};
use serde_json::{Value, json};

/// The largest number of pirates that are counted for distributions, evenly spaced.
const COUNTED: u32 = 20_000;

/// The number of buckets. Gold and rates are counted in buckets of powers of two.
const BUCKETS: usize = 24;

/// Returns the bucket of a number: bucket 0 is for 0, the next for 1, then for 2 and 3, then for 4
/// to 7, and so on.
fn bucket(number: f64) -> usize {
    if number < 1.0 {
        return 0;
    }
    (number.log2() as usize + 1).min(BUCKETS - 1)
}

impl<W: Watch> Pirates<W> {
    pub(super) fn answer(&mut self, query: &Value) -> Result<Value, String> {
        let text = |key: &str| query.get(key).and_then(Value::as_str);
        if let Some(name) = text("actor") {
            let index = self.index(name)?;
            return self.details(index);
        }
        if let Some(name) = text("find") {
            return Ok(match self.index(name) {
                Ok(index) => json!([self.name(index)]),
                Err(_) => json!([]),
            });
        }
        if let Some(who) = query.pointer("/preview/who").and_then(Value::as_str) {
            let index = self.index(who)?;
            return Ok(json!({ "count": 1, "names": [self.name(index)] }));
        }
        if query.get("density").is_some() {
            return Ok(self.density());
        }
        Err("unknown query; expected actor, find or density".to_owned())
    }

    fn details(&mut self, index: u32) -> Result<Value, String> {
        let (all, name) = (self.addresses(), self.name(index));
        let seen = self.inspect(index, |pirate| {
            let buddies: Vec<Option<u32>> =
                pirate.buddies().iter().map(|&b| all.index_of(b)).collect();
            let (given, others) = pirate.given();
            let period = pirate.period().map(|period| period.as_secs_f64());
            (buddies, given.to_vec(), others, period, pirate.gold())
        });
        let Some((buddies, given, others, period, gold)) = seen else {
            return Err(format!("{name} has not started, or has ended"));
        };
        let sent = self.sent(index);
        let buddies = buddies.into_iter().zip(given).map(|(buddy, gold)| {
            let name = buddy.map_or("fsm".to_owned(), |index| self.name(index));
            json!({ "name": name, "gold": gold })
        });
        Ok(json!({
            "name": name, "service": "pirate", "gold": gold, "chats_every": period,
            "sent": sent, "given_by_others": others,
            "buddies": buddies.collect::<Vec<_>>(),
        }))
    }

    /// Returns histograms of buddies, gold and messages per second.
    fn density(&mut self) -> Value {
        let every = self.count.div_ceil(COUNTED).max(1);
        let now = self.now();
        let (before, counted_at) = std::mem::take(&mut self.counted);
        let seconds = now.since(counted_at).as_secs_f64();
        let mut degrees = vec![0u32; MAX_BUDDIES + 1];
        let (mut gold, mut rates) = (vec![0u32; BUCKETS], vec![0u32; BUCKETS]);
        // The number of pirates by degree and gold.
        let mut both = vec![vec![0u32; BUCKETS]; MAX_BUDDIES + 1];
        let mut sent = Vec::new();
        let mut counted = 0u32;
        for (place, index) in (0..self.count).step_by(every as usize).enumerate() {
            let count = self.sent(index);
            sent.push(count);
            let seen = self.inspect(index, |pirate| (pirate.buddies().len(), pirate.gold()));
            let Some((degree, pieces)) = seen else {
                continue;
            };
            counted += 1;
            degrees[degree] += 1;
            gold[bucket(pieces.into())] += 1;
            both[degree][bucket(pieces.into())] += 1;
            let earlier = before.get(place).copied().unwrap_or_default();
            if seconds > 0.0 {
                // Rates are counted in tenths, because most pirates send few messages per second.
                let rate = f64::from(count.wrapping_sub(earlier)) / seconds;
                rates[bucket(rate * 10.0)] += 1;
            }
        }
        // If this query is repeated at the same time, both answers have the same rates.
        self.counted = (sent, now);
        json!({
            "counted": counted, "of": self.count, "degree": degrees, "gold": gold,
            "tenths_per_second": rates, "degree_by_gold": both,
        })
    }
}
