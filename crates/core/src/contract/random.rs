//! Random numbers: SplitMix64, counter-based, one independent stream per actor.
//!
//! SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014)
//! hashes a counter that advances by an odd constant. The n-th number of a stream is therefore a
//! pure function of (seed, actor, n): an actor keeps four bytes of state, and a stream does not
//! depend on who else draws, on which worker, or in which order.

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The output function of SplitMix64: a bijection of 64 bits with full avalanche.
#[inline]
pub(crate) const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The `n`-th number of the stream of actor `actor` in a run with this `seed`.
#[inline]
pub(crate) const fn nth(seed: u64, actor: u32, n: u32) -> u64 {
    let stream = mix(seed ^ (actor as u64 + 1).wrapping_mul(GAMMA));
    mix(stream.wrapping_add((n as u64 + 1).wrapping_mul(GAMMA)))
}

/// Maps 64 random bits to a number below `bound` (0 if `bound` is 0).
///
/// Multiply and shift (Lemire 2019, without the rejection step): the bias is below
/// `bound / 2^64`, which for 32-bit bounds is less than one part in four billion.
#[inline]
pub(crate) const fn below(bits: u64, bound: u32) -> u32 {
    ((bits as u128 * bound as u128) >> 64) as u32
}

/// A stream of random numbers outside of any actor: for generators, tests and tools.
///
/// ```
/// let mut a = corsair::Random::new(7);
/// let mut b = corsair::Random::new(7);
/// assert_eq!(a.bits(), b.bits());
/// assert!(a.below(10) < 10);
/// ```
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of this seed.
    pub const fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The next 64 random bits.
    #[inline]
    pub const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// The next number below `bound`; 0 if `bound` is 0.
    #[inline]
    pub const fn below(&mut self, bound: u32) -> u32 {
        below(self.bits(), bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_reference_output_of_splitmix64() {
        // First outputs of the reference implementation for seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
        assert_eq!(random.bits(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn streams_of_actors_and_seeds_differ() {
        let mut seen = std::collections::HashSet::new();
        let actors = if cfg!(miri) { 4 } else { 64 };
        for seed in 0..4 {
            for actor in 0..actors {
                for n in 0..16 {
                    assert!(seen.insert(nth(seed, actor, n)));
                }
            }
        }
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
