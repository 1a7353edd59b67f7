//! The two forms of an actor. A handler consists of a state and a function that handles an event. An async body is a
//! script. In this example both forms handle exactly the same events, and the handler is faster.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::{
    Actor, Addr, AsyncContext, Config, Context, Event, Executor, Flow, Message, RunError, Scenario,
    Spawn, run,
};

/// A barrel, with the number of times that it must still be rolled.
#[derive(Message)]
struct Barrel {
    times: u32,
    partner: Addr,
}

/// Rolls a barrel to the partner, or at the end to the root.
fn roll<C: Context<Barrel>>(barrel: Barrel, cx: &mut C) {
    let (times, partner) = (barrel.times.saturating_sub(1), cx.me());
    let to = if barrel.times == 0 {
        cx.parent()
    } else {
        barrel.partner
    };
    cx.send(to, Barrel { times, partner });
}

/// A hand in the handler form.
struct Hand;

impl Actor<Barrel> for Hand {
    fn on<C: Context<Barrel>>(&mut self, event: Event<Barrel>, cx: &mut C) -> Flow {
        if let Event::Message { body, .. } = event {
            roll(body, cx);
        }
        Flow::Continue
    }
}

/// The body of a hand in the async form.
async fn hand<C: AsyncContext<Barrel>>(mut cx: C, _: u32) {
    loop {
        if let Event::Message { body, .. } = cx.recv().await {
            roll(body, &mut cx);
        }
    }
}

struct Crew {
    async_form: bool,
}

impl Scenario<Barrel> for Crew {
    async fn root<C: AsyncContext<Barrel>>(self, mut cx: C) {
        let how = Spawn::many(10_000, "hand", "");
        let crew = match self.async_form {
            true => cx.spawn(how, hand).await,
            false => cx.spawn_actors(how, |_| Hand).await,
        };
        for (i, hand) in crew.iter().enumerate() {
            let partner = crew.get(i as u32 ^ 1);
            cx.send(
                hand,
                Barrel {
                    times: 100,
                    partner,
                },
            );
        }
        for _ in crew.iter() {
            cx.recv().await;
        }
    }
}

fn main() -> Result<(), RunError> {
    let [handler, in_async] = [false, true].map(|async_form| {
        let report = run(Executor::Virtual, &Config::default(), Crew { async_form })?;
        println!(
            "async form {async_form}: {:.1} M messages/s",
            report.rate() / 1e6
        );
        Ok::<_, RunError>(report.digest)
    });
    assert_eq!(handler?, in_async?, "both did the same");
    Ok(())
}
