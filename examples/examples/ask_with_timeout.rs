//! Requests with a time-out: an answer in time, a late answer, and an actor that has ended.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::{AskError, AsyncContext, Config, Event, Executor, Message, RunError, Scenario, run};
use std::time::Duration;

#[derive(Message)]
enum Msg {
    /// Asks for the depth of the water. The number is the duration of the measurement in milliseconds.
    Depth {
        takes_ms: u64,
    },
    Fathoms(u64),
}

/// Measures the depth on request.
async fn leadsman<C: AsyncContext<Msg>>(mut cx: C) {
    loop {
        if let Event::Message {
            body: Msg::Depth { takes_ms },
            ..
        } = cx.recv().await
        {
            let request = cx.envelope().reply_handle();
            cx.sleep(Duration::from_millis(takes_ms)).await;
            cx.reply(request, Msg::Fathoms(takes_ms / 10));
        }
    }
}

struct Pilot;

impl Scenario<Msg> for Pilot {
    async fn root<C: AsyncContext<Msg>>(self, mut cx: C) {
        let patience = Duration::from_millis(100);
        let leadsman = cx.spawn_one("leadsman", leadsman).await;

        let in_time = cx
            .ask(leadsman, Msg::Depth { takes_ms: 50 }, patience)
            .await;
        println!("{} {}", cx.now(), told(&in_time));
        assert!(in_time.is_ok());

        let late = cx
            .ask(leadsman, Msg::Depth { takes_ms: 500 }, patience)
            .await;
        println!("{} {}", cx.now(), told(&late));
        assert!(matches!(late, Err(AskError::TimedOut { .. })));

        // The late answer is not lost: it arrives as an ordinary message.
        if let Event::Message { body, .. } = cx.recv().await {
            println!("{} {}, late", cx.now(), told(&Ok(body)));
        }

        cx.stop(leadsman);
        let nobody = cx
            .ask(leadsman, Msg::Depth { takes_ms: 50 }, patience)
            .await;
        println!("{} {}", cx.now(), told(&nobody));
        assert!(matches!(nobody, Err(AskError::Ended { .. })));
    }
}

fn told(answer: &Result<Msg, AskError>) -> String {
    match answer {
        Ok(Msg::Fathoms(fathoms)) => format!("{fathoms} fathoms"),
        Ok(other) => Msg::KINDS[other.kind()].to_owned(),
        Err(error) => error.to_string(),
    }
}

fn main() -> Result<(), RunError> {
    let report = run(Executor::Virtual, &Config::default(), Pilot)?;
    println!("{} of virtual time in {:?}", report.time, report.wall);
    Ok(())
}
