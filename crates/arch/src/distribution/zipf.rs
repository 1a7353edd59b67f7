//! Zipf's law: the popularity of keys.

use super::unit;

/// Keys from 0, of which the key with rank `k` (from 1) has a probability proportional to `k` to the power of minus the
/// skew. Keys are drawn by rejection-inversion (Hörmann and Derflinger 1996).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zipf {
    keys: f64,
    skew: f64,
    /// The integrals at both ends, and the distance within which no key is rejected.
    first: f64,
    last: f64,
    near: f64,
}

impl Zipf {
    pub(crate) fn new(keys: u32, skew: f64) -> Zipf {
        let keys = f64::from(keys.max(1));
        let mut zipf = Zipf {
            keys,
            skew,
            first: 0.0,
            last: 0.0,
            near: 0.0,
        };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(keys + 0.5);
        zipf.near = 2.0 - zipf.inverse(zipf.integral(2.5) - libm::pow(2.0, -skew));
        zipf
    }

    /// Returns the integral of the popularity from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        let power = 1.0 - self.skew;
        let log = libm::log(x);
        match power.abs() < 1e-9 {
            true => log,
            false => libm::expm1(power * log) / power,
        }
    }

    fn inverse(&self, integral: f64) -> f64 {
        let power = 1.0 - self.skew;
        match power.abs() < 1e-9 {
            true => libm::exp(integral),
            false => libm::exp(libm::log1p((power * integral).max(-1.0)) / power),
        }
    }

    /// Draws a key.
    pub(crate) fn draw(&self, mut bits: impl FnMut() -> u64) -> u32 {
        loop {
            let at = self.last + unit(bits()) * (self.first - self.last);
            let x = self.inverse(at);
            let rank = libm::floor(x + 0.5).clamp(1.0, self.keys);
            let popularity = libm::pow(rank, -self.skew);
            if rank - x <= self.near || at >= self.integral(rank + 0.5) - popularity {
                return (rank - 1.0) as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corsair::Random;

    #[test]
    fn keys_are_as_popular_as_the_law_states() {
        for skew in [0.0, 0.7, 1.0, 1.5] {
            let (zipf, mut random) = (Zipf::new(1_000, skew), Random::new(3));
            let mut counts = vec![0u32; 1_000];
            for _ in 0..200_000 {
                counts[zipf.draw(|| random.bits()) as usize] += 1;
            }
            let total: f64 = (1..=1_000)
                .map(|rank| libm::pow(f64::from(rank), -skew))
                .sum();
            for rank in [1usize, 2, 10, 100] {
                let expected = libm::pow(rank as f64, -skew) / total * 200_000.0;
                let off = (f64::from(counts[rank - 1]) - expected).abs();
                assert!(off < 4.5 * expected.sqrt(), "{skew} {rank}: {counts:?}");
            }
        }
    }
}
