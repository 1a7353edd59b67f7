//! Selective receive. While a quartermaster serves rum, he asks for the key and waits only for the key. Requests that
//! arrive before the key are stashed. Then he serves them in order.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::{
    Addr, AsyncContext, Config, Event, Executor, Message, RunError, Scenario, Spawn, run,
};
use std::time::Duration;

#[derive(Message)]
enum Msg {
    GiveMeRum,
    Rum,
    WhereIsTheKey,
    Key,
}

/// A sailor, who asks for rum and waits for it.
async fn sailor<C: AsyncContext<Msg>>(mut cx: C, index: u32, quartermaster: Addr) {
    cx.sleep(Duration::from_millis(u64::from(index))).await;
    cx.send(quartermaster, Msg::GiveMeRum);
    cx.recv_if(|event| matches!(event, Event::Message { body: Msg::Rum, .. }))
        .await;
    println!("{} sailor {index} drinks", cx.now());
}

/// The captain, who has the key and takes some time to hand it over.
async fn captain<C: AsyncContext<Msg>>(mut cx: C) {
    let Event::Message {
        from,
        body: Msg::WhereIsTheKey,
    } = cx.recv().await
    else {
        return;
    };
    cx.sleep(Duration::from_millis(50)).await;
    cx.send(from, Msg::Key);
}

/// The root is the quartermaster.
struct Quartermaster;

impl Scenario<Msg> for Quartermaster {
    async fn root<C: AsyncContext<Msg>>(self, mut cx: C) {
        let me = cx.me();
        let captain = cx.spawn_one("captain", captain).await;
        let how = Spawn::many(3, "sailor", "");
        cx.spawn(how, move |cx, index| sailor(cx, index, me)).await;

        let mut locked = true;
        for _ in 0..3 {
            let Event::Message {
                from,
                body: Msg::GiveMeRum,
            } = cx.recv().await
            else {
                continue;
            };
            if locked {
                println!("{} {from} wants rum, and the store is locked", cx.now());
                cx.send(captain, Msg::WhereIsTheKey);
                cx.recv_if(|event| matches!(event, Event::Message { body: Msg::Key, .. }))
                    .await;
                println!("{} the store is open", cx.now());
                locked = false;
            }
            println!("{} rum for {from}", cx.now());
            cx.send(from, Msg::Rum);
        }
        cx.settle().await;
    }
}

fn main() -> Result<(), RunError> {
    let report = run(Executor::Virtual, &Config::default(), Quartermaster)?;
    assert_eq!(report.waiting_total, 0, "everybody went home");
    Ok(())
}
