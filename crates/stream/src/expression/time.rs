//! The calendar of a time, in UTC.

/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// The parts of a time in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Calendar {
    pub(super) year: i64,
    /// The month, from 1.
    pub(super) month: i64,
    /// The day, from 1.
    pub(super) day: i64,
    /// The day of the week; 0 is Sunday.
    pub(super) weekday: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
}

impl Calendar {
    /// Computes the calendar. 400 years have 146,097 days. Counted from the first of March of year 0, leap days come
    /// last.
    pub(super) fn of(nanos: i64) -> Calendar {
        let seconds = nanos.div_euclid(SECOND);
        let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let since = days + 719_468;
        let (era, day_of_era) = (since.div_euclid(146_097), since.rem_euclid(146_097));
        let leaps = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
        let year_of_era = (day_of_era - leaps) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let month = (from_march + 2) % 12 + 1;
        Calendar {
            year: era * 400 + year_of_era + i64::from(month <= 2),
            month,
            day: day_of_year - (153 * from_march + 2) / 5 + 1,
            weekday: (days + 4).rem_euclid(7),
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }
}

/// Writes a time in nanoseconds since 1970 as RFC 3339 does, in UTC and in seconds.
pub(crate) fn written_time(nanos: i64) -> String {
    let at = Calendar::of(nanos);
    let (year, month, day) = (at.year, at.month, at.day);
    let (hour, minute, second) = (at.hour, at.minute, at.second);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_date_that_calendars_show() {
        for (seconds, date, weekday) in [
            (0, (1970, 1, 1, 0, 0, 0), 4),
            (-1, (1969, 12, 31, 23, 59, 59), 3),
            (951_782_400, (2000, 2, 29, 0, 0, 0), 2),
            (951_868_800, (2000, 3, 1, 0, 0, 0), 3),
            (1_709_251_199, (2024, 2, 29, 23, 59, 59), 4),
            (4_107_542_400, (2100, 3, 1, 0, 0, 0), 1),
            (-2_203_891_200, (1900, 3, 1, 0, 0, 0), 4),
        ] {
            let of = Calendar::of(seconds * SECOND);
            let found = (of.year, of.month, of.day, of.hour, of.minute, of.second);
            assert_eq!((found, of.weekday), (date, weekday), "{seconds}");
        }
    }

    #[test]
    fn each_day_follows_the_one_before() {
        let mut last = Calendar::of(-100_000 * DAY * SECOND);
        for day in -99_999..100_000_i64 {
            let next = Calendar::of(day * DAY * SECOND);
            assert_eq!(next.weekday, (last.weekday + 1) % 7);
            let follows = next.day == last.day + 1 && next.month == last.month
                || next.day == 1
                    && next.month == last.month % 12 + 1
                    && (28..32).contains(&last.day);
            assert!(follows, "{last:?}, {next:?}");
            last = next;
        }
    }
}
