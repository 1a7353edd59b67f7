//! The time to open a connection, from calls that travel longer because no open connection was free.
//!
//! A call needs a new connection if it begins while more calls of its instance are in flight than ever before. The
//! instances of a recording that begins after their start have open connections already, so not all of these calls travel
//! longer. In a simulation, connections stay open until a call is abandoned, for example after a time-out: so the time to
//! open one changes predictions of a start and of overloads with time-outs, and has no effect otherwise.

use super::pool::{Pool, Uses};
use crate::learn::fit::quantile;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The minimum number of calls that opened a connection.
const LEAST: usize = 5;

/// The quantile of the travel times of other calls that these calls must exceed.
const BEYOND: f64 = 0.99;

/// The maximum interquartile range of the travel times of these calls, as a part of their median.
const SPREAD: f64 = 0.5;

/// The time to open a connection in nanoseconds, and the calls that opened one.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) nanos: u64,
    pub(super) calls: Vec<u32>,
}

/// Finds the time to open a connection; `None` if calls that need a new connection do not clearly travel longer.
pub(super) fn find(uses: &Uses, pool: Option<&Pool>) -> Option<Opening> {
    let most = pool.map_or(usize::MAX, |pool| pool.most as usize);
    let (mut opening, mut others) = (Vec::new(), Vec::new());
    for calls in uses.by_caller() {
        let mut ends: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
        let mut opened = 0;
        for one in calls {
            while ends.peek().is_some_and(|end| end.0 <= one.begin) {
                ends.pop();
            }
            ends.push(Reverse(one.end));
            let travel = one.arrival - one.begin;
            if ends.len() > opened && opened < most {
                opened = ends.len();
                opening.push((travel, one.call));
            } else if opened < most || ends.len() <= most {
                others.push(travel);
            }
        }
    }
    others.sort_unstable();
    if others.len() < LEAST {
        return None;
    }
    let beyond = quantile(&others, BEYOND) + 2_000;
    let all = opening.len();
    opening.retain(|(travel, _)| *travel > beyond);
    opening.sort_unstable();
    let travels: Vec<u64> = opening.iter().map(|(travel, _)| *travel).collect();
    if travels.len() < LEAST || 2 * travels.len() < all {
        return None;
    }
    let [low, median, high] = [0.25, 0.5, 0.75].map(|part| quantile(&travels, part));
    let is_similar = (high - low) as f64 <= SPREAD * median as f64;
    is_similar.then(|| Opening {
        nanos: median - quantile(&others, 0.5).min(median),
        calls: opening.into_iter().map(|(_, call)| call).collect(),
    })
}
