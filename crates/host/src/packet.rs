//! Packets between hosts: TCP segments and UDP datagrams, and their serialized form.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A packet between two hosts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Packet {
    /// The sender's address and port.
    pub source: SocketAddr,
    /// The receiver's address and port.
    pub destination: SocketAddr,
    /// The contents of the packet.
    pub payload: Payload,
}

/// The contents of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Payload {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Udp(Vec<u8>),
    /// No socket is bound to the UDP port of a datagram (ICMP port unreachable).
    Unreachable,
}

impl Payload {
    /// Returns the number of bytes that programs have written.
    pub fn bytes(&self) -> usize {
        match self {
            Payload::Tcp(segment) => segment.data.len(),
            Payload::Udp(data) => data.len(),
            Payload::Unreachable => 0,
        }
    }
}

/// A TCP segment. Sequence number 0 is the SYN; byte `k` of the stream has sequence number `k + 1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Segment {
    /// A combination of [`Segment::SYN`], [`Segment::ACK`], [`Segment::FIN`] and [`Segment::RST`].
    pub flags: u8,
    /// The sequence number of the first byte.
    pub sequence: u64,
    /// The next sequence number that the sender expects.
    pub acknowledged: u64,
    /// The free capacity of the sender's receive buffer, in bytes.
    pub window: u32,
    /// Bytes of the stream.
    pub data: Vec<u8>,
}

impl Segment {
    /// The segment opens a connection.
    pub const SYN: u8 = 1;
    /// The field `acknowledged` is valid.
    pub const ACK: u8 = 2;
    /// The sender has no more data.
    pub const FIN: u8 = 4;
    /// The connection does not exist, or is aborted.
    pub const RST: u8 = 8;

    /// True if all bits of `flags` are set.
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// Returns the answer of a host on which the connection does not exist; `None` for a reset.
    pub fn refusal(&self) -> Option<Segment> {
        if self.has(Segment::RST) {
            return None;
        }
        Some(Segment {
            flags: Segment::RST | Segment::ACK,
            sequence: self.acknowledged,
            acknowledged: self.sequence + self.data.len() as u64 + 1,
            ..Segment::default()
        })
    }
}

impl Packet {
    /// Returns the answer of a host that has power but runs no process.
    pub fn refusal(&self) -> Option<Packet> {
        let payload = match &self.payload {
            Payload::Tcp(segment) => Payload::Tcp(segment.refusal()?),
            Payload::Udp(_) => Payload::Unreachable,
            Payload::Unreachable => return None,
        };
        Some(Packet {
            source: self.destination,
            destination: self.source,
            payload,
        })
    }

    /// Appends the packet as bytes.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        for address in [self.source, self.destination] {
            match address.ip() {
                IpAddr::V4(ip) => {
                    to.push(4);
                    to.extend(ip.octets());
                }
                IpAddr::V6(ip) => {
                    to.push(6);
                    to.extend(ip.octets());
                }
            }
            to.extend(address.port().to_le_bytes());
        }
        match &self.payload {
            Payload::Tcp(segment) => {
                to.extend([0, segment.flags]);
                to.extend(segment.sequence.to_le_bytes());
                to.extend(segment.acknowledged.to_le_bytes());
                to.extend(segment.window.to_le_bytes());
                write_bytes(&segment.data, to);
            }
            Payload::Udp(data) => {
                to.push(1);
                write_bytes(data, to);
            }
            Payload::Unreachable => to.push(2),
        }
    }

    /// Returns an upper bound of the bytes that [`Packet::write`] appends.
    pub(crate) fn size(&self) -> usize {
        self.payload.bytes() + 80
    }
}

fn write_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    to.extend((bytes.len() as u32).to_le_bytes());
    to.extend_from_slice(bytes);
}

/// Reads data that the process at the other end of a channel has written. Both processes run the same program.
#[derive(Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// Returns the next bytes; `None` if there are fewer.
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn counted(&mut self) -> Option<Vec<u8>> {
        let count = self.u32()? as usize;
        self.bytes(count).map(<[u8]>::to_vec)
    }

    fn address(&mut self) -> Option<SocketAddr> {
        let ip = match self.u8()? {
            4 => IpAddr::V4(Ipv4Addr::from(self.array::<4>()?)),
            6 => IpAddr::V6(Ipv6Addr::from(self.array::<16>()?)),
            _ => return None,
        };
        Some(SocketAddr::new(ip, self.u16()?))
    }

    /// Returns the next packet; `None` if the bytes are not a packet.
    pub(crate) fn packet(&mut self) -> Option<Packet> {
        let source = self.address()?;
        let destination = self.address()?;
        let payload = match self.u8()? {
            0 => Payload::Tcp(Segment {
                flags: self.u8()?,
                sequence: self.u64()?,
                acknowledged: self.u64()?,
                window: self.u32()?,
                data: self.counted()?,
            }),
            1 => Payload::Udp(self.counted()?),
            2 => Payload::Unreachable,
            _ => return None,
        };
        Some(Packet {
            source,
            destination,
            payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        let payloads = [
            Payload::Tcp(Segment {
                flags: Segment::SYN | Segment::ACK,
                sequence: 7,
                acknowledged: u64::MAX,
                window: 65_536,
                data: vec![1, 2, 3],
            }),
            Payload::Udp(vec![]),
            Payload::Unreachable,
        ];
        let mut bytes = vec![];
        let packets = payloads.map(|payload| Packet {
            source: "10.0.0.1:80".parse().unwrap(),
            destination: "[fd00::2]:65535".parse().unwrap(),
            payload,
        });
        packets.iter().for_each(|packet| packet.write(&mut bytes));
        let mut reader = Reader(&bytes);
        for packet in &packets {
            assert_eq!(reader.packet().as_ref(), Some(packet));
        }
        assert_eq!(reader.packet(), None);
    }
}
