//! Fingerprints of Python messages, which are the same in every process.
//!
//! Python's `hash()` is unsuitable, because the hash of a text differs from process to process. The fingerprint of a
//! number, text, tuple, list, enum or dataclass depends on its contents; the fingerprint of any other object depends
//! only on its class.

use corsair::Fingerprint;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::hash::Hasher;

/// The maximum nesting depth. Deeper values are ignored.
const DEEPEST: u32 = 8;

/// The properties of a class.
#[derive(Debug)]
struct Class {
    /// A reference to the class. It prevents the class's memory from being reused.
    _class: Py<PyType>,
    name: String,
    hash: u64,
    form: Form,
    received: u64,
}

#[derive(Debug)]
enum Form {
    Nothing,
    Truth,
    Whole,
    Real,
    Text,
    Bytes,
    Sequence,
    /// The names of the fields.
    Fields(Vec<Py<PyString>>),
    Enum,
    Opaque,
}

/// The classes of the messages that were encountered.
#[derive(Debug, Default)]
pub struct Classes {
    known: FxHashMap<usize, Class>,
    /// The numbers of messages received before the simulation was restored, by class name.
    before: BTreeMap<String, u64>,
}

impl Classes {
    /// Returns the fingerprint of a message.
    pub fn fingerprint(&mut self, message: &Bound<'_, PyAny>) -> PyResult<u64> {
        let mut fingerprint = Fingerprint::new();
        self.add(message, &mut fingerprint, 0)?;
        Ok(fingerprint.finish())
    }

    /// Counts a received message of this class.
    pub fn received(&mut self, message: &Bound<'_, PyAny>) {
        if let Ok(class) = self.class(message) {
            class.received += 1;
        }
    }

    /// Returns the number of received messages by the names of their classes.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = self.before.clone();
        for class in self.known.values().filter(|class| class.received > 0) {
            *counts.entry(class.name.clone()).or_default() += class.received;
        }
        counts
    }

    /// Creates an empty table for a restored simulation that had received these messages.
    pub fn restored(before: BTreeMap<String, u64>) -> Classes {
        Classes {
            known: FxHashMap::default(),
            before,
        }
    }

    fn class(&mut self, value: &Bound<'_, PyAny>) -> PyResult<&mut Class> {
        let place = value.get_type_ptr() as usize;
        match self.known.entry(place) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => Ok(new.insert(Class::of(&value.get_type())?)),
        }
    }

    fn add(&mut self, value: &Bound<'_, PyAny>, to: &mut Fingerprint, depth: u32) -> PyResult<()> {
        let py = value.py();
        let class = self.class(value)?;
        match &class.form {
            Form::Nothing => to.write_u64(class.hash),
            Form::Truth => to.write_u64(u64::from(value.is_truthy()?)),
            Form::Whole => match value.extract::<i64>() {
                Ok(number) => to.write_u64(number as u64),
                Err(_) => to.write(value.str()?.to_cow()?.as_bytes()),
            },
            Form::Real => to.write_u64(value.extract::<f64>()?.to_bits()),
            Form::Text => to.write(value.cast::<PyString>()?.to_cow()?.as_bytes()),
            Form::Bytes => to.write(value.cast::<PyBytes>()?.as_bytes()),
            Form::Opaque => to.write_u64(class.hash),
            _ if depth >= DEEPEST => to.write_u64(class.hash),
            Form::Enum => {
                to.write_u64(class.hash);
                let name = value.getattr("name")?.str()?;
                to.write(name.to_cow()?.as_bytes());
            }
            Form::Sequence => {
                to.write_u64(class.hash);
                for item in value.try_iter()? {
                    self.add(&item?, to, depth + 1)?;
                }
            }
            Form::Fields(names) => {
                to.write_u64(class.hash);
                let names: Vec<Py<PyString>> =
                    names.iter().map(|name| name.clone_ref(py)).collect();
                for name in names {
                    self.add(&value.getattr(name.bind(py))?, to, depth + 1)?;
                }
            }
        }
        Ok(())
    }
}

impl Class {
    fn of(class: &Bound<'_, PyType>) -> PyResult<Class> {
        let py = class.py();
        let name = class.qualname()?.to_string();
        let mut hash = Fingerprint::new();
        hash.write(name.as_bytes());
        let enumeration = py.import("enum")?.getattr("Enum")?;
        let is = |builtin: &str| -> PyResult<bool> {
            Ok(class.is(&py.import("builtins")?.getattr(builtin)?))
        };
        let form = if class.is(py.None().bind(py).get_type()) {
            Form::Nothing
        } else if is("bool")? {
            Form::Truth
        } else if is("int")? {
            Form::Whole
        } else if is("float")? {
            Form::Real
        } else if is("str")? {
            Form::Text
        } else if is("bytes")? {
            Form::Bytes
        } else if class.is_subclass(&enumeration)? {
            Form::Enum
        } else if let Ok(fields) = class.getattr("__dataclass_fields__") {
            let fields = fields.cast_into::<PyDict>()?;
            let names = fields
                .keys()
                .iter()
                .map(|name| Ok(name.cast_into::<PyString>()?.unbind()));
            Form::Fields(names.collect::<PyResult<_>>()?)
        } else if is("list")? || class.is_subclass_of::<PyTuple>()? {
            Form::Sequence
        } else {
            Form::Opaque
        };
        Ok(Class {
            _class: class.clone().unbind(),
            name,
            hash: hash.finish(),
            form,
            received: 0,
        })
    }
}
