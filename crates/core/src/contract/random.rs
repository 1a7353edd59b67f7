//! Random numbers: SplitMix64, counter-based, one independent stream per actor.
//!
//! SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014)
//! hashes a counter that advances by an odd constant. The n-th number of a stream is therefore a
//! pure function of (seed, actor, n). An actor stores only the number of its draws, and its stream
//! does not depend on the draws of other actors, on workers, or on the order of execution.
//!
//! The seed is mixed before anything is derived from it, so runs with neighbouring seeds are
//! unrelated, and each actor's counter has its own start and step.

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The output function of SplitMix64: a bijection of 64 bits with full avalanche.
#[inline]
pub(crate) const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Derives the key of a hash from the seed and its purpose.
#[inline]
pub(crate) const fn key(seed: u64, purpose: u64) -> u64 {
    mix(mix(seed.wrapping_add(GAMMA)) ^ purpose)
}

/// The streams of all actors of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streams {
    key: u64,
}

impl Streams {
    /// Creates the streams of a run with this seed.
    #[inline]
    pub(crate) const fn new(seed: u64) -> Streams {
        Streams {
            key: key(seed, 0x5354_5245_414D_5321),
        }
    }

    /// Returns the `n`-th number of an actor's stream.
    #[inline]
    pub(crate) const fn nth(self, actor: u32, n: u64) -> u64 {
        let start = mix(self.key.wrapping_add((actor as u64).wrapping_mul(GAMMA)));
        let step = start.rotate_left(32) | 1;
        mix(start.wrapping_add(n.wrapping_add(1).wrapping_mul(step)))
    }
}

/// Maps 64 random bits to a number below `bound` (0 if `bound` is 0).
///
/// Multiply and shift (Lemire 2019, without the rejection step): the bias is below
/// `bound / 2^64`, which for 32-bit bounds is less than one part in four billion.
#[inline]
pub(crate) const fn below(bits: u64, bound: u32) -> u32 {
    ((bits as u128 * bound as u128) >> 64) as u32
}

/// A stream of random numbers that does not belong to an actor: for generators, tests and tools.
///
/// ```
/// let mut a = corsair::Random::new(7);
/// let mut b = corsair::Random::new(7);
/// assert_eq!(a.bits(), b.bits());
/// assert!(a.below(10) < 10);
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Random {
    state: u64,
}

impl Random {
    /// Creates the stream of this seed.
    pub const fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// Skips the next `count` numbers; O(1).
    ///
    /// ```
    /// let (mut a, mut b) = (corsair::Random::new(7), corsair::Random::new(7));
    /// (0..1000).for_each(|_| drop(a.bits()));
    /// b.skip(1000);
    /// assert_eq!(a.bits(), b.bits());
    /// ```
    #[inline]
    pub const fn skip(&mut self, count: u64) {
        self.state = self.state.wrapping_add(count.wrapping_mul(GAMMA));
    }

    /// Returns the next number below `bound`; 0 if `bound` is 0.
    #[inline]
    pub const fn below(&mut self, bound: u32) -> u32 {
        below(self.bits(), bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: core-19.
    #[test]
    fn matches_the_reference_output_of_splitmix64() {
        // First outputs of the reference implementation for seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
        assert_eq!(random.bits(), 9_817_491_932_198_370_423);
    }

    // Guarantee: core-19.
    #[test]
    fn streams_of_actors_and_seeds_differ() {
        let mut seen = std::collections::HashSet::new();
        let actors = if cfg!(miri) { 4 } else { 64 };
        for seed in 0..4 {
            let streams = Streams::new(seed);
            for actor in 0..actors {
                for n in 0..16 {
                    assert!(seen.insert(streams.nth(actor, n)));
                }
            }
        }
    }

    // Guarantee: core-19.
    #[test]
    fn a_stream_does_not_repeat_after_two_to_the_32() {
        let streams = Streams::new(7);
        for n in 0..16 {
            assert_ne!(streams.nth(3, n), streams.nth(3, n + (1 << 32)));
        }
    }

    /// Converts 64 bits to a number between 0 and 1.
    fn fraction(bits: u64) -> f64 {
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Fails unless the pairs look independent and uniform: by their correlation, and by
    /// chi-squared over 16 by 16 cells, which has 255 degrees of freedom and a standard deviation
    /// of 22.6.
    #[track_caller]
    fn assert_independent(what: &str, pairs: impl Iterator<Item = (u64, u64)>) {
        let mut cells = [0u32; 256];
        let (mut count, mut product) = (0.0, 0.0);
        for (a, b) in pairs {
            cells[(a >> 60) as usize * 16 + (b >> 60) as usize] += 1;
            product += (fraction(a) - 0.5) * (fraction(b) - 0.5);
            count += 1.0;
        }
        let expected = count / 256.0;
        let chi: f64 = cells
            .iter()
            .map(|&hits| (f64::from(hits) - expected).powi(2) / expected)
            .sum();
        // Five standard deviations; the products have a variance of 1/144.
        let correlation = product / count * 12.0;
        assert!(
            (chi - 255.0).abs() < 5.0 * 22.6,
            "{what}: chi squared {chi}"
        );
        assert!(
            correlation.abs() < 5.0 / f64::sqrt(count),
            "{what}: correlation {correlation}"
        );
    }

    // Guarantee: core-19.
    #[test]
    #[cfg_attr(miri, ignore = "statistics need many numbers")]
    fn streams_of_neighbouring_seeds_and_actors_are_independent() {
        let each = || (0..100u32).flat_map(|actor| (0..400u64).map(move |n| (actor, n)));
        for seed in [0, 1, 2, 76, u64::MAX - 1, 1 << 32] {
            let (this, next) = (Streams::new(seed), Streams::new(seed + 1));
            let twin = Streams::new(seed ^ (1 << 63));
            let pairs = |other: fn(u32, u64) -> (u32, u64)| {
                each().map(move |(actor, n)| {
                    let (actor2, n2) = other(actor, n);
                    (this.nth(actor, n), this.nth(actor2, n2))
                })
            };
            assert_independent("next number", pairs(|actor, n| (actor, n + 1)));
            assert_independent("next actor", pairs(|actor, n| (actor + 1, n)));
            assert_independent("page", pairs(|actor, n| (actor + 256, n)));
            assert_independent(
                "next seed",
                each().map(|(actor, n)| (this.nth(actor, n), next.nth(actor, n))),
            );
            assert_independent(
                "next seed, next actor",
                each().map(|(actor, n)| (this.nth(actor + 1, n), next.nth(actor, n))),
            );
            assert_independent(
                "highest bit of the seed",
                each().map(|(actor, n)| (this.nth(actor, n), twin.nth(actor, n))),
            );
        }
    }

    // Guarantee: core-19.
    #[test]
    #[cfg_attr(miri, ignore = "statistics need many numbers")]
    fn latencies_of_neighbouring_seeds_and_addresses_are_independent() {
        use crate::{Addr, Latency};
        use std::time::Duration;
        // The whole range of 64 bits, so that the latency is the hash.
        let latency = Latency {
            min: 0,
            spread: u64::MAX,
        };
        let of =
            |seed: u64, from: u32, to: u32| latency.of(Latency::key(seed), Addr(from), Addr(to));
        let each = || (0..200u32).flat_map(|from| (0..200u32).map(move |to| (from, to)));
        for seed in [0, 1, 2, 76, u64::MAX - 1, 1 << 32] {
            let pairs = |other: fn(u64, u32, u32) -> (u64, u32, u32)| {
                each().map(move |(from, to)| {
                    let (seed2, from2, to2) = other(seed, from, to);
                    (of(seed, from, to), of(seed2, from2, to2))
                })
            };
            assert_independent(
                "next receiver",
                pairs(|seed, from, to| (seed, from, to + 1)),
            );
            assert_independent("next sender", pairs(|seed, from, to| (seed, from + 1, to)));
            // Each pair of actors is in the list once, so this looks up both directions.
            let back = |(from, to): (u32, u32)| (of(seed, from, to), of(seed, to, from));
            assert_independent("way back", each().filter(|(a, b)| a < b).map(back));
            assert_independent("next seed", pairs(|seed, from, to| (seed + 1, from, to)));
            assert_independent(
                "next seed, next receiver",
                pairs(|seed, from, to| (seed + 1, from, to + 1)),
            );
        }
        // No two seeds share their extremes or their mean.
        let latency = Latency::between(Duration::from_millis(1), Duration::from_millis(2)).unwrap();
        let mut sums = std::collections::HashSet::new();
        let mut extremes = std::collections::HashSet::new();
        for seed in [0, 1, 2, 3, 77] {
            let key = Latency::key(seed);
            let all: Vec<u64> = each()
                .map(|(from, to)| latency.of(key, Addr(from), Addr(to)))
                .collect();
            assert!(sums.insert(all.iter().sum::<u64>()));
            assert!(extremes.insert((all.iter().min().copied(), all.iter().max().copied())));
        }
        // Latencies to consecutive receivers do not form a lattice: their second differences vary.
        let key = Latency::key(0);
        let row: Vec<i64> = (0..1000)
            .map(|to| latency.of(key, Addr(0), Addr(to)) as i64)
            .collect();
        let differences: std::collections::HashSet<i64> = row
            .windows(3)
            .map(|w| (w[2] - 2 * w[1] + w[0]).rem_euclid(1_000_000))
            .collect();
        assert!(differences.len() > 900, "{}", differences.len());
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut random = Random::new(1);
        let mut hits = [0u32; 7];
        for _ in 0..7000 {
            hits[random.below(7) as usize] += 1;
        }
        assert!(hits.iter().all(|&h| h > 800), "{hits:?}");
        assert_eq!(random.below(0), 0);
    }
}
