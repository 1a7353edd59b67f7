//! Spans: both ends of an exchange.

use crate::TraceContext;
use crate::directory::{Directory, NodeIdentity};
use serde::{Deserialize, Serialize, Serializer};

/// The value of a time that was not recorded.
pub(crate) const NEVER: u64 = u64::MAX;

/// The number of an unknown actor.
pub(crate) const NONE: u32 = u32::MAX;

/// Both ends of an exchange, if they were recorded. Times are in nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Span {
    pub(crate) context: TraceContext,
    pub(crate) client: u32,
    pub(crate) server: u32,
    pub(crate) client_send: u64,
    pub(crate) server_receive: u64,
    pub(crate) server_send: u64,
    pub(crate) client_receive: u64,
    /// The kind of the message that began the exchange.
    pub(crate) kind: u16,
    /// True if the exchange began with a message that expects no response.
    pub(crate) one_way: bool,
    pub(crate) failed: bool,
}

impl Span {
    /// Creates a span that has only its trace context.
    pub(crate) fn new(context: TraceContext) -> Span {
        Span {
            context,
            client: NONE,
            server: NONE,
            client_send: NEVER,
            server_receive: NEVER,
            server_send: NEVER,
            client_receive: NEVER,
            kind: u16::MAX,
            one_way: false,
            failed: false,
        }
    }

    /// Returns true if both ends are completely recorded.
    pub(crate) fn is_complete(&self) -> bool {
        let sent = self.client_send != NEVER && self.server_receive != NEVER;
        let answered = self.server_send != NEVER && self.client_receive != NEVER;
        sent && (self.one_way || answered)
    }

    /// Returns true if nothing more will be recorded: the span is complete, or its client has given
    /// up.
    pub(crate) fn is_over(&self) -> bool {
        self.is_complete() || self.failed && self.client_receive != NEVER
    }
}

/// The names that written spans contain, and the wall-clock time at which the run starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    pub(crate) directory: &'a Directory,
    pub(crate) kinds: &'static [&'static str],
    /// The names of operations that are not kinds of messages.
    pub(crate) operations: &'a [String],
    /// The start of the run in nanoseconds since 1970.
    pub(crate) epoch: i128,
}

impl<'a> Names<'a> {
    pub(crate) fn kind(&self, kind: u16) -> &'a str {
        let number = usize::from(kind);
        let operation = || self.operations.get(number.checked_sub(self.kinds.len())?);
        let kind = self.kinds.get(number).copied();
        kind.or_else(|| operation().map(String::as_str))
            .unwrap_or("unknown")
    }

    pub(crate) fn placed(&self, actor: u32) -> Option<&'a NodeIdentity> {
        self.directory.get(actor).map(|placed| &**placed)
    }

    /// Returns microseconds since 1970 for Zipkin, in which 0 means an unknown time.
    pub(crate) fn micros(&self, at: u64) -> u64 {
        (self.nanos(at) / 1_000).max(1)
    }

    /// Returns the nanoseconds since 1970; zero for an earlier date.
    pub(crate) fn nanos(&self, at: u64) -> u64 {
        let nanos = self.epoch.saturating_add(i128::from(at));
        u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)
    }
}

/// A number as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hex(pub(crate) u64);

/// A number as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LongHex(pub(crate) u64);

fn digits(number: u64, to: &mut [u8]) {
    for (digit, place) in to.iter_mut().rev().zip(0..) {
        *digit = b"0123456789abcdef"[(number >> (4 * place) & 15) as usize];
    }
}

fn text(digits: &[u8]) -> &str {
    std::str::from_utf8(digits).expect("hexadecimal digits are text")
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut all = [b'0'; 16];
        digits(self.0, &mut all);
        to.serialize_str(text(&all))
    }
}

impl Serialize for LongHex {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut all = [b'0'; 32];
        digits(self.0, &mut all[16..]);
        to.serialize_str(text(&all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: observe-6.
    #[test]
    fn ids_have_16_or_32_digits() {
        let short = serde_json::to_string(&Hex(0xfedc_ba98_0000_00a1)).unwrap();
        assert_eq!(short, "\"fedcba98000000a1\"");
        let long = serde_json::to_string(&LongHex(0x1a)).unwrap();
        assert_eq!(long, "\"0000000000000000000000000000001a\"");
    }
}
