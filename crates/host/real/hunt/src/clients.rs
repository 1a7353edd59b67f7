//! Clients of the cluster, as actors.

use corsair_courier_load::histories::{Client, Environment, History};
use corsair_courier_load::listeners::Heard;
use corsair_host::{Net, Sim, Stream};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of clients of a conversation.
const SIZE: u64 = 3;
/// The number of clients of a conversation that also listen.
const LISTENERS: usize = 2;

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
    heard: Arc<Vec<Mutex<Heard>>>,
}

impl Group {
    pub fn all(count: u64) -> Vec<Group> {
        let group = |number| Group {
            number,
            histories: Arc::new((0..SIZE).map(|_| Mutex::default()).collect()),
            heard: Arc::new((0..LISTENERS).map(|_| Mutex::default()).collect()),
        };
        (0..count).map(group).collect()
    }

    /// Returns the operations of all clients.
    pub fn history(&self) -> History {
        let each = self.histories.iter().map(|history| lock(history).clone());
        each.flatten().collect()
    }

    /// Returns the number of messages that all sockets have shown, without repetitions.
    pub fn shown(&self) -> u64 {
        self.heard
            .iter()
            .map(|heard| lock(heard).texts.len() as u64)
            .sum()
    }

    /// Returns how what the sockets have shown contradicts itself or the posts.
    pub fn contradiction(&self) -> Option<String> {
        let all: Vec<Heard> = self.heard.iter().map(|heard| lock(heard).clone()).collect();
        if let Some(wrong) = all.iter().find_map(|heard| heard.wrong.clone()) {
            return Some(wrong);
        }
        let history = self.history();
        let posts = history.iter().filter_map(|operation| {
            let number = operation.completion.as_ref()?.1.count;
            Some((number, operation.input.post?))
        });
        let mut texts: HashMap<u64, u64> = posts.collect();
        for heard in &all {
            for (number, &text) in (1..).zip(&heard.texts) {
                let known = *texts.entry(number).or_insert(text);
                if known != text {
                    return Some(format!(
                        "number {number} is {text:x} at one socket, and was posted or shown as {known:x}"
                    ));
                }
            }
        }
        None
    }

    /// Returns the number of a message that was stored before this time and that a socket has not shown.
    pub fn missing(&self, time: Duration) -> Option<u64> {
        let time = time.as_nanos() as u64;
        let history = self.history();
        let stored = history.iter().filter_map(|operation| {
            let (returned, output) = operation.completion.as_ref()?;
            (*returned < time).then_some(output.count)
        });
        let stored = stored.max().unwrap_or_default();
        let shown = self
            .heard
            .iter()
            .map(|heard| lock(heard).texts.len() as u64);
        shown
            .min()
            .filter(|&shown| shown < stored)
            .map(|shown| shown + 1)
    }

    /// True if a request was sent and answered after this time.
    pub fn is_answered_after(&self, time: Duration) -> bool {
        let time = time.as_nanos() as u64;
        let history = self.history();
        let mut all = history.iter();
        all.any(|operation| operation.call >= time && operation.completion.is_some())
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
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
                if index < LISTENERS {
                    let (own, group, client) = (net.clone(), group.clone(), client.clone());
                    net.spawn(async move {
                        let is_over = || own.now().as_nanos() >= end;
                        let note = |heard: &mut dyn FnMut(&mut Heard)| {
                            heard(&mut lock(&group.heard[index]))
                        };
                        client.listen(is_over, note).await;
                    });
                }
                let (own, group) = (net.clone(), group.clone());
                net.spawn(async move {
                    let is_over = || own.now().as_nanos() >= end;
                    client
                        .run(is_over, |operation| {
                            lock(&group.histories[index]).push(operation)
                        })
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
