//! The memory of the machine and of this process, where the system reports it (Linux does).

use std::fs;

/// Returns the peak resident memory of this process in bytes, if the system reports it (Linux does).
pub fn peak_memory() -> Option<u64> {
    size("/proc/self/status", "VmHWM:")
}

/// Returns the resident memory of this process in bytes, if the system reports it (Linux does).
pub fn resident_memory() -> Option<u64> {
    size("/proc/self/status", "VmRSS:")
}

/// Returns the part of [`resident_memory`] that consists of pages of files, in bytes, if the system reports it (Linux
/// does). These are pages of the program and its libraries, which are mostly shared with other processes.
pub fn file_memory() -> Option<u64> {
    size("/proc/self/status", "RssFile:")
}

/// Returns the memory that this process can still allocate, in bytes, if the system reports it (Linux does):
/// the available memory of the machine, within the limit of the process's control group.
pub fn available_memory() -> Option<u64> {
    let machine = size("/proc/meminfo", "MemAvailable:")?;
    let group = |file: &str| -> Option<u64> {
        let text = fs::read_to_string(format!("/sys/fs/cgroup/memory.{file}")).ok()?;
        text.trim().parse().ok()
    };
    let most = group("max").map(|most| most.saturating_sub(group("current").unwrap_or(0)));
    Some(machine.min(most.unwrap_or(u64::MAX)))
}

/// Returns the size in bytes that follows this name in a line of a file such as `/proc/self/status`.
fn size(file: &str, name: &str) -> Option<u64> {
    if cfg!(miri) {
        return None;
    }
    let text = fs::read_to_string(file).ok()?;
    let size = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = size.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn linux_tells_them_all() {
        let resident = resident_memory().unwrap();
        let peak = peak_memory().unwrap();
        assert!(resident > 0 && resident <= peak);
        assert!(file_memory().unwrap() <= peak);
        assert!(available_memory().unwrap() > 0);
    }
}
