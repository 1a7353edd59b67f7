//! The levels of an alert: how the level of a group changes, and which changes are reported.

use super::Alert;

/// The state of a group. Times are the points' times.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct GroupLevel {
    pub(super) level: u8,
    /// The time when the level was last OK, or the first alert since then.
    since: i64,
    /// The time of the last alert.
    told: Option<i64>,
}

/// The names of the levels. Level 0 has no condition.
pub(super) const NAMES: [&str; 4] = ["OK", "INFO", "WARNING", "CRITICAL"];

/// The report of a point's level.
pub(super) struct Event {
    pub(super) row: u32,
    pub(super) level: u8,
    pub(super) previous: u8,
    pub(super) duration: i64,
}

/// The truth of each level's condition and reset, for each row.
pub(super) type Marks = [Option<Vec<bool>>; 6];

/// Returns the level of a row in a group that has the level `current`.
pub(super) fn next_level(marks: &Marks, at: usize, current: u8) -> u8 {
    let is = |place: usize| marks[place].as_ref().is_some_and(|marks| marks[at]);
    let highest = |below: u8, least: u8| {
        let mut levels = (least.max(1)..=below).rev();
        levels.find(|level| is(usize::from(*level) - 1))
    };
    if let Some(level) = highest(3, current) {
        return level;
    }
    let reset = match current {
        0 => None,
        level => Some(usize::from(level) + 2),
    };
    if let Some(reset) = reset
        && marks[reset].is_some()
        && !is(reset)
    {
        return current;
    }
    highest(current, 1).unwrap_or(0)
}

impl GroupLevel {
    /// Sets the next level and returns the event to report, if any.
    pub(super) fn event(&mut self, alert: &Alert, level: u8, time: i64) -> Option<Event> {
        let previous = std::mem::replace(&mut self.level, level);
        if previous == 0 {
            self.since = time;
        }
        if level == 0 && (previous == 0 || alert.no_recoveries) {
            return None;
        }
        let expired = |after: i64| {
            let told = self.told.unwrap_or(i64::MIN);
            after > 0 && time.saturating_sub(told) >= after
        };
        if let Some(after) = alert.changes_only
            && level == previous
            && !expired(after.as_nanos() as i64)
        {
            return None;
        }
        self.told = Some(time);
        Some(Event {
            row: 0,
            level,
            previous,
            duration: time.saturating_sub(self.since),
        })
    }
}
