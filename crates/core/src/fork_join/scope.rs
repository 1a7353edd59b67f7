//! Scopes: any number of spawned closures, all of which end before their scope ends.
#![allow(
    unsafe_code,
    reason = "spawns borrow from the scope, which waits for them"
)]

use super::job::{Job, JobHandle};
use super::latch::Latch;
use super::pool::Pool;
use super::registry::Registry;
use super::stack::on_fresh_stack;
use super::worker::Worker;
use crate::sync::lock;
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs `body`, which may spawn work that borrows values from outside of the scope, and returns when the body
/// and all spawned work are done.
///
/// A spawn needs an allocation and an entry in the pool's queue. For two closures, [`join`](super::join) costs a tenth
/// of a spawn. Outside a pool the scope runs in the [global pool](Pool::global).
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// let total = AtomicU64::new(0);
/// corsair::fork_join::scope(|scope| {
///     for number in 1..=10 {
///         let total = &total;
///         scope.spawn(move |_| {
///             total.fetch_add(number, Ordering::Relaxed);
///         });
///     }
/// });
/// assert_eq!(total.into_inner(), 55);
/// ```
///
/// # Panics
/// If the body or spawned work panics, after the body and all spawned work are over: with the panic of the body, or
/// else the first panic of spawned work.
pub fn scope<'scope, R: Send>(body: impl FnOnce(&Scope<'scope>) -> R + Send) -> R {
    let Some(worker) = Worker::current() else {
        return Pool::global().install(|| scope(body));
    };
    let here = 0u8;
    if worker.must_attend((&raw const here).addr()) && !worker.attend((&raw const here).addr()) {
        return on_fresh_stack(worker, || scope(body));
    }
    let scope = Scope {
        open: AtomicUsize::new(1),
        over: Latch::new(worker),
        registry: NonNull::from(worker.registry()),
        panic: Mutex::new(None),
        marker: PhantomData,
    };
    let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
    if !scope.close_one() {
        worker.wait(&scope.over);
    }
    let panic = scope
        .panic
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    match (result, panic) {
        (Ok(result), None) => result,
        (Err(panic), _) | (_, Some(panic)) => resume_unwind(panic),
    }
}

/// A scope, which spawns work that ends before the scope ends. [`scope`] creates it.
pub struct Scope<'scope> {
    /// The number of parties that are not over: the body and the spawned jobs.
    open: AtomicUsize,
    /// The latch that is set when no party is left.
    over: Latch,
    registry: NonNull<Registry>,
    /// The first panic of a spawn.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    marker: PhantomData<fn(&'scope ()) -> &'scope ()>,
}

// SAFETY: all shared fields are atomic or locked; the registry lives as long as its workers, on one of which the scope
// waits.
unsafe impl Sync for Scope<'_> {}
// SAFETY: the fields are an atomic count, a latch, a pointer to the registry and a locked panic; a scope is only lent,
// and never moves.
unsafe impl Send for Scope<'_> {}

impl<'scope> Scope<'scope> {
    /// Spawns `work`, which a worker of the pool runs before the scope ends.
    pub fn spawn<W>(&self, work: W)
    where
        W: FnOnce(&Scope<'scope>) + Send + 'scope,
    {
        // The caller keeps the scope open at this moment, so the count is not 0.
        self.open.fetch_add(1, Ordering::Relaxed);
        let spawned = Box::new(ScopeJob {
            job: Job::new(ScopeJob::<W>::run),
            scope: (&raw const *self).cast(),
            work,
        });
        // SAFETY: `ScopeJob::run` expects the address of a `ScopeJob` of this type. The box exists until its job has run.
        // All borrows of the job are valid until then, because the scope does not end earlier. The registry lives as long
        // as the scope.
        unsafe {
            let job = JobHandle::new(NonNull::from(Box::leak(spawned)).cast());
            self.registry.as_ref().enqueue(job);
        }
    }

    /// Removes one of the parties that keep the scope open; true if it was the last one. Otherwise the scope may end at
    /// any time.
    fn close_one(&self) -> bool {
        self.open.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

/// A job that was spawned in a scope.
#[repr(C)]
struct ScopeJob<W> {
    job: Job,
    /// The scope of the job. Its actual lifetime is the one that `W` accepts.
    scope: *const Scope<'static>,
    work: W,
}

impl<W> ScopeJob<W> {
    /// # Safety
    /// `job` begins a boxed `ScopeJob<W>` that this caller alone has taken from the queue. Its scope has the lifetime
    /// that `W` accepts.
    unsafe fn run<'scope>(job: NonNull<Job>, _: &Worker)
    where
        W: FnOnce(&Scope<'scope>),
    {
        // SAFETY: `Scope::spawn` has boxed and leaked the job. This spawn keeps the scope open until `close_one`; if it is
        // the last party, the scope stays in place until its latch is set.
        unsafe {
            let ScopeJob { scope, work, .. } = *Box::from_raw(job.cast::<Self>().as_ptr());
            let scope = scope.cast::<Scope<'scope>>();
            let result = catch_unwind(AssertUnwindSafe(|| work(&*scope)));
            if let Err(panic) = result {
                let mut first = lock(&(*scope).panic);
                first.get_or_insert(panic);
            }
            let over = &raw const (*scope).over;
            if (*scope).close_one() {
                Latch::set(over);
            }
        }
    }
}
