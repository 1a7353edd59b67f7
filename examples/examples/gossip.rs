//! A rumour: in each round, every person who knows it tells one other person, chosen at random. Theory (Pittel, "On
//! spreading a rumor", 1987): all n people know it after about log2 n + ln n rounds.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::{
    Actor, Addr, AsyncContext, Config, Context, Estimate, Event, Experiment, Flow, Message,
    ReplicationError, Spawn, Token, replicate,
};
use std::time::Duration;

const PEOPLE: u32 = 1_000;
/// The length of a round, which is longer than the latency of a message.
const ROUND: Duration = Duration::from_millis(10);

#[derive(Message)]
enum Msg {
    Rumour {
        first: Addr,
        root: Addr,
    },
    /// Reports that the sender knows the rumour.
    Known,
}

struct Person {
    knows: Option<(Addr, Addr)>,
}

impl Actor<Msg> for Person {
    fn on<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &mut C) -> Flow {
        match (event, self.knows) {
            (
                Event::Message {
                    body: Msg::Rumour { first, root },
                    ..
                },
                None,
            ) => {
                self.knows = Some((first, root));
                cx.send(root, Msg::Known);
                // Rounds begin at the same time for all people: at multiples of their length.
                let into = cx.now().as_nanos() % ROUND.as_nanos() as u64;
                cx.timer(ROUND - Duration::from_nanos(into), Token::new(0));
            }
            (Event::Timer(_), Some((first, root))) => {
                let other = (cx.me().as_u32() - first.as_u32() + 1 + cx.below(PEOPLE - 1)) % PEOPLE;
                let other = Addr::from_u32(first.as_u32() + other);
                cx.send(other, Msg::Rumour { first, root });
                cx.timer(ROUND, Token::new(0));
            }
            _ => {}
        }
        Flow::Continue
    }
}

/// The root, whose result is the number of rounds until all people know the rumour.
struct Rumour;

impl Experiment<Msg> for Rumour {
    type Value = f64;

    async fn root<C: AsyncContext<Msg>>(self, mut cx: C) -> f64 {
        let people = cx
            .spawn_actors(Spawn::many(PEOPLE, "person", ""), |_| Person {
                knows: None,
            })
            .await;
        let (first, root) = (people.get(0), cx.me());
        cx.send(first, Msg::Rumour { first, root });
        for _ in 0..PEOPLE {
            cx.recv().await;
        }
        // A rumour that is sent at the start of a round arrives in this round.
        (cx.now().as_nanos() / ROUND.as_nanos() as u64) as f64
    }
}

fn main() -> Result<(), ReplicationError> {
    let runs = replicate(40, &Config::default(), |_seed| Rumour)?;
    let rounds = Estimate::of(runs.iter().map(|run| run.value));
    let people = f64::from(PEOPLE);
    let theory = people.log2() + people.ln();
    println!("{rounds} rounds; theory: {theory:.1} and a little");
    // The theorem gives the number of rounds only up to a bounded error.
    assert!((rounds.mean() - theory).abs() < 2.0, "{rounds}");
    Ok(())
}
