//! Measures how users who post to thousands of recipients affect another user.

use crate::client::{ClientError, Http, Login, Socket};
use crate::crowd::Crowd;
use crate::{LoadError, Series, pace};
use corsair_courier::{ConversationId, UserId};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// The number of POSTs of the victim per second.
const RATE: f64 = 50.0;
/// The pause before a refused attacker retries.
const PAUSE: Duration = Duration::from_millis(20);
/// The maximum number of recipients of a conversation at the default limits.
const MOST: usize = 9_990;
/// The time limit for messages that are in flight at the end of the attack.
const SETTLE: Duration = Duration::from_secs(30);

/// The parameters of an attack.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    /// The number of users who post to as many recipients, and as often, as the limits allow.
    pub attackers: usize,
    /// The number of recipients of each attacker.
    pub recipients: usize,
    /// The number of recipients who are online.
    pub online: usize,
    /// The time for which the victim posts before the attack, and again during it.
    pub time: Duration,
}

impl Attack {
    /// Creates an attack by this number of users, at the default limits of a node.
    pub fn by(attackers: usize) -> Attack {
        Attack {
            attackers,
            recipients: MOST,
            online: 500,
            time: Duration::from_secs(10),
        }
    }
}

/// The latencies of the victim's POSTs, from their intended send times.
#[derive(Clone, Debug)]
pub struct Victim {
    /// The latencies without the attack.
    pub quiet: Series,
    /// The latencies during the attack.
    pub attacked: Series,
    /// The number of messages of the attackers that were stored.
    pub stored: u64,
    /// The number of messages of the attackers that were refused.
    pub refused: u64,
}

/// Measures a victim at the node `host`.
///
/// # Errors
/// If a client fails.
pub async fn fanout(host: &str, attack: &Attack) -> Result<Victim, LoadError> {
    let users = attack.recipients + attack.attackers + 2;
    let crowd = Crowd::gather(host, users).await?;
    let (attackers, rest) = crowd.logins().split_at(attack.attackers);
    let (pair, targets) = rest.split_at(2);
    let targets: Vec<UserId> = targets.iter().map(|login| login.user).collect();
    let mut rooms = Vec::new();
    for attacker in attackers {
        rooms.push(room(host, attacker, &targets).await?);
    }
    let victim = room(host, &pair[0], &[pair[1].user]).await?;
    let listening = listen(host, &crowd.logins()[attack.attackers + 1..], attack.online).await?;
    let quiet = post_apart(host, &pair[0], victim, attack.time).await?;
    let over = Arc::new(AtomicBool::new(false));
    let posting: Vec<_> = attackers
        .iter()
        .zip(rooms)
        .map(|(attacker, room)| {
            let (host, attacker, over) = (host.to_owned(), attacker.clone(), over.clone());
            tokio::spawn(async move { post_to_many(&host, &attacker, room, &over).await })
        })
        .collect();
    let attacked = post_apart(host, &pair[0], victim, attack.time).await?;
    over.store(true, Relaxed);
    let (mut stored, mut refused) = (0, 0);
    for attacker in posting {
        let ended = timeout(SETTLE, attacker).await;
        let ended = ended.map_err(|_| LoadError::Task("an attacker's POST hangs".to_owned()))?;
        let (posts, refusals) = ended.map_err(|error| LoadError::Task(error.to_string()))??;
        stored += posts;
        refused += refusals;
    }
    for listener in listening {
        listener.abort();
    }
    Ok(Victim {
        quiet,
        attacked,
        stored,
        refused,
    })
}

/// Creates a conversation; waits and retries if the rate limit of recipients is exceeded.
async fn room(host: &str, who: &Login, to: &[UserId]) -> Result<ConversationId, LoadError> {
    let mut http = Http::connect(host).await?;
    loop {
        match http.converse(&who.token, to).await {
            Err(error) if error.status() == Some(429) => sleep(PAUSE).await,
            made => return Ok(made?),
        }
    }
}

/// Opens sockets that read all frames and acknowledge none.
async fn listen(
    host: &str,
    logins: &[Login],
    count: usize,
) -> Result<Vec<JoinHandle<()>>, LoadError> {
    let mut listening = Vec::new();
    for login in logins.iter().take(count) {
        let mut socket = Socket::open(host, &login.token, "?presence=false").await?;
        listening.push(tokio::spawn(async move {
            while let Ok(Some(_)) = socket.next().await {}
        }));
    }
    Ok(listening)
}

/// Posts like [`post_steadily`], on a separate thread, so that the victim waits only for the node and not for other
/// sockets in this process.
async fn post_apart(
    host: &str,
    who: &Login,
    to: ConversationId,
    time: Duration,
) -> Result<Series, LoadError> {
    let (host, who) = (host.to_owned(), who.clone());
    let posted = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| LoadError::Task(error.to_string()))?;
        runtime.block_on(post_steadily(&host, &who, to, time))
    });
    crate::joined(posted).await?
}

async fn post_steadily(
    host: &str,
    who: &Login,
    to: ConversationId,
    time: Duration,
) -> Result<Series, LoadError> {
    let mut http = Http::connect(host).await?;
    let count = (time.as_secs_f64() * RATE) as usize;
    let due = pace::start(RATE, Instant::now(), 1, count)?;
    let mut series = Series::new();
    for mut due in due {
        while let Some(meant) = due.recv().await {
            http.post(&who.token, to, "ahoy", None).await?;
            series.record(meant.elapsed());
        }
    }
    Ok(series)
}

async fn post_to_many(
    host: &str,
    who: &Login,
    to: ConversationId,
    over: &AtomicBool,
) -> Result<(u64, u64), ClientError> {
    let mut http = Http::connect(host).await?;
    let (mut stored, mut refused) = (0, 0);
    while !over.load(Relaxed) {
        match http.post(&who.token, to, "twelve bytes", None).await {
            Ok(_) => stored += 1,
            Err(ClientError::Refused { .. }) => {
                refused += 1;
                sleep(PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
    Ok((stored, refused))
}
