//! Writes the arguments and properties of nodes.

use crate::expression::{write_duration, write_key, write_quoted};
use std::fmt::{self, Display, Write};
use std::sync::Arc;
use std::time::Duration;

/// Writes the arguments and properties of a node.
pub(crate) struct Writer<'w, 'f> {
    pub(super) out: &'w mut fmt::Formatter<'f>,
    /// The names of all inputs except the first.
    pub(super) others: &'w [&'w str],
}

impl Writer<'_, '_> {
    /// Writes `(a, b)`.
    pub(crate) fn arguments(&mut self, arguments: &[&dyn Display]) -> fmt::Result {
        self.out.write_char('(')?;
        for (at, argument) in arguments.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(self.out, "{comma}{argument}")?;
        }
        self.out.write_char(')')
    }

    /// Writes the names of the other inputs in parentheses, and one more argument.
    pub(crate) fn others(&mut self, more: Option<&String>) -> fmt::Result {
        let others = self.others.iter().map(|name| name as &dyn Display);
        let more = more.map(|more| more as &dyn Display);
        self.arguments(&others.chain(more).collect::<Vec<_>>())
    }

    /// Writes `.name(a, b)`.
    pub(crate) fn property(&mut self, name: &str, values: &[&dyn Display]) -> fmt::Result {
        write!(self.out, ".{name}")?;
        self.arguments(values)
    }

    /// Writes `.name()` if the flag is set.
    pub(crate) fn flag(&mut self, name: &str, is_set: bool) -> fmt::Result {
        match is_set {
            true => self.property(name, &[]),
            false => Ok(()),
        }
    }

    /// Writes `.name('text')` if there is a text.
    pub(crate) fn text(&mut self, name: &str, text: Option<&Arc<str>>) -> fmt::Result {
        match text {
            Some(text) => self.property(name, &[&Text(text)]),
            None => Ok(()),
        }
    }

    /// Writes `.name('a', 'b')`.
    pub(crate) fn names<'a>(
        &mut self,
        name: &str,
        names: impl IntoIterator<Item = &'a Arc<str>>,
    ) -> fmt::Result {
        let names: Vec<Text<'_>> = names.into_iter().map(|name| Text(name)).collect();
        let names: Vec<&dyn Display> = names.iter().map(|name| name as &dyn Display).collect();
        self.property(name, &names)
    }
}

/// Displays a text in single quotes.
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quoted(self.0, '\'', f)
    }
}

/// Displays the name of a field or tag, in double quotes if necessary.
pub(crate) struct Field<'a>(pub(crate) &'a str);

impl Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_key(self.0, f)
    }
}

/// Displays a duration in the language's format.
pub(crate) struct Time(pub(crate) Duration);

impl Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_duration(self.0.as_nanos() as i128, f)
    }
}
