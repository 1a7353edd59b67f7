//! Mutable fields of Python objects.

#![allow(
    unsafe_code,
    reason = "PyO3's own borrow checks are two atomic operations for each access, a quarter of the time of an event"
)]

use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::Cell;
use std::fmt;

/// A field that only the thread attached to the interpreter reads and writes. No method returns a reference to the
/// contents (as with [`Cell`]), so Python code that runs during a method can use the field, too.
#[derive(Default)]
pub struct AttachedCell<T>(Cell<T>);

// SAFETY: every method that takes `&self`, except `visit`, needs the token `Python`. Only one thread at a time has a
// token, because the module is loaded with the interpreter's lock (`gil_used` in `lib.rs`), and only into the main
// interpreter. The token may move to another thread between two calls, which is sound because `T: Send`.
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

    /// Passes the value to the garbage collector. Only `__traverse__` may call this method.
    pub fn visit<R>(&self, show: impl FnOnce(&T) -> R) -> R {
        // SAFETY: the collector calls `__traverse__` with the interpreter's lock, and runs no Python code until it has
        // returned. No other reference into the cell exists, because no method returns one.
        show(unsafe { &*self.0.as_ptr() })
    }
}

impl<T> fmt::Debug for AttachedCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AttachedCell")
    }
}

impl<T> AttachedCell<Option<Py<T>>> {
    /// Returns the object, if there is one.
    #[inline]
    pub fn object<'py>(&self, py: Python<'py>) -> Option<Bound<'py, T>> {
        let object = self.0.take();
        let found = object.as_ref().map(|object| object.bind(py).clone());
        self.0.set(object);
        found
    }
}

/// True if there is no other reference to the object.
#[inline]
pub fn is_only_reference<T>(object: &Bound<'_, T>) -> bool {
    // SAFETY: `object` is a reference, so the object is alive.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) == 1 }
}

/// Returns true if there may be weak references to the object. `offset` is the position of their list in the class.
/// Also returns true if the class has no such offset.
#[inline]
pub fn has_weak_references<T>(object: &Bound<'_, T>, offset: usize) -> bool {
    if offset == 0 {
        return true;
    }
    // SAFETY: `offset` is `__weakrefoffset__` of the class. At this offset the object, which is alive, has a pointer to
    // the first of its weak references, or null.
    unsafe {
        !object
            .as_ptr()
            .byte_add(offset)
            .cast::<*mut ffi::PyObject>()
            .read()
            .is_null()
    }
}
