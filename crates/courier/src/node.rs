//! A node: the log, the index of the log, the hub, and their connections.

use crate::acknowledgements::{Acknowledgements, PATIENCE};
use crate::backup::BackupError;
use crate::cluster::{Cluster, Credentials, begin};
use crate::counts::Unread;
use crate::disk::{Disk, blocking};
use crate::error::StartError;
use crate::hub::{HubRequest, Parts};
use crate::index::OpenedIndex;
use crate::inner::{Inner, wait};
use crate::limits::MOST_FANOUT;
use crate::log::Log;
use crate::log::embedded::OpenedLog;
use crate::log::replicated::{Replicated, Store};
use crate::metrics::Metrics;
use crate::options::Options;
use crate::password::Passwords;
use crate::presence::Presence;
use crate::presence::shared::SharedPresence;
use crate::rates::Rates;
use crate::readiness::Readiness;
use crate::recipients::Recipients;
use crate::retention::Retention;
use crate::seal::Key;
use crate::sessions::Sessions;
use crate::tls::Secure;
use corsair_journal::private_directory;
use parking_lot::Mutex;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, watch};

/// The maximum number of messages about online users that wait to be read.
const MOST_TOLD: usize = 1024;
/// The interval at which rates of inactive users are removed.
const TIDY: Duration = Duration::from_secs(60);

/// A running node. Clones share it.
#[derive(Clone)]
pub struct Node {
    pub(crate) inner: Arc<Inner>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").finish_non_exhaustive()
    }
}

impl Node {
    /// Starts a node.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(options: Options) -> Result<Node, StartError> {
        Node::start_counting(options, Metrics::new()).await
    }

    /// Starts a node that continues existing metrics.
    pub(crate) async fn start_counting(
        options: Options,
        metrics: Metrics,
    ) -> Result<Node, StartError> {
        let again = options.clone();
        let Options {
            data,
            join,
            origins,
            registration,
            keep,
            keep_bytes,
            waste,
            cache,
            limits,
            ..
        } = options;
        limits.check().map_err(StartError::Setting)?;
        if let Some(dir) = &data {
            private_directory(dir).map_err(|source| StartError::Directory {
                path: dir.clone(),
                source,
            })?;
        }
        let credentials = credentials(&again)?;
        match (&data, &credentials) {
            (Some(data), Some(credentials)) => {
                begin::prepare(data, credentials, join.as_deref()).await?;
            }
            (Some(data), None) => begin::refuse_member(data)?,
            (None, Some(_)) => {
                let reason =
                    "a member of a cluster needs a directory for its data; give --data DIR";
                return Err(StartError::Setting(reason.to_owned()));
            }
            (None, None) => {}
        }
        let disk = Disk::new(data.as_deref(), limits.reserve);
        let dir = data.clone();
        let cache = cache.unwrap_or(crate::index::CACHE);
        let mut opened = blocking(move || OpenedIndex::open_with(dir.as_deref(), cache)).await?;
        let presence = Arc::new(Presence::default());
        let acknowledgements = Arc::new(Acknowledgements::default());
        let sessions = Arc::new(Sessions::default());
        let parts = Parts::new(
            presence.clone(),
            acknowledgements.clone(),
            metrics.clone(),
            limits.clone(),
        );
        // The number of groups of entries that may wait to be applied.
        let (feed, entries) = crossbeam_channel::bounded(64);
        let closing = watch::Sender::new(false);
        let mut threads = Vec::new();
        let mut cluster = None;
        let log: Arc<dyn Log> = match (credentials, data) {
            (None, data) => {
                let after = opened.applied();
                let prepared = blocking(move || OpenedLog::open(data.as_deref(), after)).await?;
                opened.adopt(prepared.identity())?;
                opened.follows(prepared.last())?;
                let (log, thread) = prepared.start(feed, metrics.groups.clone())?;
                opened.record_log()?;
                threads.push(thread);
                Arc::new(log)
            }
            (Some(credentials), data) => {
                let data = data.unwrap_or_default();
                let directory = data.clone();
                let store = blocking(move || Store::open(&directory)).await?;
                let store =
                    store.ok_or_else(|| StartError::Setting("the log is missing".to_owned()))?;
                opened.adopt(store.base().cluster)?;
                opened.follows(store.last())?;
                opened.record_log()?;
                let mut origin = [0; 8];
                getrandom::fill(&mut origin)
                    .map_err(|error| StartError::Setting(error.to_string()))?;
                let origin = u64::from_le_bytes(origin);
                let groups = metrics.groups.clone();
                let started = Replicated::start(store, origin, feed, opened.applied(), groups);
                let (log, thread) = started.map_err(|reason| StartError::Log {
                    path: data.clone(),
                    reason,
                })?;
                threads.push(thread);
                let (told, received) = mpsc::channel(MOST_TOLD);
                let members = Arc::new(Cluster::new(
                    log.shared(),
                    credentials,
                    &data,
                    told,
                    metrics.clone(),
                ));
                let shared = SharedPresence::new(
                    presence.clone(),
                    members.clone(),
                    metrics.clone(),
                    origin,
                    opened.version(),
                );
                log.agree_on(shared.common());
                let mut closed = closing.subscribe();
                tokio::spawn(shared.run(received, async move {
                    let _ = closed.wait_for(|&closing| closing).await;
                }));
                cluster = Some(members);
                Arc::new(log)
            }
        };
        let weak = Arc::downgrade(&log);
        let forget = move |position| {
            if let Some(log) = weak.upgrade() {
                log.forget(position);
            }
        };
        let recipients = Arc::new(Recipients::default());
        let deliverer = parts.deliverer(sessions.clone(), recipients.clone());
        let (index, thread) = opened.start(entries, deliverer, forget)?;
        threads.push(thread);
        let hub = parts.start(index.clone())?;
        let inner = Arc::new(Inner {
            readiness: Readiness::new(cluster.is_some()),
            log,
            cluster,
            index,
            hub,
            sessions,
            passwords: Passwords::new(limits.password_memory),
            presence,
            acknowledgements,
            metrics,
            rates: Rates::new(&limits),
            disk,
            unread: Unread::new(),
            fanout: Arc::new(Semaphore::new(MOST_FANOUT as usize)),
            recipients,
            limits,
            origins: origins.into(),
            registration,
            document: OnceLock::new(),
            options: again,
            threads: Mutex::new(threads),
            closing,
        });
        // Entries that were durable before the start are applied before the first request.
        let _ = inner.caught_up().await;
        if let Some(cluster) = &inner.cluster {
            tokio::spawn(cluster.clone().run());
            let (index, closing) = (inner.index.clone(), inner.closing.subscribe());
            tokio::spawn(cluster.clone().follow_snapshots(index, closing));
            let inner = inner.clone();
            tokio::spawn(async move {
                inner.index.ended().await;
                // Clients connect to other nodes.
                if inner.log.has_stopped() {
                    inner.hub.close().await;
                }
            });
        }
        tokio::spawn(write_acknowledgements(inner.clone()));
        tokio::spawn(tell(inner.clone()));
        tokio::spawn(tidy(inner.clone()));
        if keep.is_some() || keep_bytes.is_some() {
            let retention = Retention::new(keep, keep_bytes);
            tokio::spawn(retention.run(inner.clone()));
        }
        tokio::spawn(crate::waste::run(
            inner.clone(),
            waste.unwrap_or(crate::waste::MOST),
        ));
        let node = Node { inner };
        if let Some(data) = &node.inner.options.data {
            crate::control::listen(node.inner.clone(), data);
        }
        Ok(node)
    }

    /// Copies all acknowledged data into a new file while the node serves. Returns the position of the last entry of
    /// the log in the copy.
    ///
    /// # Errors
    /// If the file already exists or cannot be written.
    pub async fn backup(&self, to: &Path) -> Result<u64, BackupError> {
        self.inner.backup(to).await
    }

    /// Removes unused space from the index while the node serves. Returns the bytes of the index before and after.
    ///
    /// # Errors
    /// If the copy cannot be written.
    pub async fn compact(&self) -> Result<(u64, u64), BackupError> {
        self.inner.compact().await
    }

    /// Closes all sockets.
    pub(crate) async fn close_sockets(&self) {
        self.inner.closing.send_replace(true);
        self.inner.hub.close().await;
    }

    /// Closes all sockets, waits until accepted commands are durable, and stops the node.
    pub async fn close(&self) {
        let inner = &self.inner;
        self.close_sockets().await;
        inner.flush_acknowledgements().await;
        inner.log.close();
        let threads = std::mem::take(&mut *inner.threads.lock());
        let join = move || {
            for thread in threads {
                // A thread that panicked has already reported the panic.
                let _ = thread.join();
            }
        };
        let _ = tokio::task::spawn_blocking(join).await;
        if let Some(cluster) = &inner.cluster {
            cluster.close();
        }
    }
}

/// Returns the credentials of a member of a cluster, if the options name a cluster.
fn credentials(options: &Options) -> Result<Option<Credentials>, StartError> {
    let setting = |reason: &str| StartError::Setting(reason.to_owned());
    let Some(path) = &options.cluster_key else {
        return match &options.join {
            Some(_) => Err(setting(
                "a node that joins others needs their common key: give it as --cluster-key FILE",
            )),
            None => Ok(None),
        };
    };
    let address = options.advertise.clone().ok_or_else(|| {
        setting("other members must be able to reach this node: give its address as --advertise HOST:PORT")
    })?;
    let secure = match (&options.cluster_ca, &options.cluster_certificate) {
        (None, _) => None,
        (Some(ca), Some((certificate, key))) => Some(Secure::load(ca, certificate, key)?),
        (Some(_), None) => {
            return Err(setting(
                "--cluster-ca needs a certificate of this node: give --tls-cert FILE and --tls-key FILE",
            ));
        }
    };
    Ok(Some(Credentials {
        key: key(path)?,
        secure,
        address,
    }))
}

/// Reads the key from this file.
fn key(path: &Path) -> Result<Key, StartError> {
    const SHORTEST: usize = 16;
    let refused = |reason: String| StartError::Key {
        path: path.to_owned(),
        reason,
    };
    let text = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    let secret = text.trim_ascii();
    if secret.len() < SHORTEST {
        return Err(refused(format!(
            "the file has {} bytes and needs at least {SHORTEST}; `head -c 32 /dev/urandom | base64` creates a suitable key",
            secret.len()
        )));
    }
    Ok(Key::new(secret))
}

/// Writes acknowledgements to the log at intervals.
async fn write_acknowledgements(node: Arc<Inner>) {
    while wait(&node, PATIENCE).await {
        node.flush_acknowledgements().await;
    }
}

/// Sends changes of presence to all users.
async fn tell(node: Arc<Inner>) {
    let mut pause = Duration::ZERO;
    while wait(&node, pause).await {
        let (update, next) = node.presence.update();
        pause = next;
        if let Some(update) = update
            && node.hub.request(HubRequest::Tell(update)).await.is_err()
        {
            return;
        }
    }
}

async fn tidy(node: Arc<Inner>) {
    while wait(&node, TIDY).await {
        node.rates.tidy();
    }
}
