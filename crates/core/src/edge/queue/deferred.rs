//! Work that a change of a queue defers until the lock is released, because it runs foreign code: calling
//! wakers, and dropping messages and wakers.

use std::collections::VecDeque;
use std::task::Waker;

/// The deferred work of one change. It is usually empty; the lists that are rarely needed are in a separate allocation.
pub(super) struct DeferredWork<T> {
    woken: Option<Waker>,
    /// A waker that has been used, to be dropped.
    pub(super) old: Option<Waker>,
    /// A message to drop.
    dropped: Option<T>,
    more: Option<Box<More<T>>>,
}

struct More<T> {
    woken: Vec<Waker>,
    dropped: VecDeque<T>,
}

impl<T> DeferredWork<T> {
    #[inline]
    pub(super) const fn new() -> DeferredWork<T> {
        DeferredWork {
            woken: None,
            old: None,
            dropped: None,
            more: None,
        }
    }

    #[inline]
    pub(super) fn wake(&mut self, waker: Waker) {
        match self.woken {
            None => self.woken = Some(waker),
            Some(_) => self.more().woken.push(waker),
        }
    }

    #[inline]
    pub(super) fn drop(&mut self, message: T) {
        match self.dropped {
            None => self.dropped = Some(message),
            Some(_) => self.more().dropped.push_back(message),
        }
    }

    pub(super) fn drop_all(&mut self, messages: VecDeque<T>) {
        if !messages.is_empty() {
            self.more().dropped.extend(messages);
        }
    }

    #[cold]
    fn more(&mut self) -> &mut More<T> {
        self.more.get_or_insert_with(|| {
            Box::new(More {
                woken: Vec::new(),
                dropped: VecDeque::new(),
            })
        })
    }

    /// Does the work. Wakers are called first, because dropping a message may panic.
    #[inline]
    pub(super) fn act(mut self) {
        if let Some(waker) = self.woken.take() {
            waker.wake();
        }
        if let Some(more) = &mut self.more {
            more.woken.drain(..).for_each(Waker::wake);
        }
    }
}
