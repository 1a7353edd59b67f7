//! Programs with invariants.

use crate::FaultPlan;
use crate::invariant::Invariant;
use crate::node::{FIRST, Host};
use crate::program::{self, HuntError, Program, RunResult, Subject, Trace};
use corsair::{Addr, Simulation};
use std::fmt;
use std::sync::Arc;

/// A program with invariants over the typed states of its nodes.
///
/// The invariants are checked between two windows, once for each millisecond of virtual time in which an event
/// happened. So the result does not depend on the number of workers.
///
/// ```
/// use corsair::{Context, Message};
/// use corsair_hunt::{FaultPlan, Guarded, Input, Machine, Node, Program, Subject};
/// use std::sync::Arc;
///
/// #[derive(Clone, Message)]
/// struct Token;
///
/// /// Nodes that pass a token around.
/// struct Ring;
///
/// #[derive(Default)]
/// struct Member {
///     has_token: bool,
/// }
///
/// impl Node<Token> for Member {
///     fn boot<C: Context<Token>>(&mut self, cx: &mut C, machine: &mut Machine) {
///         self.has_token = machine.index == 0;
///         machine.timer(cx, 10, 0);
///     }
///
///     fn on<C: Context<Token>>(&mut self, input: Input<Token>, cx: &mut C, machine: &mut Machine) {
///         match input {
///             Input::Message { .. } => self.has_token = true,
///             Input::Timer(_) => {
///                 if std::mem::take(&mut self.has_token) {
///                     cx.send(machine.nodes.get((machine.index + 1) % 3), Token);
///                 }
///                 machine.timer(cx, 10, 0);
///             }
///         }
///     }
/// }
///
/// impl Program for Ring {
///     type Message = Token;
///     type Node = Member;
///     type Observer = ();
///     fn name(&self) -> &'static str { "ring" }
///     fn nodes(&self) -> u32 { 3 }
///     fn time(&self) -> u32 { 1_000 }
///     fn node(&self, _: u32) -> Member { Member::default() }
///     fn observer(&self) {}
/// }
///
/// let ring = Guarded::new(Arc::new(Ring)).with(
///     "at most one node has the token",
///     |member| member.has_token,
///     |views| views.iter().flatten().filter(|has_token| **has_token).count() <= 1,
/// );
/// let calm = ring.run(1, &FaultPlan::calm(1_000), 2)?;
/// assert!(calm.properties.violated().is_empty());
/// let plan: FaultPlan = serde_json::from_str(r#"{"time": 1000, "faults": [{"crash": {"nodes": [0], "at": 102, "down": 5}}]}"#)?;
/// let crashed = ring.run(1, &plan, 2)?;
/// assert_eq!(crashed.properties.violated(), ["at most one node has the token"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Guarded<P: Program> {
    program: Arc<P>,
    invariants: Vec<Invariant<P::Message>>,
}

impl<P: Program> Guarded<P> {
    /// Wraps a program. The result has no invariants yet.
    pub fn new(program: Arc<P>) -> Guarded<P> {
        Guarded {
            program,
            invariants: Vec::new(),
        }
    }

    /// Adds an invariant: `view` extracts the relevant part of a node's state, and `holds` gets the views of all
    /// nodes by index, `None` for a node that is down.
    #[must_use]
    pub fn with<V: 'static>(
        mut self,
        name: &'static str,
        view: impl Fn(&P::Node) -> V + Send + Sync + 'static,
        holds: impl Fn(&[Option<V>]) -> bool + Send + Sync + 'static,
    ) -> Guarded<P> {
        let holds = move |simulation: &mut Simulation<P::Message>, nodes: u32| {
            let mut look = |index| {
                let node = Addr::from_u32(FIRST + index);
                let seen = simulation.inspect(node, |host: &Host<P::Message, P::Node>| {
                    host.node.as_ref().map(&view)
                });
                seen.ok().flatten()
            };
            let views: Vec<Option<V>> = (0..nodes).map(&mut look).collect();
            holds(&views)
        };
        self.invariants.push(Invariant {
            name,
            holds: Box::new(holds),
        });
        self
    }
}

impl<P: Program> fmt::Debug for Guarded<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.invariants.iter().map(|invariant| invariant.name);
        f.debug_list().entries(names).finish()
    }
}

impl<P: Program> Subject for Guarded<P> {
    fn name(&self) -> &'static str {
        self.program.name()
    }

    fn nodes(&self) -> u32 {
        self.program.nodes()
    }

    fn time(&self) -> u32 {
        self.program.time()
    }

    fn loses_disks(&self) -> bool {
        self.program.loses_disks()
    }

    fn run(&self, seed: u64, plan: &FaultPlan, workers: usize) -> Result<RunResult, HuntError> {
        program::run(&self.program, seed, plan, workers, None, &self.invariants)
    }

    fn trace(&self, seed: u64, plan: &FaultPlan) -> Result<Trace, HuntError> {
        program::trace(&self.program, seed, plan, &self.invariants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fault, Input, Machine, Node};
    use corsair::{Context, Message, Random};

    /// Nodes that count the messages of their left neighbour.
    struct Counts;

    #[derive(Clone, Message)]
    #[message(duplicate)]
    struct Tick;

    #[derive(Default)]
    struct Counter {
        ticks: u32,
    }

    impl Node<Tick> for Counter {
        fn boot<C: Context<Tick>>(&mut self, cx: &mut C, machine: &mut Machine) {
            machine.timer(cx, 7, 0);
        }

        fn on<C: Context<Tick>>(&mut self, input: Input<Tick>, cx: &mut C, machine: &mut Machine) {
            match input {
                Input::Message { .. } => self.ticks += 1,
                Input::Timer(_) => {
                    let right = (machine.index + 1) % machine.nodes.len();
                    cx.send(machine.nodes.get(right), Tick);
                    machine.timer(cx, 7, 0);
                }
            }
        }
    }

    impl Program for Counts {
        type Message = Tick;
        type Node = Counter;
        type Observer = ();

        fn name(&self) -> &'static str {
            "counts"
        }

        fn nodes(&self) -> u32 {
            9
        }

        fn time(&self) -> u32 {
            500
        }

        fn node(&self, _: u32) -> Counter {
            Counter::default()
        }

        fn observer(&self) {}
    }

    fn guarded(most: u32) -> Guarded<Counts> {
        let view = |counter: &Counter| counter.ticks;
        let spread = move |views: &[Option<u32>]| {
            let up = || views.iter().flatten();
            up().max().unwrap_or(&0) - up().min().unwrap_or(&0) <= most
        };
        Guarded::new(Arc::new(Counts)).with("counts are close", view, spread)
    }

    // Guarantee: hunt-8.
    #[test]
    fn an_invariant_has_the_same_result_on_any_number_of_workers() {
        let mut plan = FaultPlan::calm(500);
        plan.faults.push(Fault::Crash {
            nodes: [4].into_iter().collect(),
            at: 203,
            down: 50,
            loses_disk: false,
        });
        for (most, is_violated) in [(5, true), (1_000, false)] {
            let run = |workers| guarded(most).run(3, &plan, workers).unwrap();
            let one = run(1);
            assert_eq!(!one.properties.violated().is_empty(), is_violated);
            let property = &one.properties.properties[0];
            assert!(property.held + property.violated > 100, "{property:?}");
            for workers in 2..=4 {
                let other = run(workers);
                assert_eq!(other.properties, one.properties);
                assert_eq!(other.digest, one.digest);
            }
        }
    }

    #[test]
    fn invariants_do_not_change_the_run() {
        let plan = FaultPlan::calm(500);
        let plain = Arc::new(Counts).run(3, &plan, 1).unwrap();
        let guarded = guarded(1_000).run(3, &plan, 1).unwrap();
        assert_eq!(
            (plain.digest, plain.events),
            (guarded.digest, guarded.events)
        );
    }

    #[test]
    fn branches_of_branches_are_valid() {
        let mut random = Random::new(6);
        for time in [2, 300, 4_000, 60_000] {
            let mut plan = FaultPlan::draw(&mut random, 9, time, true);
            for _ in 0..500 {
                let at = random.below(plan.faults_until());
                plan = plan.branch(&mut random, at, 9, true);
                plan.check(9).unwrap();
            }
        }
    }

    #[test]
    fn a_branch_is_the_same_until_its_time() {
        let subject = Arc::new(Counts);
        let mut random = Random::new(5);
        let mut differ = 0;
        for seed in 0..20 {
            let plan = subject.draw(&mut random, subject.time());
            let at = 100 + random.below(200);
            let branch = plan.branch(&mut random, at, 9, false);
            branch.check(9).unwrap();
            let steps = |plan: &FaultPlan| subject.trace(seed, plan).unwrap().steps;
            let until = |mut steps: Vec<crate::Step>| {
                steps.retain(|step| step.at < u64::from(at) * 1_000_000);
                steps
            };
            let [old, new] = [steps(&plan), steps(&branch)];
            differ += usize::from(old != new);
            assert_eq!(until(old), until(new), "{plan:?} at {at}: {branch:?}");
        }
        assert!(differ > 10, "{differ}");
    }
}
