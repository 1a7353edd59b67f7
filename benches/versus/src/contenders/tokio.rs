//! tokio without an actor library: each pirate is a task with an mpsc channel.

use super::{Contender, MAILBOX, cores};
use ::tokio::runtime::Builder;
use ::tokio::sync::mpsc;
use versus::{Answer, Fsm, Load, Message, Muster, Next, Pirate, Run};

/// Channels without a bound.
pub struct Unbounded;

/// Channels that hold [`MAILBOX`] messages.
pub struct Bounded;

impl Contender for Unbounded {
    fn name(&self) -> &'static str {
        "tokio-unbounded"
    }

    fn run(&self, load: Load) -> Result<Run, String> {
        run::<Unbounded>(load)
    }
}

impl Contender for Bounded {
    fn name(&self) -> &'static str {
        "tokio-bounded"
    }

    fn run(&self, load: Load) -> Result<Run, String> {
        run::<Bounded>(load)
    }
}

/// The two kinds of channel.
trait Channel: Send + Sync + 'static {
    type Sender<T: Send + 'static>: Clone + Send + Sync + 'static;
    type Receiver<T: Send + 'static>: Send + 'static;

    fn new<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>);
    fn send<T: Send + 'static>(to: &Self::Sender<T>, message: T)
    -> impl Future<Output = ()> + Send;
    fn recv<T: Send + 'static>(
        from: &mut Self::Receiver<T>,
    ) -> impl Future<Output = Option<T>> + Send;
}

impl Channel for Unbounded {
    type Sender<T: Send + 'static> = mpsc::UnboundedSender<T>;
    type Receiver<T: Send + 'static> = mpsc::UnboundedReceiver<T>;

    fn new<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        mpsc::unbounded_channel()
    }

    async fn send<T: Send + 'static>(to: &Self::Sender<T>, message: T) {
        assert!(to.send(message).is_ok(), "receivers live until the Goodbye");
    }

    async fn recv<T: Send + 'static>(from: &mut Self::Receiver<T>) -> Option<T> {
        from.recv().await
    }
}

impl Channel for Bounded {
    type Sender<T: Send + 'static> = mpsc::Sender<T>;
    type Receiver<T: Send + 'static> = mpsc::Receiver<T>;

    fn new<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        mpsc::channel(MAILBOX)
    }

    async fn send<T: Send + 'static>(to: &Self::Sender<T>, message: T) {
        assert!(
            to.send(message).await.is_ok(),
            "receivers live until the Goodbye"
        );
    }

    async fn recv<T: Send + 'static>(from: &mut Self::Receiver<T>) -> Option<T> {
        from.recv().await
    }
}

type ToFsm<C> = <C as Channel>::Sender<Answer>;
type Mail<C> = Message<Address<C>, ToFsm<C>>;

/// The address of a pirate. It is a separate type because the types of messages and addresses refer
/// to each other.
struct Address<C: Channel>(C::Sender<Mail<C>>);

impl<C: Channel> Clone for Address<C> {
    fn clone(&self) -> Self {
        Address(self.0.clone())
    }
}

fn run<C: Channel>(load: Load) -> Result<Run, String> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(cores())
        .build()
        .map_err(|error| format!("cannot start tokio's threads: {error}"))?;
    runtime
        .block_on(async { ::tokio::spawn(fsm::<C>(load)).await })
        .map_err(|error| format!("the FSM's task failed: {error}"))
}

async fn fsm<C: Channel>(load: Load) -> Run {
    let (me, mut answers) = C::new::<Answer>();
    let muster = Muster::of(load.pirates);
    let crew: Vec<_> = (0..load.pirates)
        .map(|_| {
            let (address, mailbox) = C::new::<Mail<C>>();
            ::tokio::spawn(pirate::<C>(Pirate::new(muster.clone()), mailbox));
            Address::<C>(address)
        })
        .collect();

    let mut fsm = Fsm::new(load);
    for (name, pirate) in (0..).zip(&crew) {
        for message in fsm.messages(name, &crew, me.clone()) {
            C::send(&pirate.0, message).await;
        }
    }
    while let Some(answer) = C::recv(&mut answers).await {
        match fsm.on(answer) {
            Next::Wait => {}
            Next::SayGoodbye => {
                for pirate in &crew {
                    C::send(&pirate.0, Message::Goodbye).await;
                }
            }
            Next::Exit => break,
        }
    }
    fsm.finish()
}

async fn pirate<C: Channel>(
    mut pirate: Pirate<Address<C>, ToFsm<C>>,
    mut mailbox: C::Receiver<Mail<C>>,
) {
    while let Some(message) = C::recv(&mut mailbox).await {
        if let Some((fsm, answer)) = pirate.on(message) {
            C::send(fsm, answer).await;
            if matches!(answer, Answer::Goodbye(_)) {
                return;
            }
        }
    }
}
