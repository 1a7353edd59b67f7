//! A token ring: the holder of the token keeps it for a while and passes it on. According to theory, a round takes as
//! long as all transfers and all holding times together, and every node has the token equally often.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::{
    Actor, Addr, AsyncContext, Config, Context, Distribution, Estimate, Event, Experiment, Flow,
    Latency, Message, ReplicationError, Spawn, Token, replicate,
};
use std::time::Duration;

const STATIONS: u32 = 50;
const ROUNDS: u32 = 40;
const WAY: Duration = Duration::from_millis(2);
/// The mean holding time in seconds.
const HOLDING: f64 = 0.003;

#[derive(Clone, Copy, Message)]
enum Msg {
    Ring { next: Addr, root: Addr },
    Token { passed: u32 },
}

struct Station {
    next: Addr,
    root: Addr,
    /// The number of times that the token was passed on; `None` while this node does not have the token.
    token: Option<u32>,
}

impl Actor<Msg> for Station {
    fn on<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &mut C) -> Flow {
        match event {
            Event::Message {
                body: Msg::Ring { next, root },
                ..
            } => {
                (self.next, self.root) = (next, root);
            }
            Event::Message {
                body: Msg::Token { passed },
                ..
            } => {
                assert!(self.token.replace(passed).is_none(), "there is one token");
                let holding = Distribution::exponential(HOLDING).expect("a mean is positive");
                let time = cx.sample_time(&holding);
                cx.timer(time, Token::new(0));
            }
            Event::Timer(_) => {
                let passed = self
                    .token
                    .take()
                    .expect("a timer runs while the token is here")
                    + 1;
                let over = passed == STATIONS * ROUNDS;
                cx.send(
                    if over { self.root } else { self.next },
                    Msg::Token { passed },
                );
            }
            _ => {}
        }
        Flow::Continue
    }
}

/// The root, whose result is the mean time of a round in seconds.
struct TokenRing;

impl Experiment<Msg> for TokenRing {
    type Value = f64;

    async fn root<C: AsyncContext<Msg>>(self, mut cx: C) -> f64 {
        let root = cx.me();
        let station = |_| Station {
            next: Addr::NONE,
            root: Addr::NONE,
            token: None,
        };
        let ring = cx
            .spawn_actors(Spawn::many(STATIONS, "station", ""), station)
            .await;
        for index in 0..STATIONS {
            let next = ring.get((index + 1) % STATIONS);
            cx.send(ring.get(index), Msg::Ring { next, root });
        }
        cx.settle().await;
        let begun = cx.now();
        cx.send(ring.get(0), Msg::Token { passed: 0 });
        cx.recv().await;
        cx.now().since(begun).as_secs_f64() / f64::from(ROUNDS)
    }
}

fn main() -> Result<(), ReplicationError> {
    let config = Config {
        latency: Latency::constant(WAY),
        ..Config::default()
    };
    let runs = replicate(20, &config, |_seed| TokenRing)?;
    let round = Estimate::of(runs.iter().map(|run| run.value));
    // At the end, the token is passed once more, to the root.
    let ways = f64::from(STATIONS) + 1.0 / f64::from(ROUNDS);
    let theory = ways * WAY.as_secs_f64() + f64::from(STATIONS) * HOLDING;
    println!("a round takes {round} s; theory: {theory:.4} s");
    assert!(
        round.interval(0.9999).contains(&theory),
        "{round}, not {theory}"
    );
    Ok(())
}
