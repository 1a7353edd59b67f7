//! The source of spans: files, the query API of Jaeger, or services that send spans.

use super::{LearnArgs, jaeger};
use crate::console::Console;
use crate::progress::{Bar, Measure};
use anyhow::{Result, anyhow};
use corsair_arch::Recording;
use std::path::PathBuf;
use std::sync::Arc;

/// The source of the spans.
#[derive(Debug)]
pub enum Source<'a> {
    /// Files, and the attribute with the key of a request.
    Files(&'a [PathBuf], Option<&'a str>),
    Jaeger(jaeger::Query<'a>),
    #[cfg(feature = "otlp")]
    Listen(listen::Listen),
}

impl Source<'_> {
    /// Returns the source that the flags name.
    pub fn of(args: &LearnArgs) -> Source<'_> {
        #[cfg(feature = "otlp")]
        if let Some(address) = args.listen {
            return Source::Listen(listen::Listen {
                address,
                lasting: args.lasting,
                per_kind: args.per_kind,
            });
        }
        match &args.jaeger {
            Some(address) => Source::Jaeger(jaeger::Query {
                address,
                services: &args.service,
                lookback: args.lookback,
                limit: args.limit,
            }),
            None => Source::Files(&args.traces, args.key.as_deref()),
        }
    }

    /// Reads or records the spans.
    ///
    /// # Errors
    /// If the source cannot be read, or has no spans.
    pub fn record(&self, console: &Arc<Console>) -> Result<Recording> {
        let bar = Bar::begin(console, Measure::Clock);
        let recording = match self {
            Source::Files(files, key) => {
                Recording::read_with_key(files, *key).map_err(|error| anyhow!("{error}"))
            }
            Source::Jaeger(query) => jaeger::read(query),
            #[cfg(feature = "otlp")]
            Source::Listen(listen) => listen.record(),
        };
        drop(bar);
        recording
    }

    /// Returns a description of the source, for the learned definition.
    pub fn shown(&self) -> String {
        match self {
            Source::Files(files, _) => {
                let files: Vec<String> =
                    files.iter().map(|one| one.display().to_string()).collect();
                files.join(" ")
            }
            Source::Jaeger(query) => {
                format!(
                    "--jaeger {} --service {}",
                    query.address,
                    query.services.join(" --service ")
                )
            }
            #[cfg(feature = "otlp")]
            Source::Listen(listen) => format!("--listen {}", listen.address),
        }
    }
}

#[cfg(feature = "otlp")]
mod listen {
    use crate::commands::learn::receiver::Receiver;
    use crate::interrupt;
    use anyhow::{Result, bail};
    use corsair::CancelToken;
    use corsair_arch::Recording;
    use std::io::{self, Write};
    use std::net::SocketAddr;
    use std::time::{Duration, Instant};

    /// The interval at which the receiver checks whether the recording should end.
    const TICK: Duration = Duration::from_millis(50);

    /// The interval of reports.
    const REPORT: Duration = Duration::from_secs(10);

    /// A recording of spans that services send.
    #[derive(Debug)]
    pub struct Listen {
        pub address: SocketAddr,
        pub lasting: Option<Duration>,
        pub per_kind: usize,
    }

    impl Listen {
        /// Records until the time is over or Ctrl-C is pressed.
        ///
        /// # Errors
        /// If the address cannot be used, or nothing was received.
        pub fn record(&self) -> Result<Recording> {
            let cancel = CancelToken::default();
            interrupt::on_ctrl_c(cancel.clone());
            let receiver = Receiver::start(self.address, self.per_kind)?;
            self.introduce(&receiver);
            let begin = Instant::now();
            let mut reported = begin;
            while !cancel.is_cancelled() && self.lasting.is_none_or(|time| begin.elapsed() < time) {
                std::thread::sleep(TICK);
                if reported.elapsed() > REPORT {
                    reported = Instant::now();
                    let (spans, traces) = receiver.counts();
                    say(&format!("{spans} spans received, {traces} traces kept"));
                }
            }
            let reservoir = receiver.finish();
            let (received, traces) = (reservoir.received(), reservoir.traces());
            if received == 0 {
                bail!(
                    "--listen {}: no spans were received; set OTEL_EXPORTER_OTLP_ENDPOINT of the services to it",
                    self.address
                );
            }
            say(&format!(
                "{received} spans received, {traces} traces kept; learning"
            ));
            if reservoir.lost() > 0 {
                say(&format!(
                    "{} spans were dropped, because their traces have more than 10000",
                    reservoir.lost()
                ));
            }
            Ok(reservoir.into_recording())
        }

        fn introduce(&self, receiver: &Receiver) {
            let addresses: Vec<String> = receiver
                .addresses()
                .iter()
                .map(SocketAddr::to_string)
                .collect();
            say(&format!(
                "receiving OTLP over HTTP and gRPC at {}; {}",
                addresses.join(" and "),
                match self.lasting {
                    Some(time) => format!("Ctrl-C or {time:?} end the recording"),
                    None => "Ctrl-C ends the recording".to_owned(),
                }
            ));
            if !self.address.ip().is_loopback() {
                say(&format!(
                    "warning: --listen {} can be reached from other machines, without encryption: whoever reaches it can \
                     add spans",
                    self.address
                ));
            }
        }
    }

    fn say(text: &str) {
        let _ = writeln!(io::stderr(), "corsair: {text}");
    }
}
