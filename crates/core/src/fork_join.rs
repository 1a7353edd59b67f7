//! Fork-join: two computations as separately schedulable halves, and one wait for both.
//!
//! What is guaranteed:
//! 1. A half is run once, by one worker, or (if its join was dropped before) not at all.
//! 2. No half outlives its join, except one that another worker is just running when a future is
//!    dropped: that half runs to its next wait and is dropped there. Dropping never waits.
//! 3. A panic in either half comes out of the join after both halves are over. If both panic,
//!    that of the first comes out.
//! 4. Recursion goes as deep as memory reaches; where that ends there is a panic that says so.
//! 5. What a half has written, its join sees.
//!
//! What is *not* promised is that two halves run at the same time, or that a half gets on while
//! the other blocks its thread: halves of [`join`] must not wait for each other. Halves of
//! [`fork_join`] may, by `.await`.
//!
//! # Why a fork costs next to nothing
//! The usual way to offer work to others is a deque of which the owner uses one end and thieves
//! the other; each fork then pays for a fence or a read-modify-write, so that a thief who may come
//! at any time is safe. Here they may not. A fork links its second half into a list
//! that belongs to its worker alone (`offer`), and a worker without work *asks* (`worker`): it sets
//! a flag that the owner compares anyway at each fork. Then the owner, in its own time, takes the
//! oldest half out of its list, the one that stands for the most work, and puts it into a mailbox
//! with one place (`mailbox`). Only there the two meet. Owners are asked at most every 50 µs, so
//! forks of next to nothing are not handed out one by one.
//!
//! Closures lie on the stack of their fork (`closures`). Futures lie in a block with their join
//! (`block`, `half`, `fork`), from free lists of the worker (`frames`); both are polled in place at once,
//! and only a half that really waits becomes a task with a state of its own (`state`). When it is
//! woken, it goes into a queue from which idle workers take without asking (`woken`): the worker that
//! has woken it may be busy for long.
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
mod beside;
mod block;
mod bulk;
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
