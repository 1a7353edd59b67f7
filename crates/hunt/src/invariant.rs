//! Invariants over the states of all nodes, checked while no node runs.

use crate::Properties;
use corsair::{Message, Scenario, Simulation, Time};

type Holds<M> = dyn Fn(&mut Simulation<M>, u32) -> bool + Send + Sync;

/// A condition on the states of all nodes.
pub(crate) struct Invariant<M: Message> {
    pub(crate) name: &'static str,
    pub(crate) holds: Box<Holds<M>>,
}

/// Runs a scenario, and checks the invariants between its windows.
pub(crate) fn watched<M: Message>(
    config: &corsair::Config,
    scenario: impl Scenario<M>,
    nodes: u32,
    invariants: &[Invariant<M>],
) -> Result<(corsair::Report, Properties), corsair::RunError> {
    const MILLISECOND: u64 = 1_000_000;
    let mut simulation = Simulation::new(config, scenario)?;
    let mut counts = vec![[0; 2]; invariants.len()];
    while let Some(next) = simulation.next() {
        let end = next.as_nanos().div_ceil(MILLISECOND).max(1);
        simulation.run_until(Time::from_nanos(end * MILLISECOND));
        for (invariant, counts) in invariants.iter().zip(&mut counts) {
            let holds = (invariant.holds)(&mut simulation, nodes);
            counts[usize::from(!holds)] += 1;
        }
    }
    let report = simulation.finish()?;
    let mut properties = Properties::default();
    for (invariant, [held, violated]) in invariants.iter().zip(counts) {
        properties.state(invariant.name, held, violated);
    }
    Ok((report, properties))
}
