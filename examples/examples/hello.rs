//! One actor source, three executors: a captain hails a crew in virtual time, on tokio and on OS
//! threads.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::{AsyncContext, Config, Event, Executor, Message, RunError, Scenario, Spawn, run};
use std::time::Duration;

#[derive(Message)]
enum Say {
    Ahoy,
    AyeAye { sailor: u32 },
}

/// A sailor answers every hail, after a while.
async fn sailor<C: AsyncContext<Say>>(mut cx: C, sailor: u32) {
    loop {
        if let Event::Message {
            body: Say::Ahoy, ..
        } = cx.recv().await
        {
            let question = cx.envelope().ticket();
            cx.sleep(Duration::from_millis(10)).await;
            cx.reply(question, Say::AyeAye { sailor });
        }
    }
}

/// The captain, who is the root: when it returns, the run is over.
struct Captain;

impl Scenario<Say> for Captain {
    async fn root<C: AsyncContext<Say>>(self, mut cx: C) {
        let crew = cx.spawn(Spawn::many(3, "sailor", ""), sailor).await;
        for address in crew.iter() {
            match cx.ask(address, Say::Ahoy, Duration::from_secs(1)).await {
                Ok(Say::AyeAye { sailor }) => println!("  {} sailor {sailor} answers", cx.now()),
                Ok(Say::Ahoy) => println!("  {} an echo", cx.now()),
                Err(error) => println!("  {} {error}", cx.now()),
            }
        }
    }
}

fn main() -> Result<(), RunError> {
    for executor in [Executor::Virtual, Executor::Tokio, Executor::Threads] {
        println!("{executor:?}");
        let report = run(executor, &Config::default(), Captain)?;
        println!("  {} messages in {:?}", report.delivered(), report.wall);
        assert_eq!(report.delivered(), 6);
    }
    Ok(())
}
