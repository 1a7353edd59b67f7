//! kameo: each pirate is an actor, with a bounded or unbounded mailbox, on tokio.

use super::{Contender, MAILBOX, cores};
use ::kameo::Actor;
use ::kameo::actor::{ActorRef, Spawn};
use ::kameo::error::Infallible;
use ::kameo::mailbox::{self, MailboxReceiver, MailboxSender};
use ::kameo::message::Context;
use ::tokio::runtime::Builder;
use std::sync::mpsc;
use versus::{Answer, Fsm, Load, Message, Muster, Next, Pirate, Run};

/// Mailboxes without a bound.
pub struct Unbounded;

/// Mailboxes that hold [`MAILBOX`] messages.
pub struct Bounded;

impl Contender for Unbounded {
    fn name(&self) -> &'static str {
        "kameo-unbounded"
    }

    fn run(&self, load: Load) -> Result<Run, String> {
        run(load, mailbox::unbounded, mailbox::unbounded)
    }
}

impl Contender for Bounded {
    fn name(&self) -> &'static str {
        "kameo-bounded"
    }

    fn run(&self, load: Load) -> Result<Run, String> {
        run(
            load,
            || mailbox::bounded(MAILBOX),
            || mailbox::bounded(MAILBOX),
        )
    }
}

/// A function that makes a mailbox.
type Make<A> = fn() -> (MailboxSender<A>, MailboxReceiver<A>);

/// The benchmark's message, wrapped as a kameo message.
struct Mail(Message<ActorRef<PirateActor>, ActorRef<FsmActor>>);

/// The benchmark's answer, wrapped as a kameo message.
struct Reply(Answer);

struct PirateActor(Pirate<ActorRef<PirateActor>, ActorRef<FsmActor>>);

impl Actor for PirateActor {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(state: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(state)
    }
}

impl ::kameo::message::Message<Mail> for PirateActor {
    type Reply = ();

    async fn handle(&mut self, Mail(message): Mail, context: &mut Context<Self, ()>) {
        if let Some((fsm, answer)) = self.0.on(message) {
            let delivered = fsm.tell(Reply(answer)).send().await;
            assert!(delivered.is_ok(), "the FSM lives until the last Goodbye");
            if matches!(answer, Answer::Goodbye(_)) {
                context.stop();
            }
        }
    }
}

struct FsmActor {
    load: Load,
    make: Make<PirateActor>,
    crew: Vec<ActorRef<PirateActor>>,
    fsm: Fsm,
    done: mpsc::Sender<Run>,
}

impl FsmActor {
    async fn deliver(&mut self, me: ActorRef<Self>) {
        let muster = Muster::of(self.load.pirates);
        self.crew = (0..self.load.pirates)
            .map(|_| {
                let pirate = PirateActor(Pirate::new(muster.clone()));
                PirateActor::spawn_with_mailbox(pirate, (self.make)())
            })
            .collect();
        self.fsm = Fsm::new(self.load);
        for (name, pirate) in (0..).zip(&self.crew) {
            for message in self.fsm.messages(name, &self.crew, me.clone()) {
                deliver(pirate, message).await;
            }
        }
    }
}

async fn deliver(
    pirate: &ActorRef<PirateActor>,
    message: Message<ActorRef<PirateActor>, ActorRef<FsmActor>>,
) {
    let delivered = pirate.tell(Mail(message)).send().await;
    assert!(delivered.is_ok(), "pirates live until the Goodbye");
}

impl Actor for FsmActor {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(mut state: Self, me: ActorRef<Self>) -> Result<Self, Infallible> {
        state.deliver(me).await;
        Ok(state)
    }
}

impl ::kameo::message::Message<Reply> for FsmActor {
    type Reply = ();

    async fn handle(&mut self, Reply(answer): Reply, context: &mut Context<Self, ()>) {
        match self.fsm.on(answer) {
            Next::Wait => {}
            Next::SayGoodbye => {
                for pirate in &self.crew {
                    deliver(pirate, Message::Goodbye).await;
                }
            }
            Next::Exit => {
                // The receiver is gone only if the run has timed out.
                let _ = self.done.send(self.fsm.finish());
                context.stop();
            }
        }
    }
}

fn run(load: Load, pirates: Make<PirateActor>, fsm: Make<FsmActor>) -> Result<Run, String> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(cores())
        .enable_time()
        .build()
        .map_err(|error| format!("cannot start tokio's threads: {error}"))?;
    let (done, result) = mpsc::channel();
    runtime.block_on(async {
        let state = FsmActor {
            load,
            make: pirates,
            crew: Vec::new(),
            fsm: Fsm::new(load),
            done,
        };
        FsmActor::spawn_with_mailbox(state, fsm())
            .wait_for_shutdown()
            .await;
    });
    result
        .recv()
        .map_err(|_| "the FSM ended before the work did".to_owned())
}
