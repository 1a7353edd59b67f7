//! A captain hails a crew: the same source code in virtual time, on tokio and on OS threads.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::{AsyncContext, Config, Event, Executor, Message, RunError, Scenario, Spawn, run};

#[derive(Message)]
struct Ahoy(u32);

async fn sailor<C: AsyncContext<Ahoy>>(mut cx: C, number: u32) {
    while let Event::Message { from, .. } = cx.recv().await {
        cx.sleep(std::time::Duration::from_millis(10)).await;
        cx.send(from, Ahoy(number));
    }
}

struct Captain;
impl Scenario<Ahoy> for Captain {
    async fn root<C: AsyncContext<Ahoy>>(self, mut cx: C) {
        for sailor in cx.spawn(Spawn::many(3, "sailor", ""), sailor).await.iter() {
            cx.send(sailor, Ahoy(0));
            cx.recv().await;
            println!("  {sailor} answers at {}", cx.now());
        }
    }
}

fn main() -> Result<(), RunError> {
    for executor in [Executor::Virtual, Executor::Tokio, Executor::Threads] {
        let report = run(executor, &Config::default(), Captain)?;
        println!("{executor:?}: {} messages", report.delivered());
    }
    Ok(())
}
