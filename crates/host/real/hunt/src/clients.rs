//! Clients of the cluster, as actors.

use corsair_courier_load::histories::{Client, Environment, History};
use corsair_host::{Net, Sim, Stream};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of clients of a conversation.
const SIZE: u64 = 3;

/// The virtual time and the simulated network.
#[derive(Clone)]
struct Virtual(Net);

impl Environment for Virtual {
    type Stream = Stream;

    fn now(&self) -> u64 {
        self.0.now().as_nanos()
    }

    async fn sleep(&self, duration: Duration) {
        self.0.sleep(duration).await;
    }

    async fn timeout<T: Send>(
        &self,
        duration: Duration,
        future: impl Future<Output = T> + Send,
    ) -> Option<T> {
        self.0.timeout(duration, future).await
    }

    async fn connect(&self, host: &str) -> io::Result<Stream> {
        self.0.connect(host).await
    }
}

/// The clients of one conversation, with their history.
#[derive(Clone)]
pub struct Group {
    pub number: u64,
    histories: Arc<Vec<Mutex<History>>>,
}

impl Group {
    pub fn all(count: u64) -> Vec<Group> {
        let group = |number| Group {
            number,
            histories: Arc::new((0..SIZE).map(|_| Mutex::default()).collect()),
        };
        (0..count).map(group).collect()
    }

    fn lock(&self, client: usize) -> MutexGuard<'_, History> {
        let history = &self.histories[client];
        history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the operations of all clients.
    pub fn history(&self) -> History {
        let each = (0..self.histories.len()).map(|client| self.lock(client).clone());
        each.flatten().collect()
    }

    /// True if a request was sent and answered after this time.
    pub fn is_answered_after(&self, time: Duration) -> bool {
        let time = time.as_nanos() as u64;
        let history = self.history();
        let mut all = history.iter();
        all.any(|operation| operation.call >= time && operation.completion.is_some())
    }
}

/// Adds a host with the clients of a conversation.
pub fn add(sim: &mut Sim, group: &Group, hosts: &[String], end: Duration) {
    let (group, hosts) = (group.clone(), hosts.to_vec());
    let name = format!("clients-{}", group.number);
    sim.actor(name, move |net| {
        let (group, hosts) = (group.clone(), hosts.clone());
        async move {
            let environment = Virtual(net.clone());
            let end = end.as_nanos() as u64;
            let clients = Client::group(&environment, &hosts, group.number, SIZE).await;
            for (index, client) in clients.into_iter().enumerate() {
                let (own, group) = (net.clone(), group.clone());
                net.spawn(async move {
                    let is_over = || own.now().as_nanos() >= end;
                    client
                        .run(is_over, |operation| group.lock(index).push(operation))
                        .await;
                });
            }
            loop {
                net.sleep(Duration::from_secs(60)).await;
            }
            #[allow(unreachable_code, reason = "names the type of the output")]
            Ok::<(), io::Error>(())
        }
    });
}
