//! `corsair-stream serve`: the engine behind a socket.

use crate::saving::{save, save_regularly};
use crate::signals::Signals;
use crate::tasks::{TaskArgs, end, failed, runtime, tell};
use crate::terminal::{complain, say};
use anyhow::{Context, bail};
use corsair_stream::engine::{
    AlertLogs, Durability, Endpoints, Engine, EngineOptions, SinkDisk, TaskError,
};
use corsair_stream::flags::EngineArgs;
use corsair_stream::http::{self, HttpOptions, Limits, Tls};
use corsair_stream::store::{Store, StoredTask};
#[cfg(feature = "kafka")]
use corsair_stream::{engine::Write, kafka::KafkaTopic, line::Precision};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The flags of `corsair-stream serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9092")]
    addr: SocketAddr,
    /// A directory for the tasks that are added over HTTP, their state, and the log of writes
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Crash that answered writes survive, with --data
    #[arg(long, value_enum, default_value_t = Durable::Interval, requires = "data")]
    durability: Durable,
    /// Interval at which the state of all tasks is saved to --data
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    checkpoint: Duration,
    /// A directory in which `.log('/path')` of alerts may write [default: nowhere]
    #[arg(long, value_name = "DIR")]
    alert_logs: Option<PathBuf>,
    /// File with the receivers that tasks name: JSON {"NAME": {"url", "headers", "username", "password", "token"}}
    #[arg(long, value_name = "FILE")]
    endpoints: Option<PathBuf>,
    /// Require this token in every request except /ping and /health
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// File with the token, so that the list of processes does not show it
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    token_file: Option<PathBuf>,
    /// Kafka topic whose records are lines to write: BROKER:PORT[,BROKER:PORT…]/TOPIC
    #[cfg(feature = "kafka")]
    #[arg(long, value_name = "TOPIC", requires = "kafka_db")]
    kafka_in: Vec<KafkaTopic>,
    /// Database of the points from --kafka-in
    #[cfg(feature = "kafka")]
    #[arg(long, value_name = "NAME")]
    kafka_db: Option<String>,
    /// PEM file with the certificate of the server, and its chain: connections use TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// PEM file with the private key of --tls-cert
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Time limit of a stop, after which the remaining output is saved to --data
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    shutdown: Duration,
    /// The retention policy of writes that name none
    #[arg(long, value_name = "NAME", default_value = "autogen")]
    default_rp: String,
    #[command(flatten)]
    bounds: Bounds,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    tasks: TaskArgs,
}

/// The values of `--durability`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Durable {
    /// A kill loses the writes since the last checkpoint
    Memory,
    /// A kill loses nothing, a power failure the writes of the last 100 ms
    Interval,
    /// Neither a kill nor a power failure loses a write
    Always,
}

impl From<Durable> for Durability {
    fn from(durable: Durable) -> Durability {
        match durable {
            Durable::Memory => Durability::Memory,
            Durable::Interval => Durability::Interval(Duration::from_millis(100)),
            Durable::Always => Durability::Always,
        }
    }
}

impl ServeArgs {
    /// Returns the token that requests must contain.
    fn token(&self) -> anyhow::Result<Option<String>> {
        let Some(path) = &self.token_file else {
            return Ok(self.token.clone());
        };
        let token = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read --token-file {}", path.display()))?;
        let token = token.trim();
        if token.is_empty() {
            bail!(
                "--token-file {} is empty; write a token to it",
                path.display()
            );
        }
        Ok(Some(token.to_owned()))
    }
}

/// The resource limits.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Bounds")]
struct Bounds {
    /// The largest body of a write in bytes, after unpacking
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20)]
    max_body: usize,
    /// The longest line in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    max_line: usize,
    /// Maximum number of concurrent writes
    #[arg(long, value_name = "N", default_value = "256")]
    max_writes: NonZeroUsize,
    /// Maximum number of connections
    #[arg(long, value_name = "N", default_value = "1024")]
    max_connections: NonZeroUsize,
    /// Maximum bytes of all bodies that are being read or parsed
    #[arg(long, value_name = "BYTES", default_value_t = 128 << 20)]
    body_memory: usize,
    /// Maximum bytes of all long answers that are being sent
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    answer_memory: usize,
    /// Bytes of writes on the edges of a task at which it accepts no more
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    task_memory: usize,
    /// Maximum bytes that wait for the receiver of an http_post, or that wait to be logged
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    sink_memory: usize,
    /// Maximum bytes that wait on disk for a receiver that is down, for each sink, with --data; 0: no disk buffers
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    sink_disk: u64,
    /// Maximum number of groups of a node; points of further groups are left out and counted
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    max_series: usize,
    /// Maximum points that a node retains in windows, or until their partners arrive
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    max_points: usize,
    /// Maximum bytes that a node retains: groups, and points in windows or without a partner
    #[arg(long, value_name = "BYTES", default_value_t = 512 << 20)]
    node_memory: usize,
    /// Maximum number of tasks
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_tasks: usize,
    /// Time without points after which a group is removed
    #[arg(long, value_name = "SECONDS", default_value = "3600", value_parser = seconds)]
    series_idle: Duration,
    /// Time that a write waits for capacity before it is answered with 503
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    patience: Duration,
    /// Time limit for receiving a body
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    body_timeout: Duration,
    /// Time limit for a client to send a request's head, or to receive a part of an answer
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    client_timeout: Duration,
    /// Time limit of each of the three attempts of an http_post
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    post_timeout: Duration,
}

/// Parses seconds for clap, such as 10 or 0.5.
fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a time; expected seconds, for example 10 or 0.5");
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

impl Bounds {
    fn apply(&self, options: EngineOptions) -> EngineOptions {
        EngineOptions {
            writes: self.max_writes,
            patience: self.patience,
            max_body: self.max_body,
            body_memory: self.body_memory.max(self.max_body.saturating_mul(2)),
            max_line: self.max_line,
            task_memory: self.task_memory,
            sink_memory: self.sink_memory,
            post_timeout: self.post_timeout,
            max_series: self.max_series,
            max_points: self.max_points,
            node_memory: self.node_memory,
            max_tasks: self.max_tasks,
            series_idle: self.series_idle,
            ..options
        }
    }
}

/// Serves until Ctrl-C; then lets tasks process accepted points, saves their state, and prints a summary.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let mut options = args.bounds.apply(args.engine.options());
    options.default_policy = args.default_rp.clone();
    let token = args.token()?;
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls::load(certificate, key)?),
        _ => None,
    };
    if let Some(path) = &args.endpoints {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read --endpoints {}", path.display()))?;
        let endpoints = Endpoints::parse(&text);
        options.endpoints = endpoints.with_context(|| format!("--endpoints {}", path.display()))?;
    }
    if let Some(data) = args.data.as_ref().filter(|_| args.bounds.sink_disk > 0) {
        options.sink_disk = Some(SinkDisk {
            directory: data.join("sinks"),
            bytes: args.bounds.sink_disk,
        });
    }
    if let Some(directory) = &args.alert_logs {
        options.alert_logs = AlertLogs::In(directory.clone());
    }
    let store = match &args.data {
        Some(path) => Some(Arc::new(Store::open(path)?)),
        None => None,
    };
    let runtime = runtime()?;
    let code = runtime.block_on(async {
        let listener = TcpListener::bind(args.addr)
            .await
            .with_context(|| format!("cannot listen at {}", args.addr))?;
        // From here on a signal stops the server instead of killing the process.
        let mut signals = Signals::listen()?;
        let engine = Engine::start(options)?;
        let replayed = start(args, &engine, store.as_ref()).await?;
        let at = listener.local_addr().unwrap_or(args.addr);
        let scheme = if tls.is_some() { "https" } else { "http" };
        say(format_args!("corsair-stream: listening at {scheme}://{at}"));
        if replayed > 0 {
            say(format_args!(
                "corsair-stream: {replayed} writes of the log were given to their tasks again"
            ));
        }
        let http = HttpOptions {
            token,
            body_timeout: args.bounds.body_timeout,
            answer_memory: args.bounds.answer_memory,
            store: store.clone(),
        };
        let limits = Limits {
            connections: args.bounds.max_connections.get(),
            head: args.bounds.client_timeout,
            write: args.bounds.client_timeout,
            // The other half of the time is for accepted writes.
            grace: args.shutdown / 2,
            tls,
        };
        let router = http::router_with(engine.clone(), http);
        let (stop_saving, stopped) = oneshot::channel();
        let saving = store.clone().map(|store| {
            let saving = save_regularly(engine.clone(), store, args.checkpoint, stopped);
            tokio::spawn(saving)
        });
        #[cfg(feature = "kafka")]
        let consumers = consume(args, &engine);
        let mut begun = None;
        let stop = async {
            signals.next().await;
            begun = Some(Instant::now());
        };
        http::serve(listener, router, limits, stop).await;
        say("corsair-stream: ending, what was accepted goes its way");
        #[cfg(feature = "kafka")]
        consumers.send_replace(true);
        if let Some(saving) = saving {
            let _ = stop_saving.send(());
            let _ = saving.await;
        }
        let since = begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        stop_engine(
            &engine,
            store.as_ref(),
            args.shutdown.saturating_sub(since),
            signals,
        )
        .await
    });
    // Does not wait for threads that are blocked by a hung receiver.
    runtime.shutdown_background();
    code
}

/// Starts the consumers of Kafka topics. They end when the result becomes true.
#[cfg(feature = "kafka")]
fn consume(args: &ServeArgs, engine: &Engine) -> tokio::sync::watch::Sender<bool> {
    let (stop, stopped) = tokio::sync::watch::channel(false);
    for topic in &args.kafka_in {
        let to = Write {
            database: args.kafka_db.as_deref().unwrap_or_default().into(),
            policy: None,
            precision: Precision::Nanoseconds,
        };
        tokio::spawn(topic.clone().consume(engine.clone(), to, stopped.clone()));
    }
    stop
}

/// Starts the tasks of the flags and those in the data directory, and gives them the writes of the log that their
/// saved state lacks. Returns their number.
async fn start(
    args: &ServeArgs,
    engine: &Engine,
    store: Option<&Arc<Store>>,
) -> anyhow::Result<u64> {
    let saved = store.map(|store| store.saved()).transpose()?.flatten();
    if let Some(saved) = saved {
        engine.restore(saved);
    }
    args.tasks.start(engine).await?;
    let Some(store) = store else {
        return Ok(0);
    };
    for (name, stored) in store.tasks()? {
        let added = match stored {
            Ok(StoredTask { enabled: false, .. }) => continue,
            Ok(StoredTask {
                text,
                options,
                origin: Some(origin),
                ..
            }) => engine.add_stored(&name, &text, options, origin).await,
            Ok(task) => engine.add(&name, &task.text, task.options).await,
            Err(error) => {
                complain(error);
                continue;
            }
        };
        match added {
            // A task of the flags takes precedence over a stored task of the same name.
            Ok(()) | Err(TaskError::Duplicate(_)) => {}
            Err(error) => complain(format_args!("the stored task {name}: {error}")),
        }
    }
    let replayed = engine.open_log(store.log(), args.durability.into()).await?;
    // Saves the state now, so that the files of alerts continue from here if the process crashes within seconds.
    let saved = engine.checkpoint().await;
    save(engine, store, saved, None).await?;
    Ok(replayed)
}

/// Stops the engine within the time limit, or at a second signal, and saves its state.
async fn stop_engine(
    engine: &Engine,
    store: Option<&Arc<Store>>,
    time: Duration,
    mut signals: Signals,
) -> anyhow::Result<ExitCode> {
    let hurry = engine.clone();
    let in_a_hurry = tokio::spawn(async move {
        signals.next().await;
        hurry.hurry();
    });
    let saved = engine.suspend(time).await;
    in_a_hurry.abort();
    let left = saved.points();
    let kept = store.is_some();
    if let Some(store) = store {
        save(engine, store, saved, None).await?;
    }
    let engine_told = engine.clone();
    let told = tokio::task::spawn_blocking(move || {
        let code = tell(&engine_told);
        if kept && left > 0 {
            say(format_args!("{left} points and bodies saved"));
        } else if left > 0 {
            complain(format_args!(
                "{left} points in windows that are not full, and bodies that were not delivered, are left; --data keeps them for the next start"
            ));
        }
        code
    });
    // Does not wait for a reader that has stopped reading.
    let code = match timeout(TELLING, told).await {
        Ok(Ok(code)) => code,
        _ => failed(engine),
    };
    end(engine).await?;
    Ok(code)
}

/// The time limit for logging the final result.
const TELLING: Duration = Duration::from_secs(1);
