//! Serialization of events for another process of the run, which has the same program.
//!
//! ```text
//! event    its label, its cause if it has one, its message if it has one
//! ```
//!
//! A label is sent as the sixteen bytes that it has in memory. The loops over the events of a buffer are compiled
//! separately for each form of messages, so that writing a message costs no function call.

use super::codec::{Bodies, InPlace, Serialized};
use super::{CodecError, Input};
use crate::contract::Plain;
use crate::virtual_time::buffer::{Buffer, Pool};
use crate::virtual_time::event::{Cause, Head, Kind, Label, ScheduledEvent};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The number of bytes of a label.
const LABEL: usize = 16;
/// The size in bytes of the block in which plain events are assembled; the block stays in the cache.
const BLOCK: usize = 4096;

type ReadEvents<M> =
    fn(u32, &mut Input<'_>, &mut Buffer<M>, &mut Pool<M>) -> Result<(), CodecError>;

/// The serialization of a run's events for other processes.
pub(in super::super) struct Wire<M> {
    /// Appends all events of a buffer. Returns their number.
    pub(in super::super) write_events: fn(&Buffer<M>, &mut Vec<u8>) -> Result<u32, CodecError>,
    /// Adds `count` events to a buffer.
    pub(in super::super) read_events: ReadEvents<M>,
    /// Writes an event that is in no buffer.
    pub(in super::super) write_event:
        fn(&ScheduledEvent<M>, &mut Vec<u8>) -> Result<(), CodecError>,
    pub(in super::super) read_event: fn(&mut Input<'_>) -> Result<ScheduledEvent<M>, CodecError>,
}

impl<M> Clone for Wire<M> {
    fn clone(&self) -> Wire<M> {
        *self
    }
}

impl<M> Copy for Wire<M> {}

impl<M> Wire<M> {
    /// Returns the serialization for messages that postcard serializes.
    pub(super) fn serialized() -> Wire<M>
    where
        M: Serialize + DeserializeOwned,
    {
        Wire::of::<Serialized>()
    }

    /// Returns the serialization for plain messages.
    pub(super) fn plain() -> Wire<M>
    where
        M: Plain,
    {
        Wire {
            write_events: write_plain_events::<M>,
            read_events: read_plain_events::<M>,
            ..Wire::of::<InPlace>()
        }
    }

    fn of<B: Bodies<M>>() -> Wire<M> {
        Wire {
            write_events: write_events::<M, B>,
            read_events: read_events::<M, B>,
            write_event: |event, to| write_event::<M, B>(&event.head, event.body(), to),
            read_event: read_event::<M, B>,
        }
    }
}

/// Writes events one by one; see [`Wire::write_events`].
fn write_events<M, B: Bodies<M>>(buffer: &Buffer<M>, to: &mut Vec<u8>) -> Result<u32, CodecError> {
    let mut count = 0;
    // The maximum that plain messages need.
    to.reserve(buffer.bytes());
    buffer.try_for_each(|event, body| {
        count += 1;
        match body {
            Some(body) if event.label().kind() == Kind::Plain => {
                to.extend_from_slice(&event.label().to_bytes());
                B::write(body, to)
            }
            body => write_event::<M, B>(&event.head(0), body, to),
        }
    })?;
    Ok(count)
}

/// Writes events with plain messages; see [`Wire::write_events`]. The positions of labels and messages do not depend on
/// the contents, so only the kind of each event must be inspected.
fn write_plain_events<M: Plain>(buffer: &Buffer<M>, to: &mut Vec<u8>) -> Result<u32, CodecError> {
    let each = LABEL + M::SIZE;
    let (mut block, mut filled) = ([0; BLOCK], 0);
    let mut count = 0;
    buffer.try_for_each(|event, body| {
        let label = *event.label();
        count += 1;
        if filled + each > BLOCK {
            to.extend_from_slice(&block[..filled]);
            filled = 0;
        }
        let place = block[filled..].split_at_mut_checked(each);
        match (place, body) {
            (Some((place, _)), Some(body)) if label.kind() == Kind::Plain => {
                place[..LABEL].copy_from_slice(&label.to_bytes());
                body.write_to(&mut place[LABEL..]);
                filled += each;
            }
            _ => {
                to.extend_from_slice(&block[..filled]);
                filled = 0;
                write_event::<M, InPlace>(&event.head(0), body, to)?;
            }
        }
        Ok::<_, CodecError>(())
    })?;
    to.extend_from_slice(&block[..filled]);
    Ok(count)
}

fn write_event<M, B: Bodies<M>>(
    head: &Head,
    body: Option<&M>,
    to: &mut Vec<u8>,
) -> Result<(), CodecError> {
    to.extend_from_slice(&head.label.to_bytes());
    if head.has_cause() {
        let Cause {
            sent,
            trace,
            parent,
        } = head.cause;
        for number in [sent, trace, parent] {
            to.extend_from_slice(&number.to_le_bytes());
        }
    }
    body.map_or(Ok(()), |body| B::write(body, to))
}

/// Reads events one by one; see [`Wire::read_events`].
fn read_events<M, B: Bodies<M>>(
    count: u32,
    from: &mut Input<'_>,
    buffer: &mut Buffer<M>,
    pool: &mut Pool<M>,
) -> Result<(), CodecError> {
    for _ in 0..count {
        let (label, rest) = from
            .split_first_chunk::<LABEL>()
            .ok_or_else(CodecError::short)?;
        let label = Label::from_bytes(*label);
        if label.kind() != Kind::Plain {
            buffer.push(pool, read_event::<M, B>(from)?);
            continue;
        }
        *from = rest;
        let body = B::read(from)?;
        let vacancy = buffer.vacancy(pool);
        vacancy.write(|place| place.write_plain(label, body));
    }
    Ok(())
}

/// Reads events of which most are plain; see [`Wire::read_events`].
fn read_plain_events<M: Plain>(
    count: u32,
    from: &mut Input<'_>,
    buffer: &mut Buffer<M>,
    pool: &mut Pool<M>,
) -> Result<(), CodecError> {
    for _ in 0..count {
        let plain = from
            .split_at_checked(LABEL + M::SIZE)
            .and_then(|(bytes, rest)| Some((bytes.split_first_chunk::<LABEL>()?, rest)))
            .map(|((label, body), rest)| (Label::from_bytes(*label), body, rest))
            .filter(|(label, ..)| label.kind() == Kind::Plain);
        // The last event may take fewer bytes than a plain one.
        let Some((label, body, rest)) = plain else {
            buffer.push(pool, read_event::<M, InPlace>(from)?);
            continue;
        };
        *from = rest;
        let Some(body) = M::read_from(body) else {
            return Err(CodecError::Body);
        };
        let vacancy = buffer.vacancy(pool);
        vacancy.write(|place| place.write_plain(label, body));
    }
    Ok(())
}

fn read_event<M, B: Bodies<M>>(from: &mut Input<'_>) -> Result<ScheduledEvent<M>, CodecError> {
    let label = Label::from_bytes(take(from)?);
    let kind = label.kind();
    if kind == Kind::Timer {
        return Err(CodecError::Number(kind as u64, "event of another process"));
    }
    let mut cause = Cause {
        sent: 0,
        trace: 0,
        parent: 0,
    };
    if label.has_cause() {
        (cause.sent, cause.trace) = (take_u64(from)?, take_u64(from)?);
        cause.parent = take_u64(from)?;
    }
    let head = Head { label, cause };
    Ok(if kind.has_body() {
        ScheduledEvent::with_body(head, B::read(from)?)
    } else {
        ScheduledEvent::bare(head)
    })
}

/// Takes `count` bytes.
#[inline]
pub(in super::super) fn take<const N: usize>(from: &mut Input<'_>) -> Result<[u8; N], CodecError> {
    let (taken, rest) = from
        .split_first_chunk::<N>()
        .ok_or_else(CodecError::short)?;
    *from = rest;
    Ok(*taken)
}

pub(in super::super) fn take_u64(from: &mut Input<'_>) -> Result<u64, CodecError> {
    take(from).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsm::Msg;

    fn event(seq: u32) -> ScheduledEvent<Msg> {
        let kinds = [Kind::Plain, Kind::Message, Kind::Down, Kind::Reply];
        let kind = kinds[seq as usize % kinds.len()];
        let mut head = Head::new(5, kind, 1, 2, seq, 77);
        if !head.has_cause() {
            return ScheduledEvent::with_body(head, Msg::Hello { name: seq });
        }
        head.cause.trace = u64::from(seq) << 40;
        head.cause.parent = u64::from(seq) << 33;
        match kind.has_body() {
            true => ScheduledEvent::with_body(head, Msg::GoldCoin(seq)),
            false => ScheduledEvent::bare(head),
        }
    }

    /// Returns the fields that distinguish events.
    fn essence(event: &ScheduledEvent<Msg>) -> (u128, [u64; 3], Option<Msg>) {
        let cause = event.head.cause;
        let cause = [cause.sent, cause.trace, cause.parent];
        (event.head.order(), cause, event.body().copied())
    }

    /// Returns the bytes of `count` events, which fill several chunks.
    fn written(wire: Wire<Msg>, count: u32, pool: &mut Pool<Msg>) -> Vec<u8> {
        let mut buffer = Buffer::new();
        (0..count).for_each(|seq| buffer.push(pool, event(seq)));
        let mut bytes = Vec::new();
        let events = (wire.write_events)(&buffer, &mut bytes).unwrap();
        let chunks = buffer.chunks();
        assert!(chunks > 1 && events == count, "{events} in {chunks} chunks");
        bytes
    }

    // Guarantee: cluster-1.
    #[test]
    fn events_of_all_kinds_come_out_as_they_went_in_with_and_without_a_serializer() {
        let count = if cfg!(miri) { 250 } else { 1000 };
        for wire in [Wire::plain(), Wire::serialized()] {
            let mut pool = Pool::new();
            let bytes = written(wire, count, &mut pool);
            let (mut from, mut buffer) = (bytes.as_slice(), Buffer::new());
            (wire.read_events)(count, &mut from, &mut buffer, &mut pool).unwrap();
            assert!(from.is_empty());
            let mut seq = 0;
            buffer.for_each(|stored| {
                // SAFETY: the event is moved out once, and needs no drop.
                let mut read = unsafe { stored.read(77) };
                if !read.head.has_cause() {
                    read.head.cause.sent = 77;
                }
                assert_eq!(essence(&read), essence(&event(seq)));
                seq += 1;
            });
            assert_eq!(seq, count);
            let mut one = Vec::new();
            (wire.write_event)(&event(1), &mut one).unwrap();
            let read = (wire.read_event)(&mut one.as_slice()).unwrap();
            assert_eq!(essence(&read), essence(&event(1)));
        }
    }

    // Guarantee: cluster-1.
    #[test]
    fn bytes_that_are_cut_or_no_event_are_an_error() {
        let mut pool = Pool::new();
        let count = 500;
        for wire in [Wire::plain(), Wire::serialized()] {
            let bytes = written(wire, count, &mut pool);
            let mut read = |mut from: &[u8]| {
                (wire.read_events)(count, &mut from, &mut Buffer::new(), &mut pool)
            };
            for cut in [0, 1, LABEL, LABEL + 1, bytes.len() / 2, bytes.len() - 1] {
                assert!(read(&bytes[..cut]).is_err(), "{cut} bytes");
            }
            let (mut timer, mut body) = (bytes.clone(), bytes.clone());
            timer[0] |= 0xF;
            assert!(read(&timer).is_err(), "timers do not travel");
            body[LABEL] = 0xFF;
            assert!(read(&body).is_err(), "there is no such message");
        }
    }
}
