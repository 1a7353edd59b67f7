//! actix: each pirate is an actor with an unbounded mailbox (`do_send`). All actors run on one
//! arbiter (a thread), which is actix's default, or are spread over one arbiter per core.

use super::{Contender, cores};
use ::actix::{Actor, ActorContext, Addr, Arbiter, AsyncContext, Context, Handler, System};
use std::sync::Arc;
use std::sync::mpsc;
use versus::{Answer, Fsm, Load, Message, Muster, Next, Pirate, Run};

/// All actors run on the thread of the system.
pub struct OneThread;

/// The FSM runs on the thread of the system, and the pirates are distributed in turn to one arbiter
/// per core.
pub struct ThreadPerCore;

impl Contender for OneThread {
    fn name(&self) -> &'static str {
        "actix"
    }

    fn run(&self, load: Load) -> Result<Run, String> {
        run(load, 0)
    }
}

impl Contender for ThreadPerCore {
    fn name(&self) -> &'static str {
        "actix-arbiters"
    }

    fn run(&self, load: Load) -> Result<Run, String> {
        run(load, cores())
    }
}

struct PirateActor(Pirate<Addr<PirateActor>, Addr<FsmActor>>);

impl Actor for PirateActor {
    type Context = Context<Self>;
}

/// The benchmark's message, wrapped as an actix message.
struct Mail(Message<Addr<PirateActor>, Addr<FsmActor>>);

impl ::actix::Message for Mail {
    type Result = ();
}

impl Handler<Mail> for PirateActor {
    type Result = ();

    fn handle(&mut self, Mail(message): Mail, context: &mut Context<Self>) {
        if let Some((fsm, answer)) = self.0.on(message) {
            fsm.do_send(Reply(answer));
            if matches!(answer, Answer::Goodbye(_)) {
                context.stop();
            }
        }
    }
}

struct FsmActor {
    load: Load,
    arbiters: Vec<Arbiter>,
    crew: Vec<Addr<PirateActor>>,
    fsm: Fsm,
    done: mpsc::Sender<Run>,
}

impl FsmActor {
    fn hire(&self, muster: &Arc<Muster>) -> Vec<Addr<PirateActor>> {
        let mut arbiters = self.arbiters.iter().cycle();
        (0..self.load.pirates)
            .map(|_| {
                let pirate = PirateActor(Pirate::new(muster.clone()));
                match arbiters.next() {
                    Some(arbiter) => PirateActor::start_in_arbiter(&arbiter.handle(), |_| pirate),
                    None => pirate.start(),
                }
            })
            .collect()
    }
}

impl Actor for FsmActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        self.crew = self.hire(&Muster::of(self.load.pirates));
        self.fsm = Fsm::new(self.load);
        for (name, pirate) in (0..).zip(&self.crew) {
            for message in self.fsm.messages(name, &self.crew, context.address()) {
                pirate.do_send(Mail(message));
            }
        }
    }
}

/// The benchmark's answer, wrapped as an actix message.
struct Reply(Answer);

impl ::actix::Message for Reply {
    type Result = ();
}

impl Handler<Reply> for FsmActor {
    type Result = ();

    fn handle(&mut self, Reply(answer): Reply, _: &mut Context<Self>) {
        match self.fsm.on(answer) {
            Next::Wait => {}
            Next::SayGoodbye => {
                for pirate in &self.crew {
                    pirate.do_send(Mail(Message::Goodbye));
                }
            }
            Next::Exit => {
                // The receiver is gone only if the run has timed out.
                let _ = self.done.send(self.fsm.finish());
                System::current().stop();
            }
        }
    }
}

fn run(load: Load, arbiters: usize) -> Result<Run, String> {
    let (done, result) = mpsc::channel();
    let system = System::new();
    system.block_on(async move {
        let arbiters = (0..arbiters).map(|_| Arbiter::new()).collect();
        FsmActor {
            load,
            arbiters,
            crew: Vec::new(),
            fsm: Fsm::new(load),
            done,
        }
        .start()
    });
    system
        .run()
        .map_err(|error| format!("the actix system failed: {error}"))?;
    result
        .recv()
        .map_err(|_| "the actix system ended before the work did".to_owned())
}
