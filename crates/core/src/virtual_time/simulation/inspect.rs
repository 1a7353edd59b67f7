//! Inspection of a run while it is paused, or after it.

use super::{InspectError, Simulation};
use crate::contract::{Addr, Message, Outcome, Report};
use crate::virtual_time::conclusion::add_up;
use crate::virtual_time::engine::End;
use crate::virtual_time::header::State;
use std::any::type_name;

impl<M: Message> Simulation<M> {
    /// Calls a closure with the state of an actor in [handler form](crate::Actor), also after the run.
    ///
    /// # Errors
    /// If no actor has this address, or its state has another type.
    pub fn inspect<A: 'static, T>(
        &mut self,
        who: Addr,
        look: impl FnOnce(&A) -> T,
    ) -> Result<T, InspectError> {
        let mut shard = self.shard_of(who);
        let seen = shard.look(who).ok_or(InspectError::NoActor { who })?;
        match seen.state {
            State::Fresh => return Err(InspectError::NotBegun { who }),
            State::Ended => return Err(InspectError::Ended { who }),
            State::Live => {}
        }
        match seen.actor.and_then(|actor| actor.downcast_ref()) {
            Some(actor) => Ok(look(actor)),
            None => Err(InspectError::OtherType {
                who,
                is: seen.type_name,
                asked: type_name::<A>(),
            }),
        }
    }

    /// Returns the state of an actor of any type as a value, if [`Actor::state`](crate::Actor::state) provides one;
    /// otherwise `None`.
    ///
    /// ```
    /// # use corsair::*;
    /// # #[derive(Message)] struct Coin;
    /// struct Purse { coins: u32 }
    ///
    /// impl Actor<Coin> for Purse {
    ///     fn on<C: Context<Coin>>(&mut self, _: Event<Coin>, _: &mut C) -> Flow {
    ///         self.coins += 1;
    ///         Flow::Continue
    ///     }
    ///
    ///     fn state(&self) -> Option<serde_json::Value> {
    ///         Some(serde_json::json!({ "coins": self.coins }))
    ///     }
    /// }
    /// # struct Root;
    /// # impl Scenario<Coin> for Root {
    /// #     async fn root<C: AsyncContext<Coin>>(self, mut cx: C) {
    /// #         let purse = cx.spawn_actors(Spawn::one("purse"), |_| Purse { coins: 0 }).await.get(0);
    /// #         cx.send(purse, Coin);
    /// #         cx.sleep(std::time::Duration::from_secs(1)).await;
    /// #     }
    /// # }
    /// let mut simulation = Simulation::new(&Config::default(), Root)?;
    /// simulation.run_until(Time::ZERO.after(std::time::Duration::from_millis(500)));
    /// let purse = simulation.find("purse").expect("it was spawned");
    /// assert_eq!(simulation.inspect_value(purse)?, Some(serde_json::json!({ "coins": 1 })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is no actor with this address.
    #[cfg(feature = "serde")]
    pub fn inspect_value(&mut self, who: Addr) -> Result<Option<serde_json::Value>, InspectError> {
        let mut shard = self.shard_of(who);
        let seen = shard.look(who).ok_or(InspectError::NoActor { who })?;
        match seen.state {
            State::Fresh => Err(InspectError::NotBegun { who }),
            State::Ended => Err(InspectError::Ended { who }),
            State::Live => Ok(seen.actor.and_then(seen.value)),
        }
    }

    /// Starts or stops storing the cause of each message in the message. Without
    /// [`Config::traces`](crate::Config::traces) causes are never stored. Causes do not change the result of the run, and a run without them is faster. A message that is sent
    /// because of a message without a cause begins a new trace.
    pub fn set_traces(&mut self, traces: bool) {
        let traces = traces && self.config.traces;
        for mut shard in self.shards() {
            shard.set_traces(traces);
        }
    }

    /// Returns the number of messages that an actor has sent so far, including spawn requests, even if the actor has
    /// ended. The number is the actor's sequence number, so counting has no cost.
    ///
    /// # Errors
    /// If there is no actor with this address.
    pub fn sent(&mut self, who: Addr) -> Result<u32, InspectError> {
        let mut shard = self.shard_of(who);
        let seen = shard.look(who).ok_or(InspectError::NoActor { who })?;
        Ok(seen.sent)
    }

    /// Returns the actors that have begun and not ended, in the order of their addresses.
    pub fn actors(&mut self) -> Vec<Addr> {
        let mut actors: Vec<_> = self.shards().flat_map(|mut shard| shard.actors()).collect();
        actors.sort_unstable();
        actors
    }

    /// Returns the first of the [live actors](Simulation::actors) with this name.
    pub fn find(&mut self, name: &str) -> Option<Addr> {
        let actors = self.actors();
        actors.into_iter().find(|&who| self.name(who) == name)
    }

    /// Returns the name of an actor, or its address if it has ended or never existed.
    pub fn name(&mut self, who: Addr) -> String {
        self.shard_of(who).name(who)
    }

    /// Returns the report so far. The waits of actors are reported only at the end of the run.
    pub fn report(&mut self) -> Report {
        let end = self.end.unwrap_or(End::Paused);
        let config = &self.config;
        let outcomes: Vec<_> = self
            .shards()
            .map(|mut shard| shard.so_far(config, end))
            .collect();
        let outcome = match end {
            End::Paused => Outcome::Running,
            End::Halted => Outcome::Cancelled,
            _ => Outcome::Completed,
        };
        add_up(M::KINDS, config, self.started.elapsed(), &outcomes, outcome)
    }

    /// Returns the digest of all events so far, which [`Simulation::report`] also contains.
    pub fn digest(&mut self) -> u64 {
        let digests = self.shards().map(|mut shard| shard.digest());
        digests.fold(0, u64::wrapping_add)
    }
}
