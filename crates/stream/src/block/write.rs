//! Rows of blocks as lines.

use super::{Block, Column, Data};
use crate::Value;
use crate::line::{Role, escape};
use std::fmt::Write;

impl Block {
    /// Appends a row as a line of the line protocol, without a newline; the time in nanoseconds.
    ///
    /// Reading the line gives equal values. Values that a line cannot represent are left out: floats that are not
    /// finite, tags with an empty value, columns of a reserved name, and names that are empty, contain a newline or end
    /// with a backslash. If no field remains, or the measurement has such a name or begins with `#` or a tab, nothing
    /// is appended.
    ///
    /// Returns true if a line was appended. O(columns).
    ///
    /// # Panics
    /// If the row does not exist.
    pub fn write_line(&self, row: usize, line: &mut String) -> bool {
        let begin = line.len();
        let time = self.times[row];
        let measurement = &*self.origin.measurement;
        if !can_be_said(measurement) || measurement.starts_with(['#', '\t']) {
            return false;
        }
        escape(measurement, Role::Measurement, line);
        for column in self.tags() {
            let Data::Tag(words) = &*column.data else {
                continue;
            };
            let word = words.get(row).filter(|word| can_be_said(word));
            let reserved = matches!(&*column.name, "time" | "_field" | "_measurement");
            if let Some(word) = word
                && can_be_said(&column.name)
                && !reserved
            {
                line.push(',');
                escape(&column.name, Role::Name, line);
                line.push('=');
                escape(word, Role::Name, line);
            }
        }
        let mut separator = ' ';
        // A tab before the first field would be skipped as white space, so a field whose name starts with a tab is not written first.
        let tabbed = |column: &&Column| column.name.starts_with('\t');
        let fields = self.fields().filter(|column| !tabbed(column));
        for column in fields.chain(self.fields().filter(tabbed)) {
            let value = column.data.get(row).filter(is_finite);
            if let Some(value) = value
                && can_be_said(&column.name)
                && &*column.name != "time"
                && !(separator == ' ' && tabbed(&column))
            {
                line.push(separator);
                separator = ',';
                escape(&column.name, Role::Name, line);
                line.push('=');
                write_value(&value, line);
            }
        }
        if separator == ' ' {
            line.truncate(begin);
            return false;
        }
        push(line, format_args!(" {time}"));
        true
    }

    /// Returns all rows as lines, each with a newline. See [`Block::write_line`]. O(rows × columns).
    pub fn to_lines(&self) -> String {
        let mut lines = String::new();
        for row in 0..self.rows() {
            if self.write_line(row, &mut lines) {
                lines.push('\n');
            }
        }
        lines
    }
}

/// True if a line can contain this name.
fn can_be_said(name: &str) -> bool {
    !name.is_empty() && !name.contains('\n') && !name.ends_with('\\')
}

fn is_finite(value: &Value) -> bool {
    !matches!(value, Value::Float(value) if !value.is_finite())
}

/// Appends the value of a field.
fn write_value(value: &Value, line: &mut String) {
    match value {
        // `Debug` always writes a decimal point or an exponent, and only as many digits as needed.
        Value::Float(value) => push(line, format_args!("{value:?}")),
        Value::Integer(value) => push(line, format_args!("{value}i")),
        Value::Unsigned(value) => push(line, format_args!("{value}u")),
        Value::Boolean(value) => push(line, format_args!("{value}")),
        Value::Text(text) => {
            line.push('"');
            escape(text, Role::Text, line);
            line.push('"');
        }
    }
}

fn push(line: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = line.write_fmt(text);
}
