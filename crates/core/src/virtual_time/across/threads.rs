//! A carrier between processes that are threads, for tests and examples.

use super::{Carrier, ProcessLost};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A carrier that [`thread_carriers`] connects. Dropping it ends the run in the other processes with [`ProcessLost`].
#[derive(Debug)]
pub struct ThreadCarrier {
    process: usize,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

/// Connects a number of simulated processes, each of which runs on its own thread. Returns the carrier of
/// each, in order.
pub fn thread_carriers(processes: usize) -> Vec<ThreadCarrier> {
    let carrier = |process| ThreadCarrier {
        process,
        to: Vec::new(),
        from: Vec::new(),
    };
    let mut carriers: Vec<_> = (0..processes).map(carrier).collect();
    for from in 0..processes {
        for to in 0..processes {
            let (sender, receiver) = channel();
            carriers[from].to.push(sender);
            carriers[to].from.push(receiver);
        }
    }
    carriers
}

impl Carrier for ThreadCarrier {
    fn exchange(
        &mut self,
        outgoing: &mut [Vec<u8>],
        incoming: &mut [Vec<u8>],
    ) -> Result<(), ProcessLost> {
        let others = |process: &usize| *process != self.process;
        for to in (0..self.to.len()).filter(others) {
            let batch = std::mem::take(&mut outgoing[to]);
            self.to[to].send(batch).map_err(|_| ProcessLost)?;
        }
        for from in (0..self.from.len()).filter(others) {
            incoming[from] = self.from[from].recv().map_err(|_| ProcessLost)?;
        }
        Ok(())
    }
}
