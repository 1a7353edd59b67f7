//! On the wall-clock executors a panic ends only the actor that panicked. The parent of the actor is notified. In this
//! example the parent spawns a new actor.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::{
    AsyncContext, Config, Event, Executor, Message, Reason, RunError, Scenario, Spawn, run,
};

#[derive(Message)]
enum Msg {
    /// Orders the gunner to fire this cannon.
    Fire {
        cannon: u64,
    },
    Boom,
}

async fn gunner<C: AsyncContext<Msg>>(mut cx: C, _: u32) {
    loop {
        if let Event::Message {
            from,
            body: Msg::Fire { cannon },
        } = cx.recv().await
        {
            assert!(cannon != 3, "cannon 3 has burst");
            cx.send(from, Msg::Boom);
        }
    }
}

/// The root, which has every cannon fired, even if gunners fail.
struct MasterGunner;

impl Scenario<Msg> for MasterGunner {
    async fn root<C: AsyncContext<Msg>>(self, mut cx: C) {
        let mut gunner_now = cx.spawn(Spawn::many(1, "gunner", ""), gunner).await.get(0);
        let mut booms = 0;
        for cannon in 1..=5 {
            cx.send(gunner_now, Msg::Fire { cannon });
            match cx.recv().await {
                Event::Message {
                    body: Msg::Boom, ..
                } => booms += 1,
                Event::Down {
                    who,
                    reason: Reason::Panicked,
                } => {
                    println!("{who} panicked at cannon {cannon}; the next gunner takes over");
                    gunner_now = cx
                        .spawn(Spawn::many(1, "spare gunner", ""), gunner)
                        .await
                        .get(0);
                }
                other => println!("cannon {cannon}: {}", name(&other)),
            }
        }
        println!("{booms} of 5 cannons have fired");
        assert_eq!(booms, 4);
    }
}

fn name(event: &Event<Msg>) -> &'static str {
    match event {
        Event::Message { body, .. } => Msg::KINDS[body.kind()],
        _ => "something else",
    }
}

fn main() -> Result<(), RunError> {
    let report = run(Executor::Tokio, &Config::default(), MasterGunner)?;
    for panic in &report.panics {
        println!("reported: {panic}");
    }
    assert_eq!(report.panics.len(), 1);
    Ok(())
}
