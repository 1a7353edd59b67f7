//! Connections whose clients must read answers in time.
//!
//! The unread answers of a client use the node's memory. So while a write is blocked, the client must read [`STEP`]
//! bytes within a time limit; otherwise the connection is closed. This does not apply to WebSockets: their readers may
//! be slow, their queues are bounded, and heartbeats detect dead peers.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The number of bytes that a client has to read within the time limit.
const STEP: usize = 4 << 10;

/// A connection with a time limit for writes. See the [module](self).
pub(super) struct WriteDeadline<S> {
    stream: S,
    time: Duration,
    /// Set once the connection is a WebSocket.
    lifted: Arc<AtomicBool>,
    /// The timer of the write that currently waits for the client.
    running: Option<Pin<Box<Sleep>>>,
    /// The bytes written since the timer was started.
    written: usize,
}

impl<S> WriteDeadline<S> {
    pub fn new(stream: S, time: Duration, lifted: Arc<AtomicBool>) -> WriteDeadline<S> {
        WriteDeadline {
            stream,
            time,
            lifted,
            running: None,
            written: 0,
        }
    }

    fn stop(&mut self) {
        self.running = None;
        self.written = 0;
    }

    fn check(
        &mut self,
        task: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(count)) => {
                self.written += count;
                if self.written >= STEP {
                    self.stop();
                }
            }
            Poll::Pending if !self.lifted.load(Relaxed) => {
                let time = self.time;
                let running = self.running.get_or_insert_with(|| {
                    self.written = 0;
                    Box::pin(sleep(time))
                });
                if running.as_mut().poll(task).is_ready() {
                    let reason = "the client does not read its answer";
                    return Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, reason)));
                }
            }
            _ => {}
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteDeadline<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(task, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteDeadline<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(task, bytes);
        self.check(task, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(task, slices);
        self.check(task, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // A flush needs no deadline, because it follows a completed write.
    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stop();
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    fn slow(
        lifted: bool,
    ) -> (
        WriteDeadline<tokio::io::DuplexStream>,
        tokio::io::DuplexStream,
    ) {
        let (here, there) = duplex(16);
        let lifted = Arc::new(AtomicBool::new(lifted));
        (
            WriteDeadline::new(here, Duration::from_millis(20), lifted),
            there,
        )
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_ends_the_write() {
        let (mut here, _there) = slow(false);
        let error = here.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_reads_in_the_end_gets_everything_if_the_deadline_is_lifted() {
        let (mut here, mut there) = slow(true);
        let read = tokio::spawn(async move {
            sleep(Duration::from_millis(100)).await;
            let mut all = [1; 100];
            there.read_exact(&mut all).await.unwrap();
            all
        });
        here.write_all(&[0; 100]).await.unwrap();
        assert_eq!(read.await.unwrap(), [0; 100]);
    }
}
