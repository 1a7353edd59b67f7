//! nexosim: each pirate is a model that is connected to the FSM before the simulation begins; all
//! messages are sent at one point of simulated time.
//!
//! Messages of nexosim cannot contain addresses, so a name represents an address. A pirate answers through its single
//! output port. Models must be serializable, although nothing is saved.

use super::{Contender, MAILBOX};
use ::nexosim::model::Model;
use ::nexosim::ports::{EventSource, Output};
use ::nexosim::simulation::{Mailbox, SimInit, SimulationError};
use ::nexosim::time::MonotonicTime;
use serde::{Deserialize, Serialize};
use std::sync::mpsc;
use versus::{Answer, Fsm, Load, Message, Muster, Next, Pirate, Run};

/// nexosim's executor on all cores.
pub struct Nexosim;

impl Contender for Nexosim {
    fn name(&self) -> &'static str {
        "nexosim"
    }

    fn run(&self, load: Load) -> Result<Run, String> {
        let (done, result) = mpsc::channel();
        simulate(load, done).map_err(|error| format!("the simulation failed: {error}"))?;
        result
            .recv()
            .map_err(|_| "the simulation ended before the work did".to_owned())
    }
}

/// A message in which a name represents an address.
type Mail = Message<u32, ()>;

#[derive(Serialize, Deserialize)]
struct PirateModel {
    answers: Output<AnswerMessage>,
    #[serde(skip)]
    pirate: Option<Pirate<u32, ()>>,
}

/// The benchmark's answer, wrapped as a nexosim message.
#[derive(Clone, Copy)]
struct AnswerMessage(Answer);

#[Model]
impl PirateModel {
    async fn receive(&mut self, message: Mail) {
        let said = self.pirate.as_mut().and_then(|pirate| pirate.on(message));
        if let Some((_, answer)) = said {
            self.answers.send(AnswerMessage(answer)).await;
        }
    }
}

#[derive(Serialize, Deserialize)]
struct FsmModel {
    crew: Vec<Output<Mail>>,
    #[serde(skip)]
    state: Option<FsmState>,
}

struct FsmState {
    fsm: Fsm,
    load: Load,
    done: mpsc::Sender<Run>,
}

#[Model]
impl FsmModel {
    async fn deliver(&mut self) {
        let Some(FsmState { fsm, load, .. }) = &mut self.state else {
            return;
        };
        let names: Vec<u32> = (0..load.pirates).collect();
        *fsm = Fsm::new(*load);
        for (&name, pirate) in names.iter().zip(&mut self.crew) {
            for message in fsm.messages(name, &names, ()) {
                pirate.send(message).await;
            }
        }
    }

    async fn receive_answer(&mut self, AnswerMessage(answer): AnswerMessage) {
        let Some(FsmState { fsm, done, .. }) = &mut self.state else {
            return;
        };
        match fsm.on(answer) {
            Next::Wait => {}
            Next::SayGoodbye => {
                for pirate in &mut self.crew {
                    pirate.send(Message::Goodbye).await;
                }
            }
            Next::Exit => {
                // The receiver is gone only if the run has timed out.
                let _ = done.send(fsm.finish());
            }
        }
    }
}

fn simulate(load: Load, done: mpsc::Sender<Run>) -> Result<(), SimulationError> {
    let muster = Muster::of(load.pirates);
    let fsm_mailbox = Mailbox::with_capacity(MAILBOX);
    let state = FsmState {
        fsm: Fsm::new(load),
        load,
        done,
    };
    let mut fsm = FsmModel {
        crew: Vec::new(),
        state: Some(state),
    };
    let mut bench = SimInit::new();
    for _ in 0..load.pirates {
        let mailbox = Mailbox::with_capacity(MAILBOX);
        let mut to_pirate = Output::new();
        to_pirate.connect(PirateModel::receive, &mailbox);
        fsm.crew.push(to_pirate);
        let mut answers = Output::new();
        answers.connect(FsmModel::receive_answer, &fsm_mailbox);
        let pirate = PirateModel {
            answers,
            pirate: Some(Pirate::new(muster.clone())),
        };
        bench = bench.add_model(pirate, mailbox, "pirate");
    }
    let begin = EventSource::new()
        .connect(FsmModel::deliver, &fsm_mailbox)
        .register(&mut bench);
    let mut simulation = bench
        .add_model(fsm, fsm_mailbox, "fsm")
        .init(MonotonicTime::EPOCH)?;
    simulation.process_event(&begin, ())?;
    Ok(())
}
