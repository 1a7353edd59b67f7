//! The processor time of this process's threads by name, on Linux.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The processor time of all threads with the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The time in the program.
    pub user: Duration,
    /// The time in the kernel on behalf of the program.
    pub system: Duration,
    /// The time in which a thread was ready but had no processor.
    pub waited: Duration,
}

impl Work {
    fn add(&mut self, other: Work) {
        self.user += other.user;
        self.system += other.system;
        self.waited += other.waited;
    }
}

/// The [`Work`] of all threads, by name. Empty on systems other than Linux.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads(pub BTreeMap<String, Work>);

impl Threads {
    /// Returns the processor time that the threads have used until now.
    pub(crate) fn now() -> Threads {
        let mut threads = Threads::default();
        let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
        for task in tasks.flatten() {
            // A thread may end during the loop.
            if let Some((name, work)) = read(&task.path()) {
                threads.0.entry(name).or_default().add(work);
            }
        }
        threads
    }

    /// Adds the time since `before`.
    pub(crate) fn add_since(&mut self, before: &Threads) {
        for (name, now) in Threads::now().0 {
            let before = before.0.get(&name).copied().unwrap_or_default();
            self.0.entry(name).or_default().add(Work {
                user: now.user.saturating_sub(before.user),
                system: now.system.saturating_sub(before.system),
                waited: now.waited.saturating_sub(before.waited),
            });
        }
    }

    /// Divides each time by `count`.
    pub(crate) fn each(&self, count: u64) -> Threads {
        let part = |time: Duration| time.div_f64(count.max(1) as f64);
        let each = self.0.iter().map(|(name, work)| {
            let work = Work {
                user: part(work.user),
                system: part(work.system),
                waited: part(work.waited),
            };
            (name.clone(), work)
        });
        Threads(each.collect())
    }
}

fn read(task: &Path) -> Option<(String, Work)> {
    let name = std::fs::read_to_string(task.join("comm")).ok()?;
    // This file has nanoseconds; user and system times are counted in coarser ticks.
    let times = std::fs::read_to_string(task.join("schedstat")).ok()?;
    let mut times = times.split(' ').map(str::parse::<u64>);
    let (run, waited) = (times.next()?.ok()?, times.next()?.ok()?);
    let stat = std::fs::read_to_string(task.join("stat")).ok()?;
    // The name of the thread, which comes first, may contain spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    let (user, system) = (ticks.next()?.ok()?, ticks.next()?.ok()?);
    let share = match user + system {
        0 => 0.0,
        all => system as f64 / all as f64,
    };
    let run = Duration::from_nanos(run);
    let work = Work {
        user: run.mul_f64(1.0 - share),
        system: run.mul_f64(share),
        waited: Duration::from_nanos(waited),
    };
    Some((name.trim_end().to_owned(), work))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_a_thread_is_counted_under_its_name() {
        let before = Threads::now();
        let busy = || {
            let begun = std::time::Instant::now();
            while begun.elapsed() < Duration::from_millis(50) {
                std::hint::black_box(std::fs::metadata("/").is_ok());
            }
            let mut done = Threads::default();
            done.add_since(&before);
            done.0["a busy one"]
        };
        let thread = std::thread::Builder::new().name("a busy one".to_owned());
        let work = std::thread::scope(|scope| thread.spawn_scoped(scope, busy).unwrap().join());
        let work = work.unwrap();
        assert!(
            work.user + work.system + work.waited > Duration::from_millis(10),
            "{work:?}"
        );
        let each = Threads(BTreeMap::from([("a".to_owned(), work)])).each(2);
        assert!(each.0["a"].user <= work.user);
    }
}
