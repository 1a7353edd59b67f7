//! The messages that actors of hosts receive.

use crate::disk::Disk;
use crate::fault::Power;
use crate::packet::Packet;
use corsair::Message;

/// The messages of hosts and of the simulation.
#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Wire {
    /// A packet from host to host.
    Packet(Box<Packet>),
    /// The power or the program of a host changes.
    Power(Power),
    /// The disk of a host has other settings.
    Disk(Disk),
    /// A host's program receives a signal.
    Signal(u32),
}
