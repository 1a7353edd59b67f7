//! `corsair-courier serve`.

use crate::cluster::ClusterArgs;
use crate::data::say;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use corsair_courier::process::{asked_to_end, on_hangup};
use corsair_courier::{Limits, Node, Options, Registration, ServeOptions, Tls, serve_with};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tracing_subscriber::filter::LevelFilter;

/// The flags of `corsair-courier serve`.
#[derive(Args, Clone, Debug)]
pub struct ServeArgs {
    /// Address to listen on; with port 0 the system chooses a free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    listen: String,
    /// The certificate chain of this node, as PEM; clients must then use TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A second address for /metrics, /readyz and /healthz, without TLS; /metrics is then served only there
    #[arg(long, value_name = "HOST:PORT")]
    metrics_listen: Option<String>,
    /// The least important events to log on stderr
    #[arg(long, value_enum, default_value = "warn")]
    pub log: LogLevel,
    /// Log each request on stderr: address, method, path, status, seconds
    #[arg(long)]
    pub access_log: bool,
    /// Directory of the data [default: in memory, lost with the process]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// A further origin from which browsers may connect; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    origin: Vec<String>,
    /// Users who may create an account
    #[arg(long, value_enum, default_value = "open")]
    registration: RegistrationMode,
    /// A file with the secret of --registration token
    #[arg(long, value_name = "FILE")]
    registration_token: Option<PathBuf>,
    /// Remove messages older than this, for example 720h [default: keep all]
    #[arg(long, value_name = "TIME", value_parser = age)]
    keep: Option<Duration>,
    /// Remove the oldest messages while all messages together exceed this many bytes [default: keep all]
    #[arg(long, value_name = "BYTES")]
    keep_bytes: Option<u64>,
    /// Compact the index when this many bytes of its file are unused, and these are at least half of it [default:
    /// 268435456]
    #[arg(long, value_name = "BYTES")]
    waste: Option<u64>,
    /// Bytes of the index that are cached in memory [default: 134217728]
    #[arg(long, value_name = "BYTES", value_parser = cache)]
    cache: Option<usize>,
    /// Requests per second for each user
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().rate)]
    rate: NonZeroU32,
    /// Recipients per second of the messages of one user
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().fanout)]
    fanout: NonZeroU32,
    /// Logins and registrations per second from one address, and logins per second to one account
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().strangers)]
    strangers: NonZeroU32,
    /// Maximum number of connections
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().connections, value_parser = at_least_one)]
    connections: usize,
    /// Maximum number of connections from one address
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().address_connections, value_parser = at_least_one)]
    address_connections: usize,
    /// Address of a proxy whose X-Forwarded-For is trusted; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    trusted_proxy: Vec<IpAddr>,
    /// Maximum number of sockets of one user
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().sockets, value_parser = at_least_one)]
    sockets: usize,
    /// Maximum size of a request's body in bytes
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().body, value_parser = at_least_one)]
    body: usize,
    /// Maximum size of a message's text in bytes
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().text, value_parser = at_least_one)]
    text: usize,
    /// Maximum number of recipients of a conversation
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().recipients, value_parser = at_least_one)]
    recipients: usize,
    /// Interval of pings to sockets; a peer that is silent for three intervals is disconnected
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = pause)]
    heartbeat: Duration,
    /// Maximum size of a page of messages or conversations in bytes
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().page_bytes, value_parser = page_bytes)]
    page_bytes: usize,
    /// Maximum bytes of one user's pages that the client has not read yet
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().unread, value_parser = at_least_one)]
    unread: usize,
    /// Maximum bytes of messages that wait for one socket; further messages stay in the durable queue
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().outbox, value_parser = at_least_one)]
    outbox: usize,
    /// Time in which a client must read 4 KiB of an answer
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = pause)]
    write_timeout: Duration,
    /// Free space in bytes to keep on the disk of --data; below it, changes are refused
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().reserve)]
    reserve: u64,
    /// Memory in KiB for hashing a password
    #[arg(long, value_name = "KIB", default_value_t = Limits::default().password_memory)]
    password_memory: u32,
}

/// Users who may create an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RegistrationMode {
    /// All clients
    Open,
    /// Clients with the secret of --registration-token
    Token,
    /// No clients
    Closed,
}

/// The least important events that are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// No events
    Off,
    /// Events that need an operator's action
    Error,
    /// Also warnings for the operator
    Warn,
    /// Also the node's normal activity
    Info,
    /// Also details
    Debug,
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> LevelFilter {
        match level {
            LogLevel::Off => LevelFilter::OFF,
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
        }
    }
}

/// Parses a number, which must not be 0.
fn at_least_one(text: &str) -> Result<usize, String> {
    const MOST: u32 = u32::MAX >> 3;
    match text.parse::<i128>() {
        Ok(0) => Err("0 is too small; give 1 or more".to_owned()),
        Ok(number) if (1..=i128::from(MOST)).contains(&number) => Ok(number as usize),
        Ok(number) if number < 0 => Err(format!("{text} is too small; give 1 or more")),
        Ok(_) => Err(format!("{text} is too large; give {MOST} or less")),
        Err(_) => Err(format!("'{text}' is not a whole number")),
    }
}

/// Parses the size of a page, which fits at least one short message.
fn page_bytes(text: &str) -> Result<usize, String> {
    match at_least_one(text)? {
        0..1024 => Err(format!("{text} is too small; give 1024 or more")),
        bytes => Ok(bytes),
    }
}

/// Parses the size of the index's cache, which fits at least a few pages.
fn cache(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(bytes) if bytes >= 1 << 20 => Ok(bytes),
        _ => Err(format!(
            "'{text}' is too small or no number; give 1048576 or more"
        )),
    }
}

/// Parses the retention time of messages: a duration, in which `d` stands for 24 hours.
fn age(text: &str) -> Result<Duration, String> {
    let days = text.trim().strip_suffix('d').map(str::trim_end);
    match days.and_then(|days| days.parse::<u32>().ok()) {
        Some(0) => Err("messages are kept for some time; give 1s or more".to_owned()),
        Some(days) => Ok(Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
        None => match pause(text)? {
            short if short < Duration::from_secs(1) => {
                Err("messages are kept for some time; give 1s or more".to_owned())
            }
            age => Ok(age),
        },
    }
}

/// Parses a duration with its unit, which must not be 0.
fn pause(text: &str) -> Result<Duration, String> {
    let parsed = jiff::fmt::friendly::SpanParser::new().parse_unsigned_duration(text);
    match parsed {
        Ok(Duration::ZERO) => Err("the interval must not be 0; give 1ms or more".to_owned()),
        Ok(pause) => Ok(pause),
        Err(_) if text.parse::<f64>().is_ok() => {
            Err(format!("'{text}' has no unit; write {text}s or {text}ms"))
        }
        Err(_) => Err(format!(
            "'{text}' is not a duration; expected for example 500ms, 2s or 1m30s"
        )),
    }
}

impl ServeArgs {
    fn registration(&self) -> Result<Registration> {
        const SHORTEST: usize = 8;
        match (self.registration, &self.registration_token) {
            (RegistrationMode::Token, Some(path)) => {
                let secret = std::fs::read_to_string(path).with_context(|| {
                    format!("cannot read --registration-token {}", path.display())
                })?;
                let secret = secret.trim();
                if secret.len() < SHORTEST {
                    bail!(
                        "the secret in {} has {} bytes and needs at least {SHORTEST}",
                        path.display(),
                        secret.len()
                    );
                }
                Ok(Registration::Token(secret.to_owned()))
            }
            (RegistrationMode::Token, None) => bail!(
                "--registration token needs a secret; write one to a file and give it as --registration-token FILE"
            ),
            (_, Some(_)) => bail!("--registration-token is of no use without --registration token"),
            (RegistrationMode::Open, None) => Ok(Registration::Open),
            (RegistrationMode::Closed, None) => Ok(Registration::Closed),
        }
    }

    fn options(&self) -> Result<Options> {
        let mut options = Options {
            registration: self.registration()?,
            data: self.data.clone(),
            origins: self.origin.clone(),
            keep: self.keep,
            keep_bytes: self.keep_bytes,
            waste: self.waste,
            cache: self.cache,
            limits: Limits {
                rate: self.rate,
                fanout: self.fanout,
                strangers: self.strangers,
                connections: self.connections,
                address_connections: self.address_connections.min(self.connections),
                trusted_proxies: self.trusted_proxy.clone(),
                sockets: self.sockets,
                body: self.body,
                text: self.text,
                recipients: self.recipients,
                heartbeat: self.heartbeat,
                page_bytes: self.page_bytes,
                unread: self.unread,
                outbox: self.outbox,
                write: self.write_timeout,
                reserve: self.reserve,
                password_memory: self.password_memory,
                ..Limits::default()
            },
            ..Options::default()
        };
        self.cluster.set(&mut options, &self.listen)?;
        options.cluster_certificate = self.tls_cert.clone().zip(self.tls_key.clone());
        Ok(options)
    }
}

/// Serves until Ctrl-C or SIGTERM.
pub async fn run(args: &ServeArgs) -> Result<ExitCode> {
    let end = asked_to_end();
    let members = args.cluster.cluster_ca.as_deref();
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls::load_with_members(certificate, key, members)?),
        _ => None,
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    let node = Node::start(args.options()?).await?;
    if let Some(tls) = tls.clone() {
        on_hangup(move || match tls.reload() {
            Ok(()) => tracing::warn!("the certificate was reloaded"),
            Err(error) => tracing::error!("{error}; the current certificate stays in use"),
        });
    }
    let options = ServeOptions {
        tls,
        metrics_address: args.metrics_listen.clone(),
        access_log: args.access_log,
    };
    let serving = serve_with(node, &args.listen, options).await?;
    let address = serving.address();
    say(&format!("listens on {scheme}://{address}, Ctrl-C stops it"));
    if let Some(address) = serving.metrics_address() {
        say(&format!("serves metrics on http://{address} alone"));
    }
    if args.data.is_none() {
        say(
            "messages are kept in memory and lost when the process ends; use --data DIR to keep them",
        );
    }
    end.await;
    serving.stop().await;
    Ok(ExitCode::SUCCESS)
}
