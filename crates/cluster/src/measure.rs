//! Measures the cost of an exchange on the network that a run will use.

use crate::{ClusterError, Member, MpiCarrier};
use corsair::cluster::Carrier;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The number of measured exchanges without events, after a warm-up.
const EXCHANGES: usize = 1000;
const WARM_UP: usize = 200;
/// The size of a large exchange in bytes, and the number of large exchanges to measure.
const BYTES: usize = 1 << 20;
const LARGE: usize = 40;
/// The size in bytes of a batch without events: the contribution to the reduction, and the length of the events.
const EMPTY: usize = 41;
/// The number of additional messages per exchange, for measuring the cost of one message.
const MESSAGES: usize = 16;

/// The cost of an exchange between two processes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExchangeCost {
    /// Time of an exchange without events.
    pub window: Duration,
    /// The additional time for each further process, which sends and receives one message.
    pub peer: Duration,
    /// Seconds for each byte that one process sends to the other.
    pub byte: f64,
}

/// Measures exchanges between this process and one other process. Both processes must call this function.
///
/// # Errors
/// [`ClusterError::Mpi`] if there are not two processes.
pub fn measure_exchange(mut member: Member<MpiCarrier>) -> Result<ExchangeCost, ClusterError> {
    if member.processes() != 2 {
        return Err(ClusterError::Mpi(
            "an exchange is measured between two processes",
        ));
    }
    let other = 1 - member.process();
    let carrier = member.carrier();
    let mut median = |count: usize, bytes: usize, longest: usize| {
        carrier.set_longest(longest);
        let (mut outgoing, mut incoming) = ([vec![], vec![]], [vec![], vec![]]);
        let mut times = Vec::new();
        for _ in 0..count {
            outgoing[other].resize(bytes, 7);
            let began = Instant::now();
            carrier.exchange(&mut outgoing, &mut incoming)?;
            times.push(began.elapsed());
        }
        times.sort_unstable();
        Ok::<_, ClusterError>(times[count / 2])
    };
    let long = BYTES + 1;
    median(WARM_UP, EMPTY, long)?;
    let window = median(EXCHANGES, EMPTY, long)?;
    let many = median(EXCHANGES, EMPTY * (MESSAGES + 1), EMPTY + 1)?;
    let large = median(LARGE, BYTES, long)?;
    Ok(ExchangeCost {
        window,
        peer: many.saturating_sub(window) / MESSAGES as u32,
        byte: large.saturating_sub(window).as_secs_f64() / BYTES as f64,
    })
}
