//! Reading and writing descriptors.

use super::objects::Kind;
use super::sockets::limit_at;
use super::user::{self, Buffers, Error, error};
use super::{Attempt, Id, Kernel, Step};
use crate::tcp::{Change, State};

/// The result of a read.
struct ReceivedMessage {
    count: isize,
    /// The address of the sender, as bytes.
    from: Option<Vec<u8>>,
    is_cut: bool,
}

/// Returns the result of reading a datagram; data that does not fit is lost.
fn datagram(buffers: &Buffers, flags: i32, from: Vec<u8>, data: &[u8]) -> ReceivedMessage {
    let written = buffers.scatter(data);
    let is_cut = written < data.len();
    let whole = is_cut && flags & libc::MSG_TRUNC != 0;
    ReceivedMessage {
        count: if whole { data.len() } else { written } as isize,
        from: Some(from),
        is_cut,
    }
}

impl Kernel {
    /// Simulates `read`, `recv` and similar calls. `after` is called with the sender of a datagram, and whether the
    /// datagram was truncated.
    pub(super) fn read(
        &mut self,
        fd: usize,
        buffers: &Buffers,
        flags: i32,
        attempt: &mut Attempt,
        after: impl FnOnce(Option<Vec<u8>>, bool) -> Result<(), Error>,
    ) -> Result<Step, Error> {
        const KNOWN: i32 = libc::MSG_PEEK
            | libc::MSG_DONTWAIT
            | libc::MSG_NOSIGNAL
            | libc::MSG_TRUNC
            | libc::MSG_CMSG_CLOEXEC;
        if flags & !KNOWN != 0 {
            return Ok(Step::Unsupported);
        }
        let now = self.now;
        let (id, object) = self.descriptors.object(fd)?;
        let nonblocking = object.nonblocking || flags & libc::MSG_DONTWAIT != 0;
        let limit = object.receive_limit;
        if let Kind::File(_) = object.kind {
            return self.read_file(id, buffers, None, attempt);
        }
        match self.read_once(id, buffers, flags)? {
            Some(received) => {
                after(received.from, received.is_cut)?;
                Ok(Step::Done(received.count))
            }
            None => {
                let until = attempt.until(|| limit_at(now, limit));
                self.wait_for(id, nonblocking, until, attempt)
            }
        }
    }

    fn read_once(
        &mut self,
        id: Id,
        buffers: &Buffers,
        flags: i32,
    ) -> Result<Option<ReceivedMessage>, Error> {
        let peek = flags & libc::MSG_PEEK != 0;
        let bytes = |bytes: &[u8]| ReceivedMessage {
            count: buffers.scatter(bytes) as isize,
            from: None,
            is_cut: false,
        };
        let Some(object) = self.descriptors.get_mut(id) else {
            return Err(error(libc::EBADF));
        };
        let number = |value: Option<u64>| match value {
            Some(_) if buffers.len() < 8 => Err(error(libc::EINVAL)),
            Some(value) => Ok(Some(bytes(&value.to_ne_bytes()))),
            None => Ok(None),
        };
        let family = object.family;
        match &mut object.kind {
            Kind::Null => Ok(Some(bytes(&[]))),
            Kind::Zero => Ok(Some(bytes(&vec![0; buffers.len()]))),
            Kind::Directory(_) => Err(error(libc::EISDIR)),
            Kind::File(_) => Err(error(libc::EBADF)),
            Kind::Entropy => {
                let random = self.random_bytes(buffers.len());
                Ok(Some(bytes(&random)))
            }
            Kind::Image(image) => super::devices::read_image(image.fd, buffers).map(|count| {
                Some(ReceivedMessage {
                    count,
                    from: None,
                    is_cut: false,
                })
            }),
            Kind::Counter(counter) => {
                let taken = counter.take();
                if taken.is_some() {
                    self.notify(id);
                }
                number(taken)
            }
            Kind::Timer(timer) => number(timer.take()),
            Kind::Pipe(_) => Ok(self.read_pipe(id, buffers.len())?.map(|read| bytes(&read))),
            Kind::Stream(_) => Ok(self
                .read_stream(id, buffers.len(), peek)?
                .map(|read| bytes(&read))),
            Kind::Tcp(_) => Ok(self
                .read_connection(id, buffers.len(), peek)?
                .map(|read| bytes(&read))),
            Kind::Udp(datagrams) => {
                if datagrams.error != 0 {
                    return Err(error(std::mem::take(&mut datagrams.error)));
                }
                Ok(datagrams.take(peek).map(|(from, data)| {
                    datagram(buffers, flags, user::address_bytes(family, from), &data)
                }))
            }
            Kind::UnixDatagrams(socket) => {
                let taken = socket.take(peek);
                if !peek && taken.is_some() {
                    self.notify(id);
                }
                Ok(taken.map(|(from, data)| datagram(buffers, flags, from, &data)))
            }
            Kind::Signals(signals) => match signals.take() {
                Some(_) if buffers.len() < 128 => Err(error(libc::EINVAL)),
                Some(info) => Ok(Some(bytes(&info))),
                None => Ok(None),
            },
            Kind::NewUnix(_) => Err(error(libc::EINVAL)),
            Kind::UnixListener(_) => Err(error(libc::EINVAL)),
            Kind::New(_) => Err(error(libc::ENOTCONN)),
            Kind::Listener(_) => Err(error(libc::ENOTCONN)),
            Kind::Log(_) => Err(error(libc::EBADF)),
            Kind::Epoll(_) => Err(error(libc::EINVAL)),
        }
    }

    fn read_connection(
        &mut self,
        id: Id,
        most: usize,
        peek: bool,
    ) -> Result<Option<Vec<u8>>, Error> {
        let connection = self.connection(id).ok_or(error(libc::EBADF))?;
        if connection.readable() == 0 {
            if connection.error != 0 && connection.state == State::Closed {
                let failure = std::mem::take(&mut connection.error);
                return Err(error(failure));
            }
            return match connection.state {
                State::Connecting | State::Accepting => Err(error(libc::ENOTCONN)),
                _ => Ok((connection.is_at_end() || most == 0).then(Vec::new)),
            };
        }
        Ok(self.drive(id, |connection, _, out| {
            (connection.read(most, peek, out), Change::default())
        }))
    }

    /// Simulates `write`, `send` and similar calls.
    pub(super) fn write(
        &mut self,
        fd: usize,
        buffers: &Buffers,
        flags: i32,
        to: Option<(usize, usize)>,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        const KNOWN: i32 = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_MORE;
        if flags & !KNOWN != 0 {
            return Ok(Step::Unsupported);
        }
        let now = self.now;
        let (id, object) = self.descriptors.object(fd)?;
        let nonblocking = object.nonblocking || flags & libc::MSG_DONTWAIT != 0;
        let limit = object.send_limit;
        if let Kind::File(_) = object.kind {
            return self.write_file(id, buffers, None, attempt);
        }
        // A blocking write to a stream waits until all bytes are written.
        let is_stream = matches!(object.kind, Kind::Pipe(_) | Kind::Stream(_) | Kind::Tcp(_));
        let is_new = matches!(object.kind, Kind::New(_));
        let total = buffers.len();
        loop {
            let rest;
            let left = match attempt.sent {
                0 => buffers,
                sent => {
                    rest = buffers.after(sent);
                    &rest
                }
            };
            let result = match self.write_once(id, left, to) {
                Ok(Some(count)) => {
                    let sent = attempt.sent + count as usize;
                    if !is_stream || nonblocking || sent >= total {
                        return Ok(Step::Done(sent as isize));
                    }
                    attempt.sent = sent;
                    continue;
                }
                Ok(None) => {
                    let until = attempt.until(|| limit_at(now, limit));
                    self.wait_for(id, nonblocking, until, attempt)
                }
                Err(failure) => Err(failure),
            };
            return match result {
                Err(_) if attempt.sent > 0 => Ok(Step::Done(attempt.sent as isize)),
                Err(failure)
                    if failure == error(libc::EPIPE)
                        && flags & libc::MSG_NOSIGNAL == 0
                        && (is_stream || is_new) =>
                {
                    Ok(Step::Raise {
                        signal: libc::SIGPIPE,
                        result: failure,
                    })
                }
                result => result,
            };
        }
    }

    fn write_once(
        &mut self,
        id: Id,
        buffers: &Buffers,
        to: Option<(usize, usize)>,
    ) -> Result<Option<isize>, Error> {
        let Some(object) = self.descriptors.get_mut(id) else {
            return Err(error(libc::EBADF));
        };
        match &mut object.kind {
            Kind::Null | Kind::Zero | Kind::Entropy => Ok(Some(buffers.len() as isize)),
            Kind::Log(stream) => {
                let stream = *stream;
                let bytes = buffers.gather(usize::MAX);
                self.log(stream, &bytes);
                Ok(Some(bytes.len() as isize))
            }
            Kind::Counter(counter) => {
                let Some(bytes) = buffers.gather(8).first_chunk::<8>().copied() else {
                    return Err(error(libc::EINVAL));
                };
                let added = counter.add(u64::from_ne_bytes(bytes));
                if added {
                    self.notify(id);
                }
                Ok(added.then_some(8))
            }
            Kind::Pipe(_) => {
                let bytes = buffers.gather(64 << 10);
                Ok(self.write_pipe(id, &bytes)?.map(|count| count as isize))
            }
            Kind::Stream(_) => {
                let bytes = buffers.gather(64 << 10);
                Ok(self.write_stream(id, &bytes)?.map(|count| count as isize))
            }
            Kind::Tcp(_) => self.write_connection(id, buffers),
            Kind::Udp(_) => {
                let to = to
                    .map(|(address, length)| user::socket_address(address, length))
                    .transpose()?;
                let data = buffers.gather(65_508);
                self.send_datagram(id, to, data).map(Some)
            }
            Kind::UnixDatagrams(_) => self.send_unix_datagram(id, to, buffers),
            Kind::NewUnix(_) | Kind::UnixListener(_) => Err(error(libc::ENOTCONN)),
            Kind::New(_) | Kind::Listener(_) => Err(error(libc::EPIPE)),
            Kind::Image(_)
            | Kind::Timer(_)
            | Kind::Signals(_)
            | Kind::Epoll(_)
            | Kind::File(_)
            | Kind::Directory(_) => Err(error(libc::EBADF)),
        }
    }

    fn write_connection(&mut self, id: Id, buffers: &Buffers) -> Result<Option<isize>, Error> {
        let connection = self.connection(id).ok_or(error(libc::EBADF))?;
        match connection.state {
            State::Closed => {
                let failure = std::mem::take(&mut connection.error);
                return Err(error(if failure == 0 { libc::EPIPE } else { failure }));
            }
            State::Established if connection.is_shut_for_writing() => {
                return Err(error(libc::EPIPE));
            }
            State::Established => {}
            _ => return Ok(None),
        }
        let bytes = buffers.gather(connection.writable());
        if bytes.is_empty() && buffers.len() > 0 {
            return Ok(None);
        }
        Ok(self.drive(id, |connection, now, out| {
            (
                connection.write(&bytes, now, out) as isize,
                Change::default(),
            )
        }))
    }

    /// Simulates `recvmsg`.
    pub(super) fn recvmsg(
        &mut self,
        fd: usize,
        message: usize,
        flags: usize,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        let header: libc::msghdr = user::read(message)?;
        let buffers = Buffers::vector(header.msg_iov as usize, header.msg_iovlen)?;
        self.read(fd, &buffers, flags as i32, attempt, |from, is_cut| {
            let mut header = header;
            if let Some(bytes) = from.filter(|_| !header.msg_name.is_null()) {
                let cut = bytes.len().min(header.msg_namelen as usize);
                user::bytes_mut(header.msg_name as usize, cut).copy_from_slice(&bytes[..cut]);
                header.msg_namelen = bytes.len() as libc::socklen_t;
            }
            header.msg_controllen = 0;
            header.msg_flags = if is_cut { libc::MSG_TRUNC } else { 0 };
            user::write(message, header)
        })
    }

    /// Simulates `sendmsg`.
    pub(super) fn sendmsg(
        &mut self,
        fd: usize,
        message: usize,
        flags: usize,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        let header: libc::msghdr = user::read(message)?;
        if header.msg_controllen > 0 && !header.msg_control.is_null() {
            return Ok(Step::Unsupported);
        }
        let to = match header.msg_name.is_null() {
            true => None,
            false => Some((header.msg_name as usize, header.msg_namelen as usize)),
        };
        let buffers = Buffers::vector(header.msg_iov as usize, header.msg_iovlen)?;
        self.write(fd, &buffers, flags as i32, to, attempt)
    }

    /// Simulates `recvfrom`.
    pub(super) fn recvfrom(
        &mut self,
        args: &crate::raw::Args,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        let [fd, buffer, length, flags, address, address_length] = *args;
        let buffers = Buffers::one(buffer, length);
        self.read(fd, &buffers, flags as i32, attempt, |from, _| match from {
            Some(from) => user::write_address(&from, address, address_length),
            None => Ok(()),
        })
    }

    /// Simulates `sendto`.
    pub(super) fn sendto(
        &mut self,
        args: &crate::raw::Args,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        let [fd, buffer, length, flags, address, address_length] = *args;
        let to = match address {
            0 => None,
            _ => Some((address, address_length)),
        };
        self.write(fd, &Buffers::one(buffer, length), flags as i32, to, attempt)
    }
}
