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
    /// A change of a host's power or program.
    Power(Power),
    /// New settings of a host's disk.
    Disk(Disk),
    /// A signal for the host's program.
    Signal(u32),
}
