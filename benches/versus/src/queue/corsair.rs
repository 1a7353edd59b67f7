//! corsair: two handlers in virtual time. Every message has the same latency, which does not count as waiting, so the
//! intervals between arrivals equal the intervals at which customers leave the source.

use super::{Server, ServiceTotals, Source};
use ::corsair::{
    Actor, Addr, AsyncContext, Config, Context, Event, Flow, Latency, Message, Scenario, Spawn,
    Token, simulate,
};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[derive(Message)]
enum Note {
    Customer,
    Closed,
}

const TIMER: Token = Token::new(0);

impl Source {
    fn wait<C: Context<Note>>(&mut self, cx: &mut C) -> Flow {
        match self.next() {
            Some(pause) => {
                cx.timer(pause, TIMER);
                Flow::Continue
            }
            None => Flow::Stop,
        }
    }
}

struct Door {
    source: Source,
    server: Addr,
}

impl Actor<Note> for Door {
    fn start<C: Context<Note>>(&mut self, cx: &mut C) {
        self.source.wait(cx);
    }

    fn on<C: Context<Note>>(&mut self, _: Event<Note>, cx: &mut C) -> Flow {
        cx.send(self.server, Note::Customer);
        self.source.wait(cx)
    }
}

struct Desk {
    server: Server,
    customers: u32,
    result: Arc<Mutex<ServiceTotals>>,
}

impl Actor<Note> for Desk {
    fn on<C: Context<Note>>(&mut self, event: Event<Note>, cx: &mut C) -> Flow {
        let now = cx.now().as_nanos();
        let service = match event {
            Event::Message { .. } => self.server.arrive(now),
            _ => self.server.done(now),
        };
        if let Some(service) = service {
            cx.timer(service, TIMER);
        }
        if self.server.totals.customers < self.customers {
            return Flow::Continue;
        }
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = self.server.totals;
        let root = cx.parent();
        cx.send(root, Note::Closed);
        Flow::Stop
    }
}

struct Queue {
    customers: u32,
    result: Arc<Mutex<ServiceTotals>>,
}

impl Scenario<Note> for Queue {
    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        let Queue { customers, result } = self;
        let desk = move |_| Desk {
            server: Server::new(),
            customers,
            result: Arc::clone(&result),
        };
        let server = cx.spawn_actors(Spawn::one("desk"), desk).await.get(0);
        let door = move |_| Door {
            source: Source::new(customers),
            server,
        };
        cx.spawn_actors(Spawn::one("door"), door).await;
        while !matches!(
            cx.recv().await,
            Event::Message {
                body: Note::Closed,
                ..
            }
        ) {}
    }
}

/// Simulates `customers` customers.
///
/// # Errors
/// The reason why the run failed.
pub fn run(customers: u32, workers: usize, latency: Duration) -> Result<ServiceTotals, String> {
    let result = Arc::new(Mutex::new(ServiceTotals::default()));
    let config = Config {
        workers: NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN),
        latency: Latency::constant(latency),
        traces: false,
        ..Config::default()
    };
    let queue = Queue {
        customers,
        result: Arc::clone(&result),
    };
    simulate(&config, queue).map_err(|error| error.to_string())?;
    let totals = *result.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(totals)
}
