//! Runs unmodified services as hosts of a deterministic simulation.
//!
//! A host is a process in which a simulated kernel serves the functions of the C library: clocks, entropy, threads,
//! sockets, names. The program of a host is any Rust function, such as the real `main` of a service on tokio. All
//! dependencies of the program stay unchanged. Hosts exchange packets through [`corsair`]'s engine in virtual time. The
//! seed determines everything: latencies, random numbers, the order of threads. The same seed gives the same log and
//! the same digest, for any number of workers.
//!
//! ```ignore
//! use corsair_host::{Fault, Sim, SimError};
//! use std::time::Duration;
//!
//! #[corsair_host::test(seeds = 100)]
//! fn survives_a_crash(sim: &mut Sim) -> Result<(), SimError> {
//!     let db = sim.host("db", my_service::main_db);
//!     let _web = sim.hosts("web", 3, |number| my_service::main_web(number));
//!     sim.host("client", client_that_checks);
//!     sim.at(Duration::from_secs(2), Fault::power_loss(&db));
//!     sim.at(Duration::from_secs(3), Fault::start(&db));
//!     sim.run_until(Duration::from_secs(60))
//! }
//! ```
//!
//! Programs run on Linux on x86-64 with glibc. On other platforms the crate compiles, and a test fails with
//! [`SimError::Platform`].
//!
//! # What is simulated
//! | | |
//! |---|---|
//! | threads | `std::thread`, futexes of std and parking_lot, locks of pthreads; one runs at a time, the seed chooses |
//! | time | all clocks, sleeping, `timerfd`; a running thread takes no time |
//! | network | TCP, UDP, IPv4, IPv6, names of hosts; latency, loss and order by any [`corsair::network::Network`] |
//! | descriptors | `epoll`, `poll`, `select`, `eventfd`, `signalfd`, pipes, Unix sockets |
//! | files | a disk for each host with page cache and durable state, locks, mappings; see [`Disk`] |
//! | identity | entropy, processors (2), host name, process and thread numbers, environment, limits |
//! | addresses | heap, stacks, mappings and the program itself are at the same addresses in each run |
//! | actors | async bodies within the engine as hosts, with streams and datagrams to programs ([`Sim::actor`]) |
//! | faults | kill, power loss, restart, signals, partition; a slow, full or failing disk |
//!
//! Calls that are not simulated fail: the host logs the call with its frames, and the run ends with
//! [`HostState::Unsupported`]. Examples are `fork`, `exec` and `inotify`; the README lists them.

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod actor;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod arguments;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod calls;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod channel;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod debug;
mod disk;
mod drift;
mod error;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod executable;
mod fault;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod filesystem;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod harness;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod heap;
mod host;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod image;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod kernel;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod links;
mod log;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod machine;
mod observed;
mod options;
mod packet;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod pcap;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod processors;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod raw;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod run;
mod settings;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod setup;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod sim;
mod state;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod storage;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod symbols;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod tcp;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod uplink;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod wire;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod world;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod zygote;

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")))]
mod elsewhere;

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
pub use actor::{Datagrams, Listener, Net, Stream};
pub use corsair_derive::host_test as test;
pub use disk::Disk;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")))]
pub use elsewhere::{Datagrams, Listener, Net, Stream};
pub use error::SimError;
pub use fault::Fault;
pub use host::Host;
pub use log::Line;
pub use options::{Options, Outcome};
pub use state::{HostId, HostState};

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")))]
pub use elsewhere::{Sim, init, preload, program, run_test, simulate};
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
pub use executable::preload;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
pub use harness::{init, run_test, simulate};
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
pub use image::program;
pub use observed::Traffic;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
pub use sim::Sim;
