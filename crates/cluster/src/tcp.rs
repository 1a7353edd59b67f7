//! A socket to another process.

use crate::lines::Wire;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub(crate) struct Tcp(TcpStream);

impl Tcp {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Tcp> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Tcp(stream))
    }
}

impl Wire for Tcp {
    fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        (&self.0).write_vectored(parts)
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buffer)
    }

    fn sleep(&self, wants_to_write: bool, most: Duration) {
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, wants_to_write);
        let most = Timespec {
            tv_sec: 0,
            tv_nsec: most.subsec_nanos().into(),
        };
        // Whatever ends it, who sleeps looks again.
        let _ = poll(&mut [PollFd::new(&self.0, flags)], Some(&most));
    }
}
