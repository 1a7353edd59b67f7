//! The public interface on platforms that cannot simulate programs. Tests compile on these platforms and fail with a
//! clear error. No value of [`Sim`] can be created.

use crate::disk::Disk;
use crate::error::SimError;
use crate::fault::Fault;
use crate::log::Line;
use crate::observed::Traffic;
use crate::state::{HostId, HostState};
use crate::{Options, Outcome};
use corsair::Time;
use corsair::network::Network;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A simulation, which cannot exist on this platform.
#[derive(Debug)]
pub struct Sim(Infallible);

#[allow(missing_docs, reason = "documented on platforms with simulations")]
impl Sim {
    pub fn seed(&self) -> u64 {
        match self.0 {}
    }

    pub fn host<T: std::process::Termination>(
        &mut self,
        _: impl Into<String>,
        _: impl Fn() -> T + Send + Sync + 'static,
    ) -> HostId {
        match self.0 {}
    }

    pub fn hosts<T: std::process::Termination>(
        &mut self,
        _: &str,
        _: usize,
        _: impl Fn(usize) -> T + Clone + Send + Sync + 'static,
    ) -> Vec<HostId> {
        match self.0 {}
    }

    pub fn actor<B>(
        &mut self,
        _: impl Into<String>,
        _: impl Fn(Net) -> B + Send + Sync + 'static,
    ) -> HostId
    where
        B: Future<Output: Outcome> + Send + 'static,
    {
        match self.0 {}
    }

    pub fn actors<B>(
        &mut self,
        _: &str,
        _: usize,
        _: impl Fn(usize, Net) -> B + Clone + Send + Sync + 'static,
    ) -> Vec<HostId>
    where
        B: Future<Output: Outcome> + Send + 'static,
    {
        match self.0 {}
    }

    pub fn executable(
        &mut self,
        _: impl Into<String>,
        _: impl Into<PathBuf>,
        _: impl Into<PathBuf>,
    ) -> HostId {
        match self.0 {}
    }

    pub fn readable(&mut self, _: &HostId, _: impl Into<PathBuf>) {
        match self.0 {}
    }

    pub fn env_of(&mut self, _: &HostId, _: &str, _: &str) {
        match self.0 {}
    }

    pub fn at(&mut self, _: Duration, _: Fault) {
        match self.0 {}
    }

    pub fn network(&mut self, _: impl Network) {
        match self.0 {}
    }

    pub fn link(&mut self, _: &HostId, _: &HostId, _: impl Network) {
        match self.0 {}
    }

    pub fn disk(&mut self, _: Disk) {
        match self.0 {}
    }

    pub fn file(&mut self, _: &HostId, _: &str, _: impl Into<Vec<u8>>) {
        match self.0 {}
    }

    pub fn read_file(&self, _: &HostId, _: &str) -> Option<Vec<u8>> {
        match self.0 {}
    }

    pub fn args<T: Into<String>>(&mut self, _: &HostId, _: impl IntoIterator<Item = T>) {
        match self.0 {}
    }

    pub fn env(&mut self, _: &str, _: &str) {
        match self.0 {}
    }

    pub fn preemption(&mut self, _: u32) {
        match self.0 {}
    }

    pub fn processor_limit(&mut self, _: Duration) {
        match self.0 {}
    }

    pub fn address(&self, _: &HostId) -> IpAddr {
        match self.0 {}
    }

    pub fn run_until(&mut self, _: Duration) -> Result<(), SimError> {
        match self.0 {}
    }

    pub fn state(&self, _: &HostId) -> HostState {
        match self.0 {}
    }

    pub fn lines(&self) -> Vec<Line> {
        match self.0 {}
    }

    pub fn log(&self) -> String {
        match self.0 {}
    }

    pub fn now(&self) -> Time {
        match self.0 {}
    }

    pub fn digest(&mut self) -> u64 {
        match self.0 {}
    }

    pub fn all_hosts(&self) -> Vec<(HostId, String)> {
        match self.0 {}
    }

    pub fn is_over(&self) -> bool {
        match self.0 {}
    }

    pub fn is_paused(&self, _: &HostId) -> bool {
        match self.0 {}
    }

    pub fn separated_from(&self, _: &HostId) -> Vec<HostId> {
        match self.0 {}
    }

    pub fn last_lines(&self, _: &HostId, _: usize) -> Vec<Line> {
        match self.0 {}
    }

    pub fn traffic(&self) -> Vec<Traffic> {
        match self.0 {}
    }

    pub fn counters(&self) -> std::collections::BTreeMap<String, u64> {
        match self.0 {}
    }

    pub fn totals(&self) -> (u64, u64) {
        match self.0 {}
    }
}

/// The sockets of an actor, which cannot exist on this platform.
#[derive(Clone, Debug)]
pub struct Net(Infallible);

#[allow(missing_docs, reason = "documented on platforms with simulations")]
impl Net {
    pub fn now(&self) -> Time {
        match self.0 {}
    }

    pub fn random(&self) -> u64 {
        match self.0 {}
    }

    pub fn name(&self) -> String {
        match self.0 {}
    }

    pub fn below(&self, _: u32) -> u32 {
        match self.0 {}
    }

    pub fn count(&self, _: &str, _: u64) {
        match self.0 {}
    }

    pub fn log(&self, _: &str) {
        match self.0 {}
    }

    pub async fn sleep(&self, _: Duration) {
        match self.0 {}
    }

    pub async fn timeout<T>(&self, _: Duration, _: impl Future<Output = T>) -> Option<T> {
        match self.0 {}
    }

    pub fn spawn(&self, _: impl Future<Output = ()> + Send + 'static) {
        match self.0 {}
    }

    pub async fn connect(&self, _: &str) -> io::Result<Stream> {
        match self.0 {}
    }

    pub fn listen(&self, _: u16) -> io::Result<Listener> {
        match self.0 {}
    }

    pub fn bind(&self, _: u16) -> io::Result<Datagrams> {
        match self.0 {}
    }
}

/// A connection of an actor, which cannot exist on this platform.
#[derive(Debug)]
pub struct Stream(Infallible);

#[allow(missing_docs, reason = "documented on platforms with simulations")]
impl Stream {
    pub fn local_addr(&self) -> SocketAddr {
        match self.0 {}
    }

    pub fn peer_addr(&self) -> SocketAddr {
        match self.0 {}
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.0 {}
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        match self.0 {}
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }
}

/// A listener of an actor, which cannot exist on this platform.
#[derive(Debug)]
pub struct Listener(Infallible);

#[allow(missing_docs, reason = "documented on platforms with simulations")]
impl Listener {
    pub async fn accept(&self) -> Stream {
        match self.0 {}
    }
}

/// Datagrams of an actor, which cannot exist on this platform.
#[derive(Debug)]
pub struct Datagrams(Infallible);

#[allow(missing_docs, reason = "documented on platforms with simulations")]
impl Datagrams {
    pub fn port(&self) -> u16 {
        match self.0 {}
    }

    pub fn send_to(&self, _: &[u8], _: &str) -> io::Result<()> {
        match self.0 {}
    }

    pub async fn recv_from(&self) -> (Vec<u8>, SocketAddr) {
        match self.0 {}
    }
}

/// Fails, because a test cannot run on this platform.
///
/// # Panics
/// Always.
pub fn run_test<O: Outcome>(_: &str, _: Options, _: fn(&mut Sim) -> O) {
    panic!("{}", SimError::Platform);
}

/// Does nothing: no process is a host on this platform.
pub fn preload() {}

/// Returns an empty path, because the program is not started again on this platform.
pub fn program() -> &'static PathBuf {
    static NONE: PathBuf = PathBuf::new();
    &NONE
}

/// Fails on this platform.
///
/// # Errors
/// Always.
pub fn init() -> Result<(), String> {
    Err(SimError::Platform.to_string())
}

/// Fails on this platform.
///
/// # Errors
/// [`SimError::Platform`].
pub fn simulate<O: Outcome>(
    _: u64,
    _: NonZeroUsize,
    _: impl Fn(&mut Sim) -> O,
) -> Result<(Option<String>, u64), SimError> {
    Err(SimError::Platform)
}
