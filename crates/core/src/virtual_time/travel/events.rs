//! Serialization of events, spawns and multicasts.

use super::codec::put_number;
use super::{Codec, CodecError, Input, Kinds, get, put};
use crate::contract::{Message, Spawn};
use crate::virtual_time::event::{Head, Kind, ScheduledEvent};
use crate::virtual_time::multicast::Multicast;
use crate::virtual_time::population::SpawnRequest;
use crate::virtual_time::shard::Shard;
use crate::virtual_time::stored_event::EventRef;

impl<M: Message> Codec<M> {
    /// Writes an event that is due at `time`.
    pub(in super::super) fn write_event(
        &self,
        time: u64,
        event: &ScheduledEvent<M>,
        to: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        self.write(time, &event.head, event.body(), to)
    }

    /// Writes an event from a buffer of the window that begins at `base`. The event stays in the buffer.
    pub(in super::super) fn write_stored(
        &self,
        base: u64,
        event: EventRef<'_, M>,
        message: Option<&M>,
        to: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let time = base + u64::from(event.label().offset());
        self.write(time, &event.head(time), message, to)
    }

    fn write(
        &self,
        time: u64,
        head: &Head,
        body: Option<&M>,
        to: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        to.push(head.kind() as u8);
        put_number(to, time);
        put_number(to, head.to.into());
        if head.kind() == Kind::Timer {
            put_number(to, head.cause.parent);
            return Ok(());
        }
        put_number(to, head.from.into());
        put_number(to, head.seq.into());
        if head.has_cause() {
            put_number(to, head.cause.sent);
            put_number(to, head.cause.trace);
            put_number(to, head.cause.parent);
        }
        body.map_or(Ok(()), |body| (self.encode)(body, to))
    }

    /// Reads an event and its time. The shard computes the offset in its window.
    pub(in super::super) fn read_event(
        &self,
        from: &mut Input<'_>,
    ) -> Result<(u64, ScheduledEvent<M>), CodecError> {
        use crate::virtual_time::event::{TIMER_FROM, TIMER_SEQ};
        let number: u8 = get(from)?;
        let kind = Kind::from_number(number).ok_or(CodecError::Number(number.into(), "event"))?;
        let time: u64 = get(from)?;
        let to: u32 = get(from)?;
        if kind == Kind::Timer {
            let mut head = Head::new(0, kind, to, TIMER_FROM, TIMER_SEQ, time);
            head.cause.parent = get::<u32>(from)?.into();
            return Ok((time, ScheduledEvent::bare(head)));
        }
        let mut head = Head::new(0, kind, to, get(from)?, get(from)?, time);
        if head.has_cause() {
            head.cause.sent = get(from)?;
            head.cause.trace = get(from)?;
            head.cause.parent = get(from)?;
        }
        if kind.has_body() {
            let body = (self.decode)(from)?;
            return Ok((time, ScheduledEvent::with_body(head, body)));
        }
        Ok((time, ScheduledEvent::bare(head)))
    }
}

/// Writes a requested spawn.
pub(in super::super) fn write_spawn<M: Message>(
    request: &SpawnRequest<M, Shard<M>>,
    to: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let kind = request.blueprint.portable().ok_or(CodecError::NoKind)?;
    put(to, &(request.time, request.parent, request.request))?;
    put(to, &request.spawn)?;
    put(to, kind)?;
    request.blueprint.parameters(to)
}

/// Reads a spawn that [`write_spawn`] has written.
pub(in super::super) fn read_spawn<M: Message>(
    kinds: &Kinds<M>,
    from: &mut Input<'_>,
) -> Result<SpawnRequest<M, Shard<M>>, CodecError> {
    let (time, parent, request) = get(from)?;
    let spawn: Spawn = get(from)?;
    let kind: String = get(from)?;
    let blueprint = kinds.blueprint(&kind, from)?;
    Ok(SpawnRequest {
        time,
        parent,
        request,
        spawn,
        blueprint,
    })
}

/// Writes a multicast.
pub(in super::super) fn write_multicast<M: Message>(
    multicast: &Multicast<Shard<M>>,
    to: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let Multicast { label, bodies } = multicast;
    let kind = bodies.portable().ok_or(CodecError::NoKind)?;
    put(to, label)?;
    put(to, kind)?;
    bodies.parameters(to)
}

/// Reads a multicast that [`write_multicast`] has written.
pub(in super::super) fn read_multicast<M: Message>(
    kinds: &Kinds<M>,
    from: &mut Input<'_>,
) -> Result<Multicast<Shard<M>>, CodecError> {
    let label = get(from)?;
    let kind: String = get(from)?;
    let bodies = kinds.bodies(&kind, from)?;
    Ok(Multicast { label, bodies })
}
