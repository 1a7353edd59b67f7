//! Faults of a simulation.

use crate::disk::Disk;
use crate::settings::Setting;
use crate::state::HostId;
use std::time::Duration;

/// A fault, or the end of a fault. [`Sim::at`](crate::Sim::at) schedules it.
///
/// | fault | process | connections of peers | memory | files |
/// |---|---|---|---|---|
/// | [`kill`](Fault::kill) | ends | closed by the host's kernel, then refused | lost | stay |
/// | [`power_loss`](Fault::power_loss) | ends | silent until a time-out | lost | unsynced data is lost |
/// | [`partition`](Fault::partition) | runs | silent until it heals or a time-out | stays | stay |
/// | [`pause`](Fault::pause) | stands still until it is resumed | open, not served | stays | stay |
/// | [`clock_forward`](Fault::clock_forward), [`clock_back`](Fault::clock_back), [`clock_rate`](Fault::clock_rate) | runs | stay | stays | stay |
/// | [`names_fail`](Fault::names_fail) | runs | stay; new ones by name fail | stays | stay |
/// | [`signal`](Fault::signal) | runs its handler, or ends | depend on the program | depends on the program | stay |
/// | [`disk`](Fault::disk) | runs | stay | stays | depend on the settings |
#[derive(Clone, Debug)]
pub struct Fault(pub(crate) Kind);

/// An event of a host's power or program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Power {
    /// The program is killed, and the host's kernel closes the program's connections.
    Kill,
    /// The host loses power immediately.
    Loss,
    /// The host is switched on, and its program is started.
    Start,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Host(HostId, Power),
    Setting(HostId, Setting),
    Signal(HostId, u32),
    /// Packets from the first group of hosts to the second are lost from now on. If the flag is set, packets in the
    /// other direction are lost too.
    Cut(Vec<HostId>, Vec<HostId>, bool),
    /// Packets between the two groups are delivered again.
    Heal(Vec<HostId>, Vec<HostId>),
}

impl Fault {
    /// Kills the program of a host, like `kill -9`. The host's kernel closes its sockets, and refuses connections until
    /// the program is [started](Fault::start) again.
    pub fn kill(host: &HostId) -> Fault {
        Fault(Kind::Host(*host, Power::Kill))
    }

    /// Cuts the power of a host: it does not answer until it is [started](Fault::start) again.
    pub fn power_loss(host: &HostId) -> Fault {
        Fault(Kind::Host(*host, Power::Loss))
    }

    /// Starts the program of a host that is off or whose program has ended. This fault has no effect on a running
    /// program.
    pub fn start(host: &HostId) -> Fault {
        Fault(Kind::Host(*host, Power::Start))
    }

    /// Sends a signal to the program of a host, such as 15 (`SIGTERM`) to request its end. A program without a handler
    /// is killed, as by the real kernel.
    pub fn signal(host: &HostId, signal: u32) -> Fault {
        Fault(Kind::Signal(*host, signal))
    }

    /// Changes the settings of a host's disk, for example to a slow, full, failing or healthy one.
    pub fn disk(host: &HostId, disk: Disk) -> Fault {
        Fault(Kind::Setting(*host, Setting::Disk(disk)))
    }

    /// Suspends the program of a host, as `kill -STOP`, a pause of a virtual machine or a long garbage collection does.
    /// The host's kernel continues to run: it accepts connections and acknowledges data. Virtual time passes during the
    /// pause, so time limits of the program may have expired when it is [resumed](Fault::resume).
    pub fn pause(host: &HostId) -> Fault {
        Fault::signal(host, SIGSTOP)
    }

    /// Lets a [paused](Fault::pause) program continue.
    pub fn resume(host: &HostId) -> Fault {
        Fault::signal(host, SIGCONT)
    }

    /// Steps the wall clock of a host forward, also for later programs of the host. The monotonic clock does not
    /// change. At time 0, the step comes before the first call of the program.
    pub fn clock_forward(host: &HostId, by: Duration) -> Fault {
        Fault(Kind::Setting(*host, Setting::Clock(nanos(by))))
    }

    /// Steps the wall clock of a host back, also for later programs of the host. The monotonic clock does not change.
    pub fn clock_back(host: &HostId, by: Duration) -> Fault {
        Fault(Kind::Setting(*host, Setting::Clock(-nanos(by))))
    }

    /// Sets the speed of all clocks of a program, also of later programs of the host: a second of virtual time lasts
    /// `1 + rate / 1,000,000` seconds of the host. Quartz clocks differ by up to 100 millionths; a larger rate shows
    /// sooner what a drift does, for example to leases. A rate of 0 ends the drift, but the host stays ahead or behind.
    /// Rates below -999,999 count as -999,999. The fault has no effect on hosts that are actors.
    pub fn clock_rate(host: &HostId, rate: i32) -> Fault {
        Fault(Kind::Setting(*host, Setting::Rate(rate)))
    }

    /// Fails all look-ups of names on a host with a temporary failure (`EAI_AGAIN`), as if the host's name server did
    /// not answer. [`Fault::names_work`] ends this fault. Addresses and `localhost` are not affected.
    pub fn names_fail(host: &HostId) -> Fault {
        Fault(Kind::Setting(*host, Setting::Names(false)))
    }

    /// Ends [`Fault::names_fail`].
    pub fn names_work(host: &HostId) -> Fault {
        Fault(Kind::Setting(*host, Setting::Names(true)))
    }

    /// Loses all packets between two groups of hosts, in both directions, until the partition is [healed](Fault::heal).
    pub fn partition(one: &[HostId], other: &[HostId]) -> Fault {
        Fault(Kind::Cut(one.to_vec(), other.to_vec(), true))
    }

    /// Loses all packets from one group of hosts to another until the partition is [healed](Fault::heal). Packets in
    /// the other direction arrive.
    pub fn partition_one_way(from: &[HostId], to: &[HostId]) -> Fault {
        Fault(Kind::Cut(from.to_vec(), to.to_vec(), false))
    }

    /// Ends partitions between two groups of hosts.
    pub fn heal(one: &[HostId], other: &[HostId]) -> Fault {
        Fault(Kind::Heal(one.to_vec(), other.to_vec()))
    }
}

/// The signal numbers for a pause and its end, as on Linux on x86-64.
pub(crate) const SIGCONT: u32 = 18;
pub(crate) const SIGSTOP: u32 = 19;

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
