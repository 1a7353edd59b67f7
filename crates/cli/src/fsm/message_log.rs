//! The log of every message, in the order of time.

use super::names::Names;
use super::observer::{Delivered, EXIT, SHUTDOWN};
use super::record::Received;
use corsair::Message;
use corsair::fsm::Msg;
use std::borrow::Cow;
use std::io::{self, Write};

/// Writes a line for each message (`TIME to from kind payload`), and between them the stages of
/// the run: that the FSM's first messages are delivered comes after the last of them, its shutdown
/// before its first goodbye.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(
    out: &mut impl Write,
    messages: &[Received],
    names: &Names,
    delivered: Option<Delivered>,
    ended: bool,
) -> io::Result<()> {
    let from_fsm = |m: &Received| matches!(m.message, Msg::Chat { .. });
    let last_gift = messages.iter().rposition(from_fsm);
    let first_goodbye = messages
        .iter()
        .position(|m| matches!(m.message, Msg::Goodbye { .. }));
    for (at, received) in messages.iter().enumerate() {
        if Some(at) == first_goodbye {
            writeln!(out, "{SHUTDOWN}")?;
        }
        line(out, received, names)?;
        if let (true, Some(delivered)) = (Some(at) == last_gift, delivered) {
            writeln!(out, "{}", delivered.line())?;
        }
    }
    if ended {
        writeln!(out, "{EXIT}")?;
    }
    Ok(())
}

fn line(out: &mut impl Write, received: &Received, names: &Names) -> io::Result<()> {
    let Received {
        at,
        to,
        from,
        message,
        ..
    } = received;
    let kind = Msg::KINDS[message.kind()];
    let payload: Cow<'_, str> = match *message {
        Msg::Hello { name } => names.pirate(name),
        Msg::NameDrop { buddy } => names.of(buddy),
        Msg::GoldCoin(gold) | Msg::Goodbye { gold } => gold.to_string().into(),
        Msg::Chat { period_ms } => format!("{period_ms}ms").into(),
    };
    writeln!(
        out,
        "{at} {} {} {kind} {payload}",
        names.of(*to),
        names.of(*from)
    )
}
