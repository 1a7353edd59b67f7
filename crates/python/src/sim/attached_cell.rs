//! Fields of Python's objects that change.

#![allow(
    unsafe_code,
    reason = "PyO3's own borrow checks are two atomic operations for each access, a quarter of the time of an event"
)]

use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::Cell;
use std::fmt;

/// A field that is read and written by the thread that is attached to the interpreter. As in a [`Cell`], no reference
/// into the field leaves a method, so Python code that runs during the method can use the field as well.
#[derive(Default)]
pub struct AttachedCell<T>(Cell<T>);

// SAFETY: a thread needs the token `Python` for each method that takes `&self`, except `visit`. The module is loaded with
// the interpreter's lock (`gil_used` in `lib.rs`) and into the main interpreter alone, so one thread at a time has a token.
// That thread may be another one each time, hence `T: Send`.
unsafe impl<T: Send> Sync for AttachedCell<T> {}

impl<T> AttachedCell<T> {
    pub const fn new(value: T) -> AttachedCell<T> {
        AttachedCell(Cell::new(value))
    }

    #[inline]
    pub fn set(&self, _py: Python<'_>, value: T) {
        drop(self.0.replace(value));
    }

    #[inline]
    pub fn replace(&self, _py: Python<'_>, value: T) -> T {
        self.0.replace(value)
    }

    #[inline]
    pub fn get(&self, _py: Python<'_>) -> T
    where
        T: Copy,
    {
        self.0.get()
    }

    #[inline]
    pub fn take(&self, _py: Python<'_>) -> T
    where
        T: Default,
    {
        self.0.take()
    }

    /// Calls a closure with the value. During the call, other code sees the default value.
    #[inline]
    pub fn with<R>(&self, _py: Python<'_>, look: impl FnOnce(&mut T) -> R) -> R
    where
        T: Default,
    {
        let mut value = self.0.take();
        let found = look(&mut value);
        self.0.set(value);
        found
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// Shows the value to the garbage collector; for `__traverse__` alone.
    pub fn visit<R>(&self, show: impl FnOnce(&T) -> R) -> R {
        // SAFETY: the collector calls `__traverse__` with the interpreter's lock, and runs no code of Python until it has
        // returned. No reference into the cell exists, since no method lends one.
        show(unsafe { &*self.0.as_ptr() })
    }
}

impl<T> fmt::Debug for AttachedCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AttachedCell")
    }
}

impl<T> AttachedCell<Option<Py<T>>> {
    /// The object, if there is one.
    #[inline]
    pub fn object<'py>(&self, py: Python<'py>) -> Option<Bound<'py, T>> {
        let object = self.0.take();
        let found = object.as_ref().map(|object| object.bind(py).clone());
        self.0.set(object);
        found
    }
}

/// True if nobody else refers to the object.
#[inline]
pub fn is_only_reference<T>(object: &Bound<'_, T>) -> bool {
    // SAFETY: `object` is a reference, so the object is alive.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) == 1 }
}

/// Returns true if there are weak references to the object. The class has their list at this offset. Also returns true
/// if the class has no such offset.
#[inline]
pub fn has_weak_references<T>(object: &Bound<'_, T>, offset: usize) -> bool {
    if offset == 0 {
        return true;
    }
    // SAFETY: `offset` is `__weakrefoffset__` of the class, so at this offset the object, which is alive, has a pointer to the
    // first of its weak references, or null.
    unsafe {
        !object
            .as_ptr()
            .byte_add(offset)
            .cast::<*mut ffi::PyObject>()
            .read()
            .is_null()
    }
}
