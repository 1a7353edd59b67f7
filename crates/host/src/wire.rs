//! The messages that actors of hosts receive.

use crate::fault::Power;
use crate::packet::Packet;
use crate::settings::Setting;
use corsair::Message;

/// The messages of hosts and of the simulation.
#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Wire {
    /// A packet from host to host.
    Packet(Box<Packet>),
    /// A change of a host's power or program.
    Power(Power),
    /// A change of a host's settings.
    Setting(Setting),
    /// A signal for the host's program.
    Signal(u32),
}
