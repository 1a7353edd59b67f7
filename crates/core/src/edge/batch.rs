//! A batch of messages, which are taken from the front of a vector.
#![allow(
    unsafe_code,
    reason = "messages are moved out of a vector one by one, and the rest stays in it"
)]

/// Takes messages from the front of a vector. When the batch is dropped, the remaining messages are in the vector
/// again. If the batch is leaked, the vector stays empty, so that no message exists twice.
pub struct Batch<'a, T> {
    messages: &'a mut Vec<T>,
    position: usize,
    length: usize,
}

impl<'a, T> Batch<'a, T> {
    pub(super) fn new(messages: &'a mut Vec<T>) -> Batch<'a, T> {
        let length = messages.len();
        // SAFETY: a length of 0 is within the capacity, and no element before it needs to be initialised.
        unsafe { messages.set_len(0) };
        Batch {
            messages,
            position: 0,
            length,
        }
    }

    /// Returns the messages that have not been taken yet.
    pub(super) fn remaining(&self) -> &[T] {
        // SAFETY: the messages from `position` to `length` are initialised, and only this batch accesses them.
        unsafe {
            std::slice::from_raw_parts(
                self.messages.as_ptr().add(self.position),
                self.length - self.position,
            )
        }
    }

    /// Removes the first `count` remaining messages, after they were copied to their new owner.
    ///
    /// # Safety
    /// At least `count` messages remain, and each copy has one owner.
    pub(super) unsafe fn advance(&mut self, count: usize) {
        self.position += count;
    }

    /// Puts a message back in front of the remaining ones. At least one message must have been taken.
    pub(super) fn give_back(&mut self, message: T) {
        assert!(
            self.position > 0,
            "a message goes back to where one was taken"
        );
        self.position -= 1;
        // SAFETY: the index is within the allocation. The message at this index has been taken, so none is overwritten.
        unsafe { self.messages.as_mut_ptr().add(self.position).write(message) };
    }

    /// Drops the remaining messages.
    pub(super) fn discard(&mut self) {
        let first = std::mem::replace(&mut self.position, self.length);
        // SAFETY: the messages from `first` to `length` are initialised. They no longer count as remaining, so each is
        // dropped once.
        unsafe {
            let start = self.messages.as_mut_ptr().add(first);
            std::ptr::drop_in_place(std::ptr::slice_from_raw_parts_mut(
                start,
                self.length - first,
            ));
        }
    }
}

/// Takes messages one by one.
impl<T> Iterator for Batch<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        if self.position == self.length {
            return None;
        }
        // SAFETY: the message at `position` is initialised. `position` is then increased, so the message is read only once.
        let message = unsafe { self.messages.as_ptr().add(self.position).read() };
        self.position += 1;
        Some(message)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let rest = self.length - self.position;
        (rest, Some(rest))
    }
}

impl<T> Drop for Batch<'_, T> {
    fn drop(&mut self) {
        let rest = self.length - self.position;
        // SAFETY: the remaining messages are initialised and within the allocation. They move to the front, whose
        // messages have all been taken.
        unsafe {
            let start = self.messages.as_mut_ptr();
            std::ptr::copy(start.add(self.position), start, rest);
            self.messages.set_len(rest);
        }
    }
}
