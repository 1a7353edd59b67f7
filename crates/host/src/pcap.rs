//! Writes packets to a file for Wireshark and tcpdump.

use crate::packet::{Packet, Payload, Segment};
use std::io::{self, Write};
use std::net::IpAddr;

/// The magic number of files with times in nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// Packets begin with the IP header (`LINKTYPE_RAW`).
const RAW: u32 = 101;
const LONGEST: u32 = 65_535;

/// Writes packets with their virtual times in nanoseconds.
pub(crate) fn write<'a>(
    to: &mut impl Write,
    packets: impl Iterator<Item = (u64, &'a Packet)>,
) -> io::Result<()> {
    to.write_all(&MAGIC.to_le_bytes())?;
    to.write_all(&[2, 0, 4, 0])?;
    for number in [0, 0, LONGEST, RAW] {
        to.write_all(&number.to_le_bytes())?;
    }
    for (time, packet) in packets {
        let bytes = encode(packet);
        let (seconds, nanos) = (time / 1_000_000_000, time % 1_000_000_000);
        let length = bytes.len() as u32;
        for number in [seconds as u32, nanos as u32, length, length] {
            to.write_all(&number.to_le_bytes())?;
        }
        to.write_all(&bytes)?;
    }
    Ok(())
}

/// Returns the checksum of an IPv4 header.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or(0);
        u32::from(u16::from_be_bytes([pair[0], low]))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Returns a packet with its IP header.
fn encode(packet: &Packet) -> Vec<u8> {
    let is_v4 = packet.source.is_ipv4();
    let (protocol, body) = match &packet.payload {
        Payload::Tcp(segment) => (6, tcp(packet, segment)),
        Payload::Udp(data) => (17, udp(packet, data)),
        Payload::Unreachable if is_v4 => (1, vec![3, 3, 0, 0, 0, 0, 0, 0]),
        Payload::Unreachable => (58, vec![1, 4, 0, 0, 0, 0, 0, 0]),
    };
    let mut bytes = vec![];
    match (packet.source.ip(), packet.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            bytes.extend([0x45, 0]);
            bytes.extend(((body.len() + 20) as u16).to_be_bytes());
            bytes.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
            bytes.extend(source.octets());
            bytes.extend(destination.octets());
            let sum = checksum(&bytes).to_be_bytes();
            bytes[10..12].copy_from_slice(&sum);
        }
        (source, destination) => {
            let octets = |ip: IpAddr| match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            bytes.extend([0x60, 0, 0, 0]);
            bytes.extend((body.len() as u16).to_be_bytes());
            bytes.extend([protocol, 64]);
            bytes.extend(octets(source));
            bytes.extend(octets(destination));
        }
    }
    bytes.extend(body);
    bytes
}

fn ports(packet: &Packet) -> Vec<u8> {
    let ports = [packet.source.port(), packet.destination.port()];
    ports.iter().flat_map(|port| port.to_be_bytes()).collect()
}

fn tcp(packet: &Packet, segment: &Segment) -> Vec<u8> {
    let flags = [
        (Segment::FIN, 1),
        (Segment::SYN, 2),
        (Segment::RST, 4),
        (Segment::ACK, 16),
    ];
    let flags = flags.iter().filter(|&&(own, _)| segment.has(own));
    let mut bytes = ports(packet);
    bytes.extend((segment.sequence as u32).to_be_bytes());
    bytes.extend((segment.acknowledged as u32).to_be_bytes());
    bytes.extend([0x50, flags.map(|&(_, bit)| bit).sum()]);
    bytes.extend((segment.window.min(LONGEST) as u16).to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(&segment.data);
    bytes
}

fn udp(packet: &Packet, data: &[u8]) -> Vec<u8> {
    let mut bytes = ports(packet);
    bytes.extend(((data.len() + 8) as u16).to_be_bytes());
    bytes.extend([0; 2]);
    bytes.extend(data);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_header_and_a_record_for_each_packet() {
        let packet = Packet {
            source: "10.0.0.1:1000".parse().unwrap(),
            destination: "10.0.0.2:80".parse().unwrap(),
            payload: Payload::Tcp(Segment {
                flags: Segment::SYN | Segment::ACK,
                data: b"abc".to_vec(),
                ..Segment::default()
            }),
        };
        let mut file = vec![];
        write(&mut file, [(1_000_000_007, &packet)].into_iter()).unwrap();
        assert_eq!(file.len(), 24 + 16 + 20 + 20 + 3);
        assert_eq!(&file[24..32], &[1, 0, 0, 0, 7, 0, 0, 0]);
        let ip = &file[40..60];
        assert_eq!(checksum(ip), 0, "a header with its sum has the sum 0");
        assert_eq!(&ip[12..20], &[10, 0, 0, 1, 10, 0, 0, 2]);
        assert_eq!(file[60 + 13], 2 | 16, "SYN and ACK");
        assert_eq!(&file[80..], b"abc");
    }
}
