//! ractor: each pirate is an actor with an unbounded mailbox (ractor has no other kind), on tokio.

use super::{Contender, cores};
use ::ractor::{Actor, ActorProcessingErr, ActorRef};
use ::tokio::runtime::Builder;
use std::sync::Arc;
use std::sync::mpsc;
use versus::{Answer, Fsm, Load, Message, Muster, Next, Pirate, Run};

/// The only configuration of ractor.
pub struct Ractor;

impl Contender for Ractor {
    fn name(&self) -> &'static str {
        "ractor"
    }

    fn run(&self, load: Load) -> Result<Run, String> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(cores())
            .enable_time()
            .build()
            .map_err(|error| format!("cannot start tokio's threads: {error}"))?;
        let (done, result) = mpsc::channel();
        runtime.block_on(async {
            let (_, ended) = FsmActor::spawn(None, FsmActor, (load, done))
                .await
                .map_err(|error| format!("ractor cannot spawn the FSM: {error}"))?;
            ended
                .await
                .map_err(|error| format!("the FSM's task failed: {error}"))
        })?;
        result
            .recv()
            .map_err(|_| "the FSM ended before the work did".to_owned())
    }
}

/// The benchmark's message, wrapped as a ractor message.
struct Mail(Message<ActorRef<Mail>, ActorRef<Reply>>);

/// The benchmark's answer, wrapped as a ractor message.
struct Reply(Answer);

struct PirateActor;

impl Actor for PirateActor {
    type Msg = Mail;
    type State = Pirate<ActorRef<Mail>, ActorRef<Reply>>;
    type Arguments = Arc<Muster>;

    async fn pre_start(
        &self,
        _: ActorRef<Mail>,
        muster: Arc<Muster>,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(Pirate::new(muster))
    }

    async fn handle(
        &self,
        me: ActorRef<Mail>,
        Mail(message): Mail,
        pirate: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let Some((fsm, answer)) = pirate.on(message) {
            fsm.cast(Reply(answer))?;
            if matches!(answer, Answer::Goodbye(_)) {
                me.stop(None);
            }
        }
        Ok(())
    }
}

struct FsmActor;

struct FsmState {
    fsm: Fsm,
    crew: Vec<ActorRef<Mail>>,
    done: mpsc::Sender<Run>,
}

impl Actor for FsmActor {
    type Msg = Reply;
    type State = FsmState;
    type Arguments = (Load, mpsc::Sender<Run>);

    async fn pre_start(
        &self,
        me: ActorRef<Reply>,
        (load, done): (Load, mpsc::Sender<Run>),
    ) -> Result<FsmState, ActorProcessingErr> {
        let muster = Muster::of(load.pirates);
        let mut crew = Vec::with_capacity(load.pirates as usize);
        for _ in 0..load.pirates {
            let (pirate, _) = PirateActor::spawn(None, PirateActor, muster.clone()).await?;
            crew.push(pirate);
        }
        let mut fsm = Fsm::new(load);
        for (name, pirate) in (0..).zip(&crew) {
            for message in fsm.messages(name, &crew, me.clone()) {
                pirate.cast(Mail(message))?;
            }
        }
        Ok(FsmState { fsm, crew, done })
    }

    async fn handle(
        &self,
        me: ActorRef<Reply>,
        Reply(answer): Reply,
        state: &mut FsmState,
    ) -> Result<(), ActorProcessingErr> {
        match state.fsm.on(answer) {
            Next::Wait => {}
            Next::SayGoodbye => {
                for pirate in &state.crew {
                    pirate.cast(Mail(Message::Goodbye))?;
                }
            }
            Next::Exit => {
                state.done.send(state.fsm.finish())?;
                me.stop(None);
            }
        }
        Ok(())
    }
}
