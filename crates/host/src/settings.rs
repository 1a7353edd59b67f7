//! The settings of a host that faults can change. They stay in effect when the host's program ends and is started
//! again.

use crate::disk::Disk;
use crate::drift::Drift;
use crate::packet::Reader;

/// A change of one setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setting {
    /// The properties of the disk.
    Disk(Disk),
    /// Nanoseconds by which the wall clock is stepped.
    Clock(i64),
    /// Millionths by which all clocks are faster than virtual time.
    Rate(i32),
    /// True if names of other hosts can be looked up.
    Names(bool),
}

/// All settings of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The properties of the disk.
    pub disk: Disk,
    /// Nanoseconds by which the wall clock is ahead of virtual time.
    pub wall: i64,
    /// The speed of the clocks.
    pub drift: Drift,
    /// True if names of other hosts can be looked up.
    pub has_names: bool,
}

impl Settings {
    /// Returns the settings of a healthy host with this disk.
    pub(crate) fn new(disk: Disk) -> Settings {
        Settings {
            disk,
            wall: 0,
            drift: Drift::default(),
            has_names: true,
        }
    }

    /// Applies a change at a virtual time in nanoseconds.
    pub(crate) fn change(&mut self, setting: Setting, now: u64) {
        match setting {
            Setting::Disk(disk) => self.disk = disk,
            Setting::Clock(step) => self.wall = self.wall.saturating_add(step),
            Setting::Rate(rate) => self.drift.change(now, rate),
            Setting::Names(has_names) => self.has_names = has_names,
        }
    }

    /// Serializes the settings for the host's process.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.wall.to_le_bytes().to_vec();
        bytes.extend(self.drift.to_bytes());
        bytes.push(self.has_names.into());
        bytes.extend(self.disk.to_bytes());
        bytes
    }

    /// Reads the settings that [`Settings::to_bytes`] has written.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Settings> {
        let mut reader = Reader(bytes);
        let wall = i64::from_le_bytes(reader.array()?);
        let drift = Drift::read(&mut reader)?;
        let has_names = reader.u8()? != 0;
        let disk = Disk::from_bytes(reader.0)?;
        Some(Settings {
            disk,
            wall,
            drift,
            has_names,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_were_written() {
        let mut settings = Settings::new(Disk::new());
        settings.change(Setting::Clock(-5_000), 0);
        settings.change(Setting::Clock(2_000), 0);
        settings.change(Setting::Rate(-20), 5);
        settings.change(Setting::Rate(50), 1_000_000);
        settings.change(Setting::Names(false), 0);
        settings.change(Setting::Disk(Disk::new().read_errors(3)), 0);
        assert_eq!(settings.wall, -3_000);
        assert_eq!(Settings::from_bytes(&settings.to_bytes()), Some(settings));
        assert_eq!(Settings::from_bytes(&[1, 2]), None);
    }
}
