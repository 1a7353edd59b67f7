//! Connects to the server, and finds or creates the stream.

use super::end::Ends;
use super::snapshots::Snapshots;
use super::{
    ACK, Applied, Attach, DUPLICATES, JetStream, StreamCommand, StreamState, identity,
    without_secrets,
};
use crate::command::Command;
use crate::error::StartError;
use crate::log::Feed;
use crate::metrics::Metrics;
use crate::presence::shared::CommonVersion;
use crate::seal::{FIRST, Key};
use async_nats::jetstream::context::Context;
use async_nats::jetstream::stream::{Config, RetentionPolicy, StorageType, Stream};
use async_nats::{Client, ConnectOptions, Event};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The maximum length of a stream's name in bytes.
const LONGEST_NAME: usize = 32;
/// The maximum size of a file with credentials in bytes.
const LONGEST_CREDENTIALS: usize = 64 << 10;

/// The names of a service on a server; the number is the version of the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    pub stream: String,
    /// The subject of the log's entries.
    pub log: String,
    /// The subject of messages between nodes.
    pub presence: String,
    /// The name of the object store of snapshots, and of the stream that names the newest one.
    pub snapshots: String,
    /// The subject of the stream that names the newest snapshot.
    pub newest: String,
}

impl Names {
    /// Returns the names for the service whose stream has this name. `None` stands for the default stream.
    ///
    /// # Errors
    /// If the name is not valid for a stream.
    pub fn new(stream: Option<&str>) -> Result<Names, StartError> {
        let Some(stream) = stream else {
            return Ok(Names {
                stream: "COURIER2".to_owned(),
                log: "courier.log.2".to_owned(),
                presence: "courier.presence.2".to_owned(),
                snapshots: "COURIER2_SNAPSHOTS".to_owned(),
                newest: "courier.snapshots.2".to_owned(),
            });
        };
        let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if stream.is_empty() || stream.len() > LONGEST_NAME || !stream.chars().all(good) {
            return Err(StartError::Setting(format!(
                "--nats-stream {stream:?} is not a valid name; expected 1 to {LONGEST_NAME} of the letters A to Z, a to z, digits, - and _"
            )));
        }
        Ok(Names {
            stream: stream.to_owned(),
            log: format!("courier.{stream}.log.2"),
            presence: format!("courier.{stream}.presence.2"),
            snapshots: format!("{stream}_SNAPSHOTS"),
            newest: format!("courier.{stream}.snapshots.2"),
        })
    }
}

/// A server with its credentials.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub url: String,
    pub names: Names,
    pub replicas: Option<u8>,
    pub credentials: Option<PathBuf>,
    pub ca: Option<PathBuf>,
}

/// The contents of a file with credentials.
#[derive(Debug, PartialEq, Eq)]
enum Credentials {
    User(String, String),
    Token(String),
    /// The contents of a `.creds` file: a token signed by the account, and the user's key.
    Keys(String),
}

impl Credentials {
    fn read(path: &Path) -> Result<Credentials, StartError> {
        let refused = |reason: String| unusable(path, reason);
        let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
        Credentials::parse(&text).map_err(|reason| refused(reason.to_owned()))
    }

    fn parse(text: &str) -> Result<Credentials, &'static str> {
        let text = text.trim();
        if text.is_empty() || text.len() > LONGEST_CREDENTIALS {
            return Err(
                "the file must contain USER:PASSWORD, a token, or the contents of a .creds file written by nsc",
            );
        }
        if text.contains("BEGIN NATS USER JWT") {
            if !text.contains("BEGIN USER NKEY SEED") {
                return Err(
                    "the file has a token, but not the user's key, which follows the token in a .creds file written by nsc",
                );
            }
            // The parser of the client requires a line end after each line.
            return Ok(Credentials::Keys(format!("{text}\n")));
        }
        if text.contains('\n') {
            return Err(
                "the file has more than one line and is not a .creds file; it must contain USER:PASSWORD, a token, or the contents of a .creds file written by nsc",
            );
        }
        Ok(match text.split_once(':') {
            Some((user, password)) => Credentials::User(user.to_owned(), password.to_owned()),
            None => Credentials::Token(text.to_owned()),
        })
    }
}

fn unusable(path: &Path, reason: String) -> StartError {
    StartError::Credentials {
        path: path.to_owned(),
        reason,
    }
}

/// A stream that is not followed yet.
pub(crate) struct Connected {
    client: Client,
    context: Context,
    stream: Stream,
    names: Names,
    url: String,
    key: Key,
    metrics: Metrics,
    origin: u64,
    identity: u64,
    /// The number of servers with a copy of the stream.
    replicas: usize,
    connections: watch::Receiver<u64>,
}

impl Connected {
    /// Connects to the server, and creates the stream if there is none.
    pub async fn connect(
        server: Server,
        key: Key,
        metrics: Metrics,
    ) -> Result<Connected, StartError> {
        let Server {
            url,
            names,
            replicas,
            credentials,
            ca,
        } = server;
        let public = without_secrets(&url);
        let refused = |reason: String| StartError::Nats {
            url: public.clone(),
            reason,
        };
        let (connected, connections) = watch::channel(0);
        let connected = Arc::new(connected);
        let mut options = ConnectOptions::new()
            .event_callback(move |event| {
                let connected = connected.clone();
                async move {
                    if let Event::Connected = event {
                        connected.send_modify(|count| *count += 1);
                    }
                }
            })
            .name("corsair courier")
            .connection_timeout(Duration::from_secs(5))
            .request_timeout(Some(Duration::from_secs(5)));
        if let Some(path) = credentials {
            options = match Credentials::read(&path)? {
                Credentials::User(user, password) => options.user_and_password(user, password),
                Credentials::Token(token) => options.token(token),
                Credentials::Keys(text) => options
                    .credentials(&text)
                    .map_err(|error| unusable(&path, error.to_string()))?,
            };
        }
        if let Some(path) = ca {
            std::fs::File::open(&path).map_err(|error| unusable(&path, error.to_string()))?;
            options = options.add_root_certificates(path).require_tls(true);
        }
        let client = options.connect(&url).await.map_err(|error| {
            refused(format!(
                "{error}; check that nats-server is running there, and that the credentials are correct"
            ))
        })?;
        let mut context = async_nats::jetstream::new(client.clone());
        context.set_timeout(ACK);
        let config = Config {
            name: names.stream.clone(),
            subjects: vec![names.log.clone()],
            retention: RetentionPolicy::Limits,
            storage: StorageType::File,
            num_replicas: replicas.unwrap_or(1).into(),
            duplicate_window: DUPLICATES,
            deny_delete: true,
            // Trimming the stream requires this permission.
            deny_purge: false,
            ..Config::default()
        };
        let mut stream = context
            .get_or_create_stream(config)
            .await
            .map_err(|error| {
                refused(format!(
                    "{error}; start nats-server with -js, on as many servers as --nats-replicas"
                ))
            })?;
        let info = stream.info().await.map_err(|e| refused(e.to_string()))?;
        let identity = identity(info);
        let found = info.config.clone();
        let copies = replicas.map_or(found.num_replicas, usize::from);
        if let Some(replicas) = replicas.map(usize::from)
            && replicas != found.num_replicas
        {
            let config = Config {
                num_replicas: replicas,
                ..found
            };
            let changed = context.update_stream(config).await;
            changed.map_err(|error| {
                refused(format!(
                    "{error}; --nats-replicas {replicas} needs as many servers in one cluster"
                ))
            })?;
        }
        let mut origin = [0; 8];
        getrandom::fill(&mut origin).map_err(|error| refused(error.to_string()))?;
        Ok(Connected {
            client,
            context,
            stream,
            names,
            url: public,
            key,
            metrics,
            origin: u64::from_le_bytes(origin),
            identity,
            replicas: copies,
            connections,
        })
    }

    /// Returns the number that identifies the stream.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns the number that identifies this process to other nodes.
    pub fn origin(&self) -> u64 {
        self.origin
    }

    /// Returns the names of the service on the server.
    pub fn names(&self) -> &Names {
        &self.names
    }

    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the snapshots that belong to the stream.
    pub fn snapshots(&self) -> Snapshots {
        Snapshots::new(
            self.context.clone(),
            self.stream.clone(),
            self.names.clone(),
            self.replicas,
            &self.key,
            self.identity,
        )
    }

    /// Returns the error that says why this server cannot be used.
    pub fn refused(&self, reason: String) -> StartError {
        let url = self.url.clone();
        StartError::Nats { url, reason }
    }

    /// Begins an empty stream for an index that already has a history. The first entry is removed, so nodes cannot read
    /// the stream from its beginning and need a snapshot. Returns the entry after which the index continues.
    ///
    /// # Errors
    /// If the stream has entries, or the server does not take any.
    pub async fn begin_at_snapshot(&self) -> Result<Applied, StartError> {
        let info = self.stream.get_info().await;
        let info = info.map_err(|error| self.refused(error.to_string()))?;
        let last = info.state.last_sequence;
        if last > 0 {
            return Err(self.refused(format!(
                "the stream {} has {last} entries, and a stream without any is needed: remove it from the server (`nats stream rm {}`), or name another one with --nats-stream",
                self.names.stream, self.names.stream
            )));
        }
        let mut applied = Applied::default();
        for number in 0..2 {
            let nothing = StreamCommand {
                origin: self.origin,
                number,
                command: Command::Acknowledge(Vec::new()),
            };
            let sealed = self.key.seal(FIRST, &nothing);
            let sealed = sealed.map_err(|error| self.refused(error.to_string()))?;
            let digest = super::digest(&sealed);
            let published = async {
                let subject = self.names.log.clone();
                let sent = self.context.publish(subject, sealed.into()).await;
                let taken = sent.map_err(|error| error.to_string())?.await;
                taken.map_err(|error| error.to_string())
            };
            let taken = published.await.map_err(|reason| self.refused(reason))?;
            applied = Applied {
                position: taken.sequence,
                digest,
            };
        }
        let trimmed = self.snapshots().trim(applied.position).await;
        trimmed.map_err(|reason| self.refused(reason))?;
        Ok(applied)
    }

    /// Follows the stream from the last applied entry on.
    ///
    /// # Errors
    /// If the stream does not have that entry.
    pub async fn follow(
        self,
        applied: Applied,
        feed: Feed,
        common: CommonVersion,
    ) -> Result<(JetStream, JoinHandle<()>), StartError> {
        let state = Arc::new(StreamState {
            client: self.client,
            context: self.context,
            stream: self.stream,
            key: self.key,
            metrics: self.metrics,
            origin: self.origin,
            identity: self.identity,
            common,
            names: self.names,
            connections: self.connections,
            ends: Ends::default(),
            numbers: AtomicU64::new(0),
            waiting: Mutex::default(),
            stopped: OnceLock::new(),
            closed: watch::Sender::new(false),
        });
        match state.check(&applied).await {
            Ok(()) => {}
            Err(Attach::Broken(reason) | Attach::Wrong(reason) | Attach::Behind(reason)) => {
                return Err(StartError::Nats {
                    url: self.url,
                    reason,
                });
            }
        }
        let following = tokio::spawn(super::follow::follow(state.clone(), applied, feed));
        Ok((JetStream { state }, following))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_subjects_of_its_own_and_a_name_that_fits_into_them() {
        let (one, other) = (Names::new(Some("a-1")).unwrap(), Names::new(None).unwrap());
        assert_eq!(one.log, "courier.a-1.log.2");
        assert!(one.stream != other.stream && one.log != other.log);
        assert!(one.presence != other.presence);
        for wrong in ["", "a.b", "a b", "*", "ü", &"x".repeat(33)] {
            let said = Names::new(Some(wrong)).unwrap_err().to_string();
            assert!(said.contains("--nats-stream"), "{said}");
        }
    }

    #[test]
    fn credentials_are_a_user_a_token_or_an_accounts_keys() {
        let user = Credentials::User("anne".to_owned(), "b:c".to_owned());
        assert_eq!(Credentials::parse(" anne:b:c\n"), Ok(user));
        let token = Credentials::Token("t0k3n".to_owned());
        assert_eq!(Credentials::parse("t0k3n"), Ok(token));
        let text = "-----BEGIN NATS USER JWT-----\ne.y.J\n-----BEGIN USER NKEY SEED-----\nSU";
        let keys = Credentials::Keys(format!("{text}\n"));
        assert_eq!(Credentials::parse(text), Ok(keys));
        for wrong in ["", "a:b\nc:d", "-----BEGIN NATS USER JWT-----"] {
            assert!(Credentials::parse(wrong).is_err(), "{wrong}");
        }
    }
}
