//! Forks outside a pool: both halves in turn, in the task that awaits them.

use super::stack;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

/// Two futures that are polled whenever their task is polled.
pub(super) struct InPlace<A: Future, B: Future> {
    a: Turn<A>,
    b: Turn<B>,
}

/// The progress of one half.
enum Turn<F: Future> {
    Running(Pin<Box<F>>),
    Over(thread::Result<F::Output>),
    Taken,
}

impl<A: Future, B: Future> InPlace<A, B> {
    pub(super) fn new(a: A, b: B) -> InPlace<A, B> {
        InPlace {
            a: Turn::Running(Box::pin(a)),
            b: Turn::Running(Box::pin(b)),
        }
    }

    /// Polls the halves that are not over.
    ///
    /// # Panics
    /// If a half panics, after both are over; or if the recursion is too deep for the stack of the
    /// thread, which cannot be exchanged outside a pool.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<(A::Output, B::Output)> {
        assert!(
            !stack::is_low(),
            "fork-join: the recursion is too deep for the stack of this thread, which does not \
             belong to a pool; run the future in a pool, with Pool::block_on or Pool::spawn"
        );
        self.a.poll(context);
        self.b.poll(context);
        if self.a.is_running() || self.b.is_running() {
            return Poll::Pending;
        }
        match (self.a.take(), self.b.take()) {
            (Ok(a), Ok(b)) => Poll::Ready((a, b)),
            (Err(panic), _) | (_, Err(panic)) => resume_unwind(panic),
        }
    }
}

impl<F: Future> Turn<F> {
    fn poll(&mut self, context: &mut Context<'_>) {
        let Turn::Running(future) = self else {
            return;
        };
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        match polled {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(value)) => *self = Turn::Over(Ok(value)),
            Err(panic) => *self = Turn::Over(Err(panic)),
        }
    }

    fn is_running(&self) -> bool {
        matches!(self, Turn::Running(_))
    }

    fn take(&mut self) -> thread::Result<F::Output> {
        match std::mem::replace(self, Turn::Taken) {
            Turn::Over(result) => result,
            Turn::Running(_) | Turn::Taken => unreachable!("taken once, when both are over"),
        }
    }
}
