//! Access to the memory of the program that makes a call.
//!
//! A host's kernel runs in the program's process, so a pointer of the program is used directly. An invalid pointer
//! causes a segmentation fault, where the real kernel would return `EFAULT`.
#![allow(unsafe_code, reason = "dereferences pointers of the program")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A negative error number.
pub(crate) type Error = isize;

/// Returns the error number in the form of a call's result.
pub(crate) const fn error(number: i32) -> isize {
    -(number as isize)
}

/// Reads a value.
pub(crate) fn read<T: Copy>(address: usize) -> Result<T, Error> {
    if address == 0 {
        return Err(error(libc::EFAULT));
    }
    // SAFETY: the program passed the pointer to a call that reads a `T`, plain old data, from it.
    Ok(unsafe { (address as *const T).read_unaligned() })
}

/// Writes a value.
pub(crate) fn write<T: Copy>(address: usize, value: T) -> Result<(), Error> {
    if address == 0 {
        return Err(error(libc::EFAULT));
    }
    // SAFETY: the program passed the pointer to a call that writes a `T`, plain old data, to it.
    unsafe { (address as *mut T).write_unaligned(value) };
    Ok(())
}

/// Returns the bytes that a call reads.
pub(crate) fn bytes<'a>(address: usize, length: usize) -> &'a [u8] {
    if length == 0 || address == 0 {
        return &[];
    }
    // SAFETY: the program passed this buffer to a call that reads it, and does not run until the call returns.
    unsafe { std::slice::from_raw_parts(address as *const u8, length) }
}

/// Returns the bytes to which a call writes.
pub(crate) fn bytes_mut<'a>(address: usize, length: usize) -> &'a mut [u8] {
    if length == 0 || address == 0 {
        return &mut [];
    }
    // SAFETY: the program passed this buffer to a call that writes it, and does not run until the call returns.
    unsafe { std::slice::from_raw_parts_mut(address as *mut u8, length) }
}

/// Reads a string that ends with a zero byte.
pub(crate) fn string(address: usize) -> Result<String, Error> {
    if address == 0 {
        return Err(error(libc::EFAULT));
    }
    // SAFETY: the program passed the pointer to a call that reads a string from it.
    let text = unsafe { std::ffi::CStr::from_ptr(address as *const libc::c_char) };
    Ok(text.to_string_lossy().into_owned())
}

/// Reads a path as bytes.
pub(crate) fn path(address: usize) -> Result<Vec<u8>, Error> {
    if address == 0 {
        return Err(error(libc::EFAULT));
    }
    // SAFETY: the program passed the pointer to a call that reads a string from it.
    let path = unsafe { std::ffi::CStr::from_ptr(address as *const libc::c_char) };
    Ok(path.to_bytes().to_vec())
}

/// Buffers of a call, in order.
#[derive(Clone, Debug)]
pub(crate) struct Buffers(pub Vec<(usize, usize)>);

impl Buffers {
    /// Creates a list of one buffer.
    pub(crate) fn one(address: usize, length: usize) -> Buffers {
        Buffers(vec![(address, length)])
    }

    /// Reads the buffers from an array of `iovec`.
    pub(crate) fn vector(address: usize, count: usize) -> Result<Buffers, Error> {
        if count > 1024 {
            return Err(error(libc::EINVAL));
        }
        let entry = |index| {
            let vector: libc::iovec = read(address + index * size_of::<libc::iovec>())?;
            Ok((vector.iov_base as usize, vector.iov_len))
        };
        (0..count).map(entry).collect::<Result<_, _>>().map(Buffers)
    }

    /// Returns the total length of the buffers.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|&(_, length)| length).sum()
    }

    /// Returns the buffers without their first `count` bytes.
    pub(crate) fn after(&self, mut count: usize) -> Buffers {
        let rest = self.0.iter().map(|&(address, length)| {
            let skipped = count.min(length);
            count -= skipped;
            (address + skipped, length - skipped)
        });
        Buffers(rest.collect())
    }

    /// Copies the contents of the buffers, at most `most` bytes.
    pub(crate) fn gather(&self, most: usize) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len().min(most));
        for &(address, length) in &self.0 {
            let length = length.min(most - all.len());
            all.extend_from_slice(bytes(address, length));
        }
        all
    }

    /// Fills the buffers, and returns the number of bytes written.
    pub(crate) fn scatter(&self, mut from: &[u8]) -> usize {
        let before = from.len();
        for &(address, length) in &self.0 {
            let (part, rest) = from.split_at(length.min(from.len()));
            bytes_mut(address, part.len()).copy_from_slice(part);
            from = rest;
        }
        before - from.len()
    }
}

/// Reads a `timespec`, and returns it in nanoseconds.
pub(crate) fn timespec(address: usize) -> Result<u64, Error> {
    let time: libc::timespec = read(address)?;
    if time.tv_sec < 0 || !(0..1_000_000_000).contains(&time.tv_nsec) {
        return Err(error(libc::EINVAL));
    }
    Ok((time.tv_sec as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec as u64))
}

/// Converts nanoseconds to a `timespec`.
pub(crate) fn to_timespec(nanos: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (nanos / 1_000_000_000) as i64,
        tv_nsec: (nanos % 1_000_000_000) as i64,
    }
}

/// Reads an internet address. An IPv4-mapped IPv6 address becomes an IPv4 address.
pub(crate) fn socket_address(address: usize, length: usize) -> Result<SocketAddr, Error> {
    if length < 2 {
        return Err(error(libc::EINVAL));
    }
    match i32::from(read::<libc::sa_family_t>(address)?) {
        libc::AF_INET if length >= size_of::<libc::sockaddr_in>() => {
            let v4: libc::sockaddr_in = read(address)?;
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Ok(SocketAddr::new(ip.into(), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 if length >= size_of::<libc::sockaddr_in6>() => {
            let v6: libc::sockaddr_in6 = read(address)?;
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Ok(SocketAddr::new(
                ip.to_canonical(),
                u16::from_be(v6.sin6_port),
            ))
        }
        libc::AF_INET | libc::AF_INET6 => Err(error(libc::EINVAL)),
        _ => Err(error(libc::EAFNOSUPPORT)),
    }
}

/// Returns an internet address as bytes, in the format of this family.
pub(crate) fn address_bytes(family: i32, address: SocketAddr) -> Vec<u8> {
    let mut bytes = vec![];
    let port = address.port().to_be_bytes();
    match (family, address.ip()) {
        (libc::AF_INET, IpAddr::V4(ip)) => {
            bytes.extend((libc::AF_INET as u16).to_ne_bytes());
            bytes.extend(port);
            bytes.extend(ip.octets());
            bytes.extend([0; 8]);
        }
        (_, ip) => {
            let ip = match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            bytes.extend((libc::AF_INET6 as u16).to_ne_bytes());
            bytes.extend(port);
            bytes.extend([0; 4]);
            bytes.extend(ip.octets());
            bytes.extend([0; 4]);
        }
    }
    bytes
}

/// Writes an address and its length like `getsockname`: truncated to the capacity, with the full length.
pub(crate) fn write_address(bytes: &[u8], to: usize, length_at: usize) -> Result<(), Error> {
    if to == 0 || length_at == 0 {
        return Ok(());
    }
    let capacity: libc::socklen_t = read(length_at)?;
    let cut = bytes.len().min(capacity as usize);
    bytes_mut(to, cut).copy_from_slice(&bytes[..cut]);
    write(length_at, bytes.len() as libc::socklen_t)
}
