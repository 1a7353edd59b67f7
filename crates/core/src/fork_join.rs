//! Fork-join: two computations as separately schedulable halves, and one wait for both.
mod bell;
mod bulk;
mod closures;
mod job;
mod latch;
mod mailbox;
mod offer;
mod pool;
mod registry;
mod scope;
mod stack;
mod sync;
#[cfg(all(test, not(loom)))]
mod tests;
mod worker;

pub use bulk::{Divisible, for_each, map, reduce};
pub use closures::join;
pub use pool::{MAX_WORKERS, Pool, PoolError};
pub use scope::{Scope, scope};
