//! Supervisors, whose children are restarted together: one child, all of them, or those started later.

use super::{FinalAction, RestartPolicy, Restarts};
use crate::contract::{Addr, AsyncContext, Event, Flow, Message, Reason, Spawn, WaitReason};
use crate::sync::lock;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

/// The strategy of a restart: which children are restarted when one of them panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Only the child that panicked is restarted. For children that do not depend on each other.
    #[default]
    OneForOne,
    /// All children are restarted: the other children are stopped, in reverse order of their start, and then all are
    /// started again.
    OneForAll,
    /// The child that panicked and the children started after it are restarted. For children that depend on earlier
    /// ones.
    RestForOne,
}

/// The events that a [`Supervisor`] passes to its code.
#[derive(Debug, PartialEq)]
pub enum Supervised<M> {
    /// All children have been started or restarted; messages sent from now on reach them.
    Started,
    /// An event that does not concern the supervisor itself.
    Event(Event<M>),
}

type Body = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Child<C> {
    name: Cow<'static, str>,
    make: Arc<dyn Fn(C) -> Body + Send + Sync>,
}

/// An actor that starts children and restarts them after a panic, in its own body, on every executor.
///
/// A child that returns has done its work and is not restarted. A restarted child is a new actor with a new address,
/// which the supervisor's code receives; use [`restarting`](crate::restarting) to keep the address. In virtual time, a
/// panic must end only its actor: set [`Panics::EndActor`](crate::Panics::EndActor).
///
/// ```
/// use corsair::*;
///
/// #[derive(Message)]
/// enum Msg { Work(u32), Backends([Addr; 2]) }
///
/// async fn backend<C: AsyncContext<Msg>>(mut cx: C) {
///     loop {
///         if let Event::Message { from, body: Msg::Work(number) } = cx.recv().await {
///             assert!(number != 2, "cannot do 2");
///             cx.send(from, Msg::Work(number));
///         }
///     }
/// }
///
/// async fn supervise<C: AsyncContext<Msg>>(cx: C) {
///     Supervisor::new(Strategy::OneForAll, RestartPolicy::default())
///         .child("store", backend)
///         .child("cache", backend)
///         .run(cx, |cx, children, what| {
///             if what == Supervised::Started {
///                 let parent = cx.parent();
///                 cx.send(parent, Msg::Backends([children[0], children[1]]));
///             }
///             Flow::Continue
///         })
///         .await;
/// }
///
/// # impl PartialEq for Msg { fn eq(&self, _: &Msg) -> bool { false } }
/// struct Root;
///
/// impl Scenario<Msg> for Root {
///     async fn root<C: AsyncContext<Msg>>(self, mut cx: C) {
///         cx.spawn_one("supervisor", supervise).await;
///         let mut generations = Vec::new();
///         while generations.len() < 2 {
///             if let Event::Message { body: Msg::Backends(all), .. } = cx.recv().await {
///                 cx.send(all[0], Msg::Work(2)); // it panics, and both are started again
///                 generations.push(all);
///             }
///         }
///         assert!(generations[0].iter().all(|old| !generations[1].contains(old)));
///     }
/// }
///
/// let config = Config { panics: Panics::EndActor, ..Config::default() };
/// simulate(&config, Root)?;
/// # Ok::<(), RunError>(())
/// ```
pub struct Supervisor<C> {
    strategy: Strategy,
    policy: RestartPolicy,
    children: Vec<Child<C>>,
}

/// The state of a supervised child.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// The child has returned.
    Done,
    /// The child must be started.
    Down,
}

/// The state that a supervisor shares with a child whose address it does not know yet.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Start {
    #[default]
    AskedFor,
    /// The child has begun.
    Begun(Addr),
    /// The supervisor has ended, so the child ends, too.
    GivenUp,
}

/// The children of a running supervisor. They are stopped when this value is dropped, because the supervisor was
/// stopped or has panicked.
struct Children<M: Message, C: AsyncContext<M>> {
    cx: C,
    addresses: Vec<Addr>,
    states: Vec<State>,
    /// The shared state of the child that is being started.
    starting: Option<Arc<Mutex<Start>>>,
    _message: PhantomData<fn() -> M>,
}

impl<M: Message, C: AsyncContext<M>> Drop for Children<M, C> {
    fn drop(&mut self) {
        let given_up =
            |start: Arc<Mutex<Start>>| std::mem::replace(&mut *lock(&start), Start::GivenUp);
        if let Some(Start::Begun(who)) = self.starting.take().map(given_up) {
            self.cx.stop(who);
        }
        for (&who, state) in self.addresses.iter().zip(&self.states).rev() {
            if *state == State::Running {
                self.cx.stop(who);
            }
        }
    }
}

impl<C> Supervisor<C> {
    /// Creates a supervisor without children.
    ///
    /// The policy counts the restarts of all children together; restarts after one panic count as one. After
    /// too many, all children are stopped, and the supervisor panics or returns, depending on the policy's
    /// [`FinalAction`].
    pub fn new(strategy: Strategy, policy: RestartPolicy) -> Supervisor<C> {
        Supervisor {
            strategy,
            policy,
            children: Vec::new(),
        }
    }

    /// Adds a child, which is started after the children added before it.
    #[must_use]
    pub fn child<B>(
        mut self,
        name: impl Into<Cow<'static, str>>,
        make: impl Fn(C) -> B + Send + Sync + 'static,
    ) -> Supervisor<C>
    where
        B: Future<Output = ()> + Send + 'static,
    {
        self.children.push(Child {
            name: name.into(),
            make: Arc::new(move |cx| Box::pin(make(cx))),
        });
        self
    }

    /// Supervises the children until every child has returned, or `code` returns [`Flow::Stop`]. When this method
    /// returns, no child is running. If the supervisor is stopped, or `code` panics, its children are stopped as well.
    ///
    /// A child's code begins later than the child itself, by the smallest latency.
    ///
    /// `code` is called for each start, and for every event that does not concern the supervisor itself, with
    /// the children's addresses in the order in which they were added. Messages to the address of an ended
    /// child are dead letters.
    ///
    /// # Panics
    /// If there were too many restarts and the policy is [`FinalAction::Escalate`].
    pub async fn run<M: Message>(
        self,
        cx: C,
        mut code: impl FnMut(&mut C, &[Addr], Supervised<M>) -> Flow + Send,
    ) where
        C: AsyncContext<M>,
    {
        let count = self.children.len();
        let mut children = Children {
            cx,
            addresses: vec![Addr::NONE; count],
            states: vec![State::Down; count],
            starting: None,
            _message: PhantomData,
        };
        let mut restarts = Restarts::new(self.policy);
        self.start(&mut children).await;
        let mut flow = children.report(&mut code, Supervised::Started);
        while flow == Flow::Continue && children.states.contains(&State::Running) {
            let event = children.cx.recv().await;
            let Some((child, reason)) = children.ended(&event) else {
                flow = children.report(&mut code, Supervised::Event(event));
                continue;
            };
            children.states[child] = State::Done;
            if reason != Reason::Panicked {
                continue;
            }
            let Some(rest) = restarts.next(children.cx.now()) else {
                let name = self.children[child].name.clone();
                children.stop(0).await;
                match self.policy.on_exhausted {
                    FinalAction::Escalate => panic!(
                        "{name} and its siblings were restarted {} times within {:?}, and {name} has panicked again",
                        self.policy.max_restarts, self.policy.within
                    ),
                    FinalAction::GiveUp => return,
                }
            };
            children.states[child] = State::Down;
            match self.strategy {
                Strategy::OneForOne => {}
                Strategy::OneForAll => children.stop(0).await,
                Strategy::RestForOne => children.stop(child + 1).await,
            }
            if !rest.is_zero() {
                children.cx.sleep(rest).await;
            }
            self.start(&mut children).await;
            flow = children.report(&mut code, Supervised::Started);
        }
        children.stop(0).await;
    }

    /// Starts the children that are down, one after the other.
    async fn start<M: Message>(&self, children: &mut Children<M, C>)
    where
        C: AsyncContext<M>,
    {
        for (index, child) in self.children.iter().enumerate() {
            if children.states[index] == State::Down {
                let start = Arc::<Mutex<Start>>::default();
                children.starting = Some(start.clone());
                let make = Arc::clone(&child.make);
                let how = Spawn::one(child.name.clone()).watched();
                let begin = move |cx, _| begin(cx, start.clone(), make.clone());
                children.addresses[index] = children.cx.spawn(how, begin).await.get(0);
                children.states[index] = State::Running;
                children.starting = None;
            }
        }
    }
}

/// The body of a child. It returns at once if its supervisor ended before it learned the child's address.
///
/// The child checks for this after the smallest latency, and so in a later window than its start. Then the result is
/// equal for any number of workers.
async fn begin<M: Message, C: AsyncContext<M>>(
    mut cx: C,
    start: Arc<Mutex<Start>>,
    make: Arc<dyn Fn(C) -> Body + Send + Sync>,
) {
    cx.yield_now().await;
    let asked_for = {
        let mut start = lock(&start);
        let asked_for = *start == Start::AskedFor;
        if asked_for {
            *start = Start::Begun(cx.me());
        }
        asked_for
    };
    if asked_for {
        make(cx).await;
    }
}

impl<M: Message, C: AsyncContext<M>> Children<M, C> {
    fn report(
        &mut self,
        code: &mut impl FnMut(&mut C, &[Addr], Supervised<M>) -> Flow,
        what: Supervised<M>,
    ) -> Flow {
        code(&mut self.cx, &self.addresses, what)
    }

    /// Returns the child that has ended, if the event reports the end of one.
    fn ended(&self, event: &Event<M>) -> Option<(usize, Reason)> {
        let Event::Down { who, reason } = event else {
            return None;
        };
        let mut addresses = self.addresses.iter();
        let child = addresses.position(|address| address == who);
        child
            .filter(|&child| self.states[child] == State::Running)
            .map(|child| (child, *reason))
    }

    /// Stops the running children from `first` on, the last one first, and waits for the end of each.
    async fn stop(&mut self, first: usize) {
        for child in (first..self.addresses.len()).rev() {
            if self.states[child] != State::Running {
                continue;
            }
            let who = self.addresses[child];
            self.cx.stop(who);
            let ended = move |event: &Event<M>| matches!(event, Event::Down { who: ended, .. } if *ended == who);
            let why = WaitReason::Selected(Location::caller());
            self.cx.recv_where(why, move |event, _| ended(event)).await;
            self.states[child] = State::Down;
        }
    }
}

impl<C> fmt::Debug for Supervisor<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.children.iter().map(|child| &child.name).collect();
        f.debug_struct("Supervisor")
            .field("strategy", &self.strategy)
            .field("policy", &self.policy)
            .field("children", &names)
            .finish()
    }
}
