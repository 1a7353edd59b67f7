//! Drops chains of objects without recursion.
//!
//! A process refers to its generator, the generator refers to the awaited event, and the event refers to the next
//! process. Dropping the first of a hundred thousand such processes would recurse through all of them and overflow the
//! stack.

use pyo3::prelude::*;
use std::cell::{Cell, RefCell};

/// The depth of nested drops up to which objects are dropped immediately.
const DEPTH: u32 = 64;

thread_local! {
    static DEEP: Cell<u32> = const { Cell::new(0) };
    static LATER: RefCell<Vec<Py<PyAny>>> = const { RefCell::new(Vec::new()) };
}

/// Drops an object. If too many drops are nested, the object is dropped after the outermost one has ended.
pub fn later(object: Py<PyAny>) {
    let depth = DEEP.get();
    if depth >= DEPTH {
        LATER.with_borrow_mut(|later| later.push(object));
        return;
    }
    DEEP.set(depth + 1);
    drop(object);
    while depth == 0
        && let Some(object) = LATER.with_borrow_mut(Vec::pop)
    {
        drop(object);
    }
    DEEP.set(depth);
}
