//! The interface of a program to the simulation that runs the program.

/// The host of the calling thread: counters and random numbers for programs that know that they may be simulated.
///
/// The macros `always!`, `sometimes!` and `buggify!` of `corsair-hunt` call the two methods of this type, so they work
/// in programs:
///
/// ```ignore
/// use corsair_host::Host;
/// use corsair_hunt::{always, sometimes};
///
/// always!(Host, acknowledged <= written, "acknowledged lines are written");
/// sometimes!(Host, retries > 0, "a request is repeated");
/// ```
///
/// Outside of a simulation the counters have no effect.
#[derive(Clone, Copy, Debug)]
pub struct Host;

impl Host {
    /// Adds to a counter of the simulation, which [`Sim::counters`](crate::Sim::counters) returns.
    pub fn count(self, name: &str, count: u64) {
        #[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
        if crate::kernel::current_thread().is_some() {
            let bytes = crate::log::counter(name, count);
            crate::kernel::with(|kernel| kernel.log(crate::log::COUNTERS, &bytes));
            return;
        }
        let _ = (name, count);
    }

    /// Returns a random number below `bound`, which the host's seed determines. Outside of a simulation the number is
    /// `bound - 1`, so that rare cases do not happen.
    pub fn below(self, bound: u32) -> u32 {
        #[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
        if crate::kernel::current_thread().is_some() && bound > 0 {
            return crate::kernel::with(|kernel| kernel.random_below(bound));
        }
        bound.saturating_sub(1)
    }
}
