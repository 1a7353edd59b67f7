//! Children that are restarted by their parent: one, all, or the rest of them.

use super::{RestartPolicy, Restarts, Then};
use crate::contract::{Addr, AsyncContext, Event, Flow, Message, Reason, Spawn, Waiting};
use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

/// Which children are restarted when one of them panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Strategy {
    /// That one: the children do not depend on each other.
    #[default]
    OneForOne,
    /// All: the others are stopped, in the reverse order of their start, and all are started anew.
    OneForAll,
    /// That one and those that were started after it, which depend on it.
    RestForOne,
}

/// What a [`Supervisor`] tells the code that it is run with.
#[derive(Debug, PartialEq)]
pub enum Supervised<M> {
    /// All children have been started, or started anew; what they are given now reaches them.
    Started,
    /// An event that is none of the supervisor's own.
    Event(Event<M>),
}

type Body = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Child<C> {
    name: Cow<'static, str>,
    make: Arc<dyn Fn(C) -> Body + Send + Sync>,
}

/// An actor that starts children and restarts them after a panic, in its own body. On every executor.
///
/// A child that returns has done its work and is not restarted. A restarted child is a new actor with
/// a new address, of which the supervisor's code is told; [`restarting`](crate::restarting) keeps the address of
/// an actor that others need not follow. In virtual time, let a panic end its actor only:
/// [`Panics::EndActor`](crate::Panics::EndActor).
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
///                 cx.send(all[0], Msg::Work(2)); // it panics, and both are started anew
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

/// A child while it is supervised.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// It has returned.
    Done,
    /// It is to be started.
    Down,
}

impl<C> Supervisor<C> {
    /// Without children yet.
    ///
    /// The policy counts the restarts of all children together; those of one panic are one. After
    /// too many, all children are stopped, and the supervisor panics or returns, as the policy's
    /// [`Then`] says.
    pub fn new(strategy: Strategy, policy: RestartPolicy) -> Supervisor<C> {
        Supervisor {
            strategy,
            policy,
            children: Vec::new(),
        }
    }

    /// One more child, started after those before.
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

    /// Supervises until every child has returned, or `code` says [`Flow::Stop`]. When it returns, no child
    /// is left.
    ///
    /// `code` is told of each start, and is given every event that is none of the supervisor's, with the
    /// children's addresses in the order in which they were added: that of one which has ended leads
    /// nowhere.
    ///
    /// # Panics
    /// If there were too many restarts and the policy says [`Then::Escalate`].
    pub async fn run<M: Message>(
        self,
        mut cx: C,
        mut code: impl FnMut(&mut C, &[Addr], Supervised<M>) -> Flow + Send,
    ) where
        C: AsyncContext<M>,
    {
        let count = self.children.len();
        let mut addresses = vec![Addr::NONE; count];
        let mut states = vec![State::Down; count];
        let mut restarts = Restarts::new(self.policy);
        self.start(&mut cx, &mut addresses, &mut states).await;
        let mut flow = code(&mut cx, &addresses, Supervised::Started);
        while flow == Flow::Continue && states.contains(&State::Running) {
            let event = cx.recv().await;
            let child = match &event {
                Event::Down { who, reason } => addresses
                    .iter()
                    .position(|address| address == who)
                    .filter(|&child| states[child] == State::Running)
                    .map(|child| (child, *reason)),
                _ => None,
            };
            let Some((child, reason)) = child else {
                flow = code(&mut cx, &addresses, Supervised::Event(event));
                continue;
            };
            states[child] = State::Done;
            if reason != Reason::Panicked {
                continue;
            }
            let Some(rest) = restarts.next(cx.now()) else {
                let name = self.children[child].name.clone();
                stop(&mut cx, &addresses, &mut states, 0).await;
                match self.policy.then {
                    Then::Escalate => panic!(
                        "{name} and its siblings were restarted {} times within {:?}, and {name} has panicked again",
                        self.policy.most, self.policy.within
                    ),
                    Then::GiveUp => return,
                }
            };
            states[child] = State::Down;
            match self.strategy {
                Strategy::OneForOne => {}
                Strategy::OneForAll => stop(&mut cx, &addresses, &mut states, 0).await,
                Strategy::RestForOne => stop(&mut cx, &addresses, &mut states, child + 1).await,
            }
            if !rest.is_zero() {
                cx.sleep(rest).await;
            }
            self.start(&mut cx, &mut addresses, &mut states).await;
            flow = code(&mut cx, &addresses, Supervised::Started);
        }
        stop(&mut cx, &addresses, &mut states, 0).await;
    }

    /// Starts those that are down, one after the other.
    async fn start<M: Message>(&self, cx: &mut C, addresses: &mut [Addr], states: &mut [State])
    where
        C: AsyncContext<M>,
    {
        for (index, child) in self.children.iter().enumerate() {
            if states[index] == State::Down {
                let make = Arc::clone(&child.make);
                let how = Spawn::one(child.name.clone()).watched();
                addresses[index] = cx.spawn(how, move |cx, _| make(cx)).await.get(0);
                states[index] = State::Running;
            }
        }
    }
}

/// Stops the children from the `first` on that run, the last one first, and waits for the end of each.
async fn stop<M: Message, C: AsyncContext<M>>(
    cx: &mut C,
    addresses: &[Addr],
    states: &mut [State],
    first: usize,
) {
    for child in (first..addresses.len()).rev() {
        if states[child] != State::Running {
            continue;
        }
        let who = addresses[child];
        cx.stop(who);
        let ended = move |event: &Event<M>| matches!(event, Event::Down { who: ended, .. } if *ended == who);
        let why = Waiting::Selected(std::panic::Location::caller());
        cx.recv_where(why, move |event, _| ended(event)).await;
        states[child] = State::Down;
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
