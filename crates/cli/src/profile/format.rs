//! The fields of `profile.proto` that a CPU profile uses, encoded as protocol buffers.
//!
//! Strings are indices into `strings`, whose first entry is empty. Locations and functions have
//! explicit numbers, counted from 1. Only two kinds of fields are needed: integers, and lengths
//! followed by bytes.

/// A profile for `go tool pprof`.
pub struct Profile {
    /// The meaning of each number in a sample.
    pub sample_types: [ValueType; 2],
    pub samples: Vec<Sample>,
    pub locations: Vec<Location>,
    pub functions: Vec<Function>,
    pub strings: Vec<String>,
    /// The start in nanoseconds of Unix time.
    pub began: u64,
    /// The duration in nanoseconds.
    pub duration: u64,
    pub period_type: ValueType,
    /// Nanoseconds of CPU time between samples.
    pub period: u64,
}

#[derive(Clone, Copy)]
pub struct ValueType {
    pub kind: u64,
    pub unit: u64,
}

/// A stack, and the number of its samples.
pub struct Sample {
    /// Numbers of locations, innermost first.
    pub locations: Vec<u64>,
    /// The values of the sample, one for each of [`Profile::sample_types`].
    pub values: [u64; 2],
    /// The name of the thread, as a label with this key.
    pub thread: (u64, u64),
}

/// A line of a function.
pub struct Location {
    pub number: u64,
    pub function: u64,
    pub line: u64,
}

pub struct Function {
    pub number: u64,
    pub name: u64,
    pub system_name: u64,
    pub file: u64,
}

impl Profile {
    /// Returns the bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Message::default();
        for kind in self.sample_types {
            out.message(1, kind.encode());
        }
        for sample in &self.samples {
            out.message(2, sample.encode());
        }
        for location in &self.locations {
            let mut line = Message::default();
            line.integer(1, location.function);
            line.integer(2, location.line);
            let mut encoded = Message::default();
            encoded.integer(1, location.number);
            encoded.message(4, line);
            out.message(4, encoded);
        }
        for function in &self.functions {
            let mut encoded = Message::default();
            encoded.integer(1, function.number);
            encoded.integer(2, function.name);
            encoded.integer(3, function.system_name);
            encoded.integer(4, function.file);
            out.message(5, encoded);
        }
        for text in &self.strings {
            out.bytes(6, text.as_bytes());
        }
        out.integer(9, self.began);
        out.integer(10, self.duration);
        out.message(11, self.period_type.encode());
        out.integer(12, self.period);
        out.0
    }
}

impl ValueType {
    fn encode(self) -> Message {
        let mut out = Message::default();
        out.integer(1, self.kind);
        out.integer(2, self.unit);
        out
    }
}

impl Sample {
    fn encode(&self) -> Message {
        let mut label = Message::default();
        label.integer(1, self.thread.0);
        label.integer(2, self.thread.1);
        let mut out = Message::default();
        out.integers(1, &self.locations);
        out.integers(2, &self.values);
        out.message(3, label);
        out
    }
}

/// An encoded message.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// Appends an integer with seven bits per byte, lowest bits first; all bytes except the last
    /// have the highest bit set.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn integer(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: Message) {
        self.bytes(field, &message.0);
    }

    /// Appends a packed field with all of these integers.
    fn integers(&mut self, field: u64, values: &[u64]) {
        let mut packed = Message::default();
        values.iter().for_each(|&value| packed.varint(value));
        self.message(field, packed);
    }
}
