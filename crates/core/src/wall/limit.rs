//! The number of threads that this process may start, if the system reports it.

use std::fs;

/// The maximum number of threads, even if the system reports a higher limit.
const MOST: u64 = 30_000;
/// The number of threads that are left for other programs.
const RESERVE: u64 = 256;
/// The memory maps of a thread: its stack, its guard page, and two for its signal stack.
const MAPS_PER_THREAD: u64 = 4;

/// Returns the number of threads that this process may still start, at most 30,000.
///
/// The system limits threads (`threads-max`, `pid_max`, the process limit of the user) and address ranges
/// (`max_map_count`). A limit that cannot be read is ignored. If it is exceeded, the system cannot start a thread, and
/// the run ends with an error.
pub(crate) fn threads() -> u64 {
    let read = |path: &str| fs::read_to_string(path).ok();
    let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
    // "0.20 0.18 0.12 1/80 11206": running and existing threads in the fourth place.
    let in_use = read("/proc/loadavg").and_then(|text| {
        text.split_whitespace()
            .nth(3)?
            .split_once('/')?
            .1
            .parse::<u64>()
            .ok()
    });
    // "Max processes  96365  96365  processes": the soft limit comes first.
    let of_user = read("/proc/self/limits").and_then(|text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("Max processes"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    });
    let maps = read("/proc/self/maps").map_or(0, |text| text.lines().count() as u64);
    let bounds = [
        number("/proc/sys/kernel/threads-max"),
        number("/proc/sys/kernel/pid_max"),
        of_user,
    ];
    let threads = bounds
        .into_iter()
        .flatten()
        .map(|bound| bound.saturating_sub(in_use.unwrap_or(0)));
    let mapped = number("/proc/sys/vm/max_map_count");
    let mapped = mapped.map(|bound| bound.saturating_sub(maps) / MAPS_PER_THREAD);
    threads
        .chain(mapped)
        .map(|bound| bound.saturating_sub(RESERVE))
        .fold(MOST, u64::min)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_limit_is_between_one_and_the_stated_most() {
        assert!((1..=super::MOST).contains(&super::threads()));
    }
}
