//! nexosim: two models that schedule their own events and are connected by a port.

use super::{Server, ServiceTotals, Source};
use ::nexosim::model::{Context, Model, schedulable};
use ::nexosim::ports::Output;
use ::nexosim::simulation::{Mailbox, SchedulingError, SimInit, SimulationError};
use ::nexosim::time::MonotonicTime;
use serde::{Deserialize, Serialize};
use std::sync::mpsc;

#[derive(Serialize, Deserialize)]
struct Door {
    customers: Output<()>,
    #[serde(skip)]
    source: Option<Source>,
}

#[Model]
impl Door {
    #[nexosim(init)]
    async fn open(&mut self, cx: &Context<Self>) {
        self.wait(cx);
    }

    #[nexosim(schedulable)]
    async fn come(&mut self, _: (), cx: &Context<Self>) {
        self.customers.send(()).await;
        self.wait(cx);
    }

    fn wait(&mut self, cx: &Context<Self>) {
        if let Some(pause) = self.source.as_mut().and_then(Source::next) {
            let scheduled = cx.schedule_event(pause, schedulable!(Self::come), ());
            expect_future(scheduled);
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Desk {
    #[serde(skip)]
    state: Option<DeskState>,
}

struct DeskState {
    server: Server,
    customers: u32,
    result: mpsc::Sender<ServiceTotals>,
}

#[Model]
impl Desk {
    async fn arrive(&mut self, _: (), cx: &Context<Self>) {
        let now = nanos(cx.time());
        let service = self
            .state
            .as_mut()
            .and_then(|state| state.server.arrive(now));
        if let Some(service) = service {
            expect_future(cx.schedule_event(service, schedulable!(Self::done), ()));
        }
    }

    #[nexosim(schedulable)]
    async fn done(&mut self, _: (), cx: &Context<Self>) {
        let Some(state) = &mut self.state else { return };
        if let Some(service) = state.server.done(nanos(cx.time())) {
            expect_future(cx.schedule_event(service, schedulable!(Self::done), ()));
        }
        if state.server.totals.customers == state.customers {
            // The receiver is gone only if the run has timed out.
            let _ = state.result.send(state.server.totals);
        }
    }
}

fn nanos(time: MonotonicTime) -> u64 {
    time.duration_since(MonotonicTime::EPOCH).as_nanos() as u64
}

fn expect_future(scheduled: Result<(), SchedulingError>) {
    scheduled.expect("no pause and no service takes no time");
}

/// Simulates `customers` customers.
///
/// # Errors
/// The reason why the run failed.
pub fn run(customers: u32, threads: usize) -> Result<ServiceTotals, String> {
    let (result, totals) = mpsc::channel();
    simulate(customers, threads, result).map_err(|error| error.to_string())?;
    totals
        .recv()
        .map_err(|_| "the simulation ended before the work did".to_owned())
}

fn simulate(
    customers: u32,
    threads: usize,
    result: mpsc::Sender<ServiceTotals>,
) -> Result<(), SimulationError> {
    let (door_mailbox, desk_mailbox) = (Mailbox::new(), Mailbox::new());
    let mut door = Door {
        customers: Output::new(),
        source: Some(Source::new(customers)),
    };
    door.customers.connect(Desk::arrive, &desk_mailbox);
    let state = DeskState {
        server: Server::new(),
        customers,
        result,
    };
    let desk = Desk { state: Some(state) };
    let mut simulation = SimInit::with_num_threads(threads)
        .add_model(door, door_mailbox, "door")
        .add_model(desk, desk_mailbox, "desk")
        .init(MonotonicTime::EPOCH)?;
    simulation.run()?;
    Ok(())
}
