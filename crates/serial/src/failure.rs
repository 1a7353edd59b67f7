//! Finds the failure with the lowest index, although workers encounter failures in any order.
//!
//! A worker skips a value only if a value before it has failed. So every value before the recorded failure has been
//! encoded. The recorded failure is the one with the lowest index, not the earliest one.

use crate::MarshalError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The smallest index that has failed so far, and the error.
#[derive(Debug)]
pub(crate) struct FirstFailure {
    /// The smallest failed index, or `usize::MAX` if nothing has failed. This field is only a hint for stopping early;
    /// `error` is authoritative.
    index: AtomicUsize,
    error: Mutex<Option<MarshalError>>,
}

impl FirstFailure {
    pub(crate) const fn new() -> FirstFailure {
        FirstFailure {
            index: AtomicUsize::new(usize::MAX),
            error: Mutex::new(None),
        }
    }

    /// Returns true if no failure before `index` is known, so that the value is worth encoding.
    #[inline]
    pub(crate) fn is_after(&self, index: usize) -> bool {
        self.index.load(Ordering::Relaxed) > index
    }

    /// Keeps `error` if its value precedes all other values that have failed.
    pub(crate) fn record(&self, error: MarshalError) {
        let index = error.index().unwrap_or(0);
        let mut kept = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        if kept
            .as_ref()
            .is_none_or(|kept| index < kept.index().unwrap_or(0))
        {
            self.index.fetch_min(index, Ordering::Relaxed);
            *kept = Some(error);
        }
    }

    /// Returns the recorded failure, if there is one.
    pub(crate) fn into_result(self) -> Result<(), MarshalError> {
        let error = self
            .error
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        error.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(index: usize) -> MarshalError {
        MarshalError::Panicked {
            index,
            message: String::new(),
        }
    }

    #[test]
    fn keeps_the_smallest_index_whatever_the_order() {
        let first = FirstFailure::new();
        for index in [9, 4, 7] {
            first.record(failure(index));
        }
        assert!(first.is_after(3));
        assert!(!first.is_after(5));
        assert_eq!(first.into_result().unwrap_err().index(), Some(4));
    }

    #[test]
    fn nothing_recorded_is_success() {
        let first = FirstFailure::new();
        assert!(first.is_after(usize::MAX - 1));
        assert!(first.into_result().is_ok());
    }
}
