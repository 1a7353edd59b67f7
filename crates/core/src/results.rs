//! Results that actors add at the end of a run.

use crate::contract::{Addr, Context, Message};
use crate::sync::lock;
use std::fmt;
use std::sync::{Arc, Mutex};

/// A collection of results, which actors add in [`Actor::finish`](crate::Actor::finish). The results are in the order
/// of the actors' addresses, not in the order of their ends. Clones share the results.
///
/// ```
/// use corsair::*;
///
/// #[derive(Message)]
/// struct Coin;
///
/// struct Purse { coins: u32, results: Results<u32> }
///
/// impl Actor<Coin> for Purse {
///     fn on<C: Context<Coin>>(&mut self, _: Event<Coin>, cx: &mut C) -> Flow {
///         self.coins += 1;
///         cx.count("coins", 1);
///         Flow::Continue
///     }
///
///     fn finish<C: Context<Coin>>(&mut self, cx: &mut C) {
///         self.results.hand_in(cx, self.coins);
///     }
/// }
///
/// struct Root(Results<u32>);
///
/// impl Scenario<Coin> for Root {
///     async fn root<C: AsyncContext<Coin>>(self, mut cx: C) {
///         let results = self.0;
///         let purses = cx.spawn_actors(Spawn::many(3, "purse", ""), move |_| Purse {
///             coins: 0,
///             results: results.clone(),
///         }).await;
///         for number in 0..6 {
///             cx.send(purses.get(number % 4 % 3), Coin);
///         }
///         cx.settle().await;
///     }
/// }
///
/// for executor in [Executor::Virtual, Executor::Tokio] {
///     let results = Results::new();
///     let report = run(executor, &Config::default(), Root(results.clone()))?;
///     let coins: Vec<u32> = results.take().into_iter().map(|(_, coins)| coins).collect();
///     assert_eq!(coins, [3, 2, 1]);
///     assert_eq!(report.probes.counter("coins"), 6);
/// }
/// # Ok::<(), RunError>(())
/// ```
pub struct Results<T>(Arc<Mutex<Vec<(Addr, T)>>>);

impl<T> Results<T> {
    /// Creates an empty collection.
    pub fn new() -> Results<T> {
        Results(Arc::default())
    }

    /// Adds a result of the actor that has this context.
    pub fn hand_in<M: Message>(&self, cx: &impl Context<M>, result: T) {
        lock(&self.0).push((cx.me(), result));
    }

    /// Takes all results, in the order of addresses; several results of an actor are in the order in which they were
    /// added.
    pub fn take(&self) -> Vec<(Addr, T)> {
        let mut results = std::mem::take(&mut *lock(&self.0));
        results.sort_by_key(|(who, _)| *who);
        results
    }
}

impl<T> Default for Results<T> {
    fn default() -> Self {
        Results::new()
    }
}

impl<T> Clone for Results<T> {
    fn clone(&self) -> Self {
        Results(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Results<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results")
            .field("results", &lock(&self.0).len())
            .finish()
    }
}
