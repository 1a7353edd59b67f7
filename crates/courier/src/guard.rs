//! Handling of panics in the database, which panics on some damage of its files.

use redb::Error;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs code that reads or writes a database file. A panic is converted to an error that says the file is damaged.
/// Values borrowed by `work` must not be used after an error.
pub(crate) fn guard<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let before = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(before);
    done.unwrap_or_else(|panic| {
        let reason = message(&*panic);
        Err(Error::Corrupted(format!("the file is damaged: {reason}")))
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    let said = panic.downcast_ref::<&str>().copied().or(owned);
    said.unwrap_or("its pages make no sense")
}

/// Suppresses the output of a panic that a damaged file causes. The code that reads the file reports the damage.
pub fn hush_guarded_panics() {
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        if !GUARDED.get() {
            before(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: courier-13.
    #[test]
    fn a_panic_of_the_database_is_an_error_that_says_so() {
        let place = 3;
        let said = guard::<()>(|| panic!("page {place}"))
            .unwrap_err()
            .to_string();
        assert!(said.contains("damaged: page 3"), "{said}");
        assert_eq!(guard(|| Ok(7)).unwrap(), 7);
        assert!(!GUARDED.get());
    }
}
