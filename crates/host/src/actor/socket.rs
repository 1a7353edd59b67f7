//! Sockets of actors: streams, listeners, datagrams.

use super::net::{Net, Pair, Port};
use crate::tcp::{Change, State as TcpState};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The maximum size of a datagram in bytes.
const LONGEST_DATAGRAM: usize = 65_507;

impl Net {
    /// Opens a connection to a port of a host, such as `"server:80"`.
    ///
    /// # Errors
    /// The errors are those of Linux: the host refuses, does not answer, or does not exist.
    pub async fn connect(&self, to: &str) -> io::Result<Stream> {
        let peer = self.resolve(to)?;
        let pair = self.state().open(peer)?;
        let stream = Stream::new(self.clone(), pair);
        stream.connected().await?;
        Ok(stream)
    }

    /// Accepts connections at a port of this host.
    ///
    /// # Errors
    /// If the port is in use.
    pub fn listen(&self, port: u16) -> io::Result<Listener> {
        let mut state = self.state();
        if state.listeners.contains_key(&port) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        state.listeners.insert(port, Port::default());
        Ok(Listener::new(self.clone(), port))
    }

    /// Opens a UDP port of this host. If the port is 0, a free port is chosen.
    ///
    /// # Errors
    /// If the port is in use.
    pub fn bind(&self, port: u16) -> io::Result<Datagrams> {
        let mut state = self.state();
        let port = match port {
            0 => state.free_port(|state, port| state.datagrams.contains_key(&port))?,
            port if state.datagrams.contains_key(&port) => {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            port => port,
        };
        state.datagrams.insert(port, Port::default());
        Ok(Datagrams::new(self.clone(), port))
    }
}

/// A TCP connection of an actor. It implements tokio's I/O traits. Dropping this value closes the connection.
pub struct Stream {
    net: Net,
    pair: Pair,
}

impl Stream {
    fn new(net: Net, pair: Pair) -> Stream {
        Stream { net, pair }
    }

    /// Returns the address of this side.
    pub fn local_addr(&self) -> SocketAddr {
        self.pair.0
    }

    /// Returns the address of the other side.
    pub fn peer_addr(&self) -> SocketAddr {
        self.pair.1
    }

    /// Waits for the end of the handshake.
    async fn connected(&self) -> io::Result<()> {
        poll_fn(|context| {
            let mut state = self.net.state();
            let Some(socket) = state.sockets.get_mut(&self.pair) else {
                return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
            };
            match socket.connection.state {
                TcpState::Established => Poll::Ready(Ok(())),
                TcpState::Closed => Poll::Ready(Err(failure(&mut socket.connection.error))),
                TcpState::Connecting | TcpState::Accepting => {
                    wait(&mut socket.waiting, context);
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// Registers the context's waker, which is called when the state changes.
fn wait(waiting: &mut Vec<Waker>, context: &Context<'_>) {
    let waker = context.waker();
    if !waiting.iter().any(|known| known.will_wake(waker)) {
        waiting.push(waker.clone());
    }
}

/// Returns the error of a connection. The error is reported once; later calls return a broken pipe.
fn failure(error: &mut i32) -> io::Error {
    match std::mem::take(error) {
        0 => io::Error::from_raw_os_error(libc::EPIPE),
        number => io::Error::from_raw_os_error(number),
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.net.state().close(self.pair, false);
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("local", &self.pair.0)
            .field("peer", &self.pair.1)
            .finish()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.net.state();
        let Some(socket) = state.sockets.get_mut(&self.pair) else {
            return Poll::Ready(Ok(()));
        };
        let connection = &mut socket.connection;
        if connection.readable() == 0 && buffer.remaining() > 0 {
            if connection.state == TcpState::Closed && connection.error != 0 {
                return Poll::Ready(Err(failure(&mut connection.error)));
            }
            if connection.is_at_end() {
                return Poll::Ready(Ok(()));
            }
            wait(&mut socket.waiting, context);
            return Poll::Pending;
        }
        let most = buffer.remaining();
        let read = state.drive(self.pair, |connection, _, out| {
            (connection.read(most, false, out), Change::default())
        });
        buffer.put_slice(&read.unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.net.state();
        let Some(socket) = state.sockets.get_mut(&self.pair) else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let connection = &mut socket.connection;
        if connection.state == TcpState::Closed || connection.is_shut_for_writing() {
            return Poll::Ready(Err(failure(&mut connection.error)));
        }
        if connection.writable() == 0 && !bytes.is_empty() {
            wait(&mut socket.waiting, context);
            return Poll::Pending;
        }
        let count = state.drive(self.pair, |connection, now, out| {
            (connection.write(bytes, now, out), Change::default())
        });
        Poll::Ready(Ok(count.unwrap_or(0)))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.net.state().drive(self.pair, |connection, now, out| {
            (connection.shut_writing(now, out), Change::default())
        });
        Poll::Ready(Ok(()))
    }
}

/// A listener that accepts connections at a port of an actor. After it is dropped, further connections are refused.
#[derive(Debug)]
pub struct Listener {
    net: Net,
    port: u16,
}

impl Listener {
    fn new(net: Net, port: u16) -> Listener {
        Listener { net, port }
    }

    /// Waits for the next connection.
    pub async fn accept(&self) -> Stream {
        let pair = poll_fn(|context| {
            let mut state = self.net.state();
            let port = state.listeners.entry(self.port).or_default();
            match port.queue.pop_front() {
                Some(pair) => Poll::Ready(pair),
                None => {
                    wait(&mut port.waiting, context);
                    Poll::Pending
                }
            }
        });
        Stream::new(self.net.clone(), pair.await)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut state = self.net.state();
        if let Some(port) = state.listeners.remove(&self.port) {
            port.queue
                .into_iter()
                .for_each(|pair| state.close(pair, true));
        }
    }
}

/// A UDP port of an actor, for sending and receiving datagrams.
#[derive(Debug)]
pub struct Datagrams {
    net: Net,
    port: u16,
}

impl Datagrams {
    fn new(net: Net, port: u16) -> Datagrams {
        Datagrams { net, port }
    }

    /// Returns the local port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends a datagram to a port of a host, such as `"server:53"`. The datagram may be lost.
    ///
    /// # Errors
    /// If there is no such host, or the datagram is too long.
    pub fn send_to(&self, data: &[u8], to: &str) -> io::Result<()> {
        let to = self.net.resolve(to)?;
        if data.len() > LONGEST_DATAGRAM {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        self.net.state().send_datagram(self.port, to, data);
        Ok(())
    }

    /// Waits for the next datagram, and returns it with its sender's address.
    pub async fn recv_from(&self) -> (Vec<u8>, SocketAddr) {
        poll_fn(|context| {
            let mut state = self.net.state();
            let port = state.datagrams.entry(self.port).or_default();
            match port.queue.pop_front() {
                Some((from, data)) => Poll::Ready((data, from)),
                None => {
                    wait(&mut port.waiting, context);
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        self.net.state().datagrams.remove(&self.port);
    }
}
