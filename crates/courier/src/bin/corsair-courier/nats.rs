//! The flags for a log that several nodes share.

use clap::Args;
use corsair_courier::Options;
use std::path::PathBuf;

/// The flags of `serve` and `reseed` for the NATS server.
#[derive(Args, Clone, Debug)]
pub struct NatsArgs {
    /// Share the log of a NATS server with other nodes; it needs -js
    #[arg(long, value_name = "URL")]
    nats: Option<String>,
    /// A file with the key that the nodes of a shared log have in common; required with --nats
    #[arg(long, value_name = "FILE")]
    nats_key: Option<PathBuf>,
    /// The stream that the nodes share; a second service on the same server needs another name
    #[arg(long, value_name = "NAME", requires = "nats")]
    nats_stream: Option<String>,
    /// Number of servers with a copy of the stream; changes an existing stream
    #[arg(long, value_name = "NUMBER", requires = "nats", value_parser = clap::value_parser!(u8).range(1..=5))]
    nats_replicas: Option<u8>,
    /// A file with USER:PASSWORD or a token for the NATS server, or a .creds file written by nsc
    #[arg(long, value_name = "FILE", requires = "nats")]
    nats_credentials: Option<PathBuf>,
    /// Certificates, as PEM, of the authority that signed the NATS server's certificate
    #[arg(long, value_name = "FILE", requires = "nats")]
    nats_ca: Option<PathBuf>,
}

impl NatsArgs {
    /// True if a NATS server is given.
    pub fn is_used(&self) -> bool {
        self.nats.is_some()
    }

    /// Sets the options for these flags.
    pub fn set(&self, options: &mut Options) {
        let NatsArgs {
            nats,
            nats_key,
            nats_stream,
            nats_replicas,
            nats_credentials,
            nats_ca,
        } = self.clone();
        options.nats = nats;
        options.nats_key = nats_key;
        options.nats_stream = nats_stream;
        options.nats_replicas = nats_replicas;
        options.nats_credentials = nats_credentials;
        options.nats_ca = nats_ca;
    }
}
