//! Fork-join: two computations as separately schedulable halves, and one wait for both.
//!
//! Guarantees:
//! 1. A half runs exactly once, on one worker. If its join is dropped before the half has begun, the half may not run
//!    at all.
//! 2. No half outlives its join, with one exception: if a future is dropped while another worker runs its half, that
//!    half runs to its next wait and is dropped there. Dropping never waits.
//! 3. A panic in a half resumes in the caller of the join after both halves are over. If both panic, the panic of the
//!    first half resumes.
//! 4. Recursion is limited only by memory; when memory runs out, a panic reports it.
//! 5. A join sees everything that its halves have written.
//!
//! It is *not* guaranteed that two halves run at the same time, or that one half makes progress while the other half
//! blocks its thread. Halves of [`join`] must not wait for each other; halves of [`fork_join`] may, by `.await`.
//!
//! # Why a fork costs next to nothing
//! Most libraries offer work to other workers by a deque: the owner uses one end and thieves use the other. Because a
//! thief may access the deque at any time, each fork needs a fence or a read-modify-write operation. Here thieves never
//! access the list of a worker. A fork links its second half into a list that only its own worker uses (`offer`). A
//! worker without work *asks* another worker (`worker`): it sets a flag, which the owner checks at each fork anyway.
//! Then the owner takes the oldest half out of its list, which usually stands for the most work, and puts the half into
//! a mailbox with one slot (`mailbox`). Only the mailbox is accessed by two threads. A worker is asked at most every 50
//! µs, so tiny forks are not handed out one by one.
//!
//! Closures are stored on the stack of their fork (`closures`). Futures are stored in one block together with their
//! join (`block`, `half`, `fork`); blocks come from free lists of the worker (`frames`). Both forms first run their
//! halves in place; only a half that has to wait becomes a task with its own state (`state`). A woken half is put into
//! a queue from which idle workers take halves without asking (`ready_queue`), because the worker that woke the half
//! may stay busy.
//!
//! # Example
//! ```
//! use corsair::fork_join::{fork_join, join, map, reduce};
//! let (a, b) = join(|| 6 * 7, || "forty-two".len());
//! assert_eq!((a, b), (42, 9));
//!
//! let squares = map(0..1000u64, |n| n * n);
//! assert_eq!(reduce(&squares[..], |n| *n, |a, b| a + b), Some(332_833_500));
//! ```

mod bell;
mod block;
mod bulk;
mod caller_join;
mod closures;
mod fork;
mod frames;
mod futures;
mod half;
mod in_place;
mod job;
mod latch;
#[cfg(all(test, loom))]
mod loom;
mod mailbox;
mod offer;
mod pool;
mod ready_queue;
mod registry;
mod root;
mod scope;
mod stack;
mod state;
#[cfg(all(test, not(loom)))]
mod tests;
mod worker;

pub use bulk::{Divisible, for_each, map, reduce};
pub use closures::join;
pub use futures::{Join, fork_join};
pub use pool::{MAX_WORKERS, Pool, PoolError};
pub use root::{PoolDropped, Task};
pub use scope::{Scope, scope};
