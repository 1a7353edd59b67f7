//! Contributions to the reduction, and batches of events, in serialized form.
//!
//! ```text
//! batch    a section for each pair of shards with events, then the contribution of the process to the reduction
//! section  the shards that it is from and for, its length, then parts
//! part     WINDOW its number, how many events, the events; FAR how many, each with its time; SPAWN one; MULTICAST one
//! ```
//!
//! [`Wire`](crate::virtual_time::travel::Wire) writes the events. Only spawns, and messages that are not plain data, go
//! through a serializer.

use super::{Across, Cargo, Carrier, Failure};
use crate::contract::Message;
use crate::virtual_time::buffer::{Buffer, Pool};
use crate::virtual_time::exchange::Reduction;
use crate::virtual_time::outbox::OverflowEvent;
use crate::virtual_time::travel::{
    CodecError, Kinds, read_multicast, read_spawn, take, take_u64, write_multicast, write_spawn,
};
use std::sync::PoisonError;

const WINDOW: u8 = 1;
const FAR: u8 = 2;
const SPAWN: u8 = 3;
const MULTICAST: u8 = 4;

/// The size of a contribution to the reduction in bytes: four numbers and the flags.
const REDUCTION_BYTES: usize = 33;

impl<M: Message, C: Carrier> Across<'_, M, C> {
    /// Appends the batches of this shard for the shards of another process to the message for that process.
    /// The memory of the events is returned to its owners with `back`.
    ///
    /// # Errors
    /// If a batch cannot be serialized.
    pub(super) fn write(
        &mut self,
        process: usize,
        out: &mut [Cargo<M>],
        back: &mut [Cargo<M>],
    ) -> Result<(), Failure> {
        let mut sections = std::mem::take(&mut self.sections);
        let first = process * out.len();
        for ((to, cargo), back) in (first..).zip(out).zip(back) {
            cargo.spent.drain(..).for_each(|spent| self.pool.put(spent));
            if cargo.is_empty() {
                continue;
            }
            for shard in [self.me, to] {
                sections.extend_from_slice(&(shard as u32).to_le_bytes());
            }
            let length_at = sections.len();
            sections.extend_from_slice(&[0; 8]);
            write_section(&self.kinds, cargo, back, &mut sections).map_err(Failure::Here)?;
            let begin = length_at + 8;
            let length = (sections.len() - begin) as u64;
            sections[length_at..begin].copy_from_slice(&length.to_le_bytes());
        }
        if !sections.is_empty() {
            self.batches.append(process, &mut sections);
        }
        self.sections = sections;
        Ok(())
    }

    /// Reads the sections for this shard from the batch of another process.
    ///
    /// # Errors
    /// If the sections cannot be decoded.
    pub(super) fn read(&mut self, process: usize, inbox: &mut [Cargo<M>]) -> Result<(), Failure> {
        let incoming = self.batches.incoming.read();
        let incoming = incoming.unwrap_or_else(PoisonError::into_inner);
        let mut batch = incoming[process].as_slice();
        let first = process * inbox.len();
        let mut read = || -> Result<(), CodecError> {
            while !batch.is_empty() {
                let [from, to] = [take(&mut batch)?, take(&mut batch)?].map(u32::from_le_bytes);
                let length = take_u64(&mut batch)?;
                let section = usize::try_from(length)
                    .ok()
                    .and_then(|length| batch.split_at_checked(length));
                let (section, rest) = section.ok_or_else(CodecError::short)?;
                batch = rest;
                if to as usize == self.me {
                    let cargo = (from as usize).checked_sub(first);
                    let cargo = cargo.and_then(|index| inbox.get_mut(index));
                    let cargo = cargo.ok_or(CodecError::Number(from.into(), "shard"))?;
                    read_section(&self.kinds, &mut self.pool, cargo, section)?;
                }
            }
            Ok(())
        };
        read().map_err(|error| Failure::senseless(process, &format!("section ({error})")))
    }
}

/// Writes the number of events into the space reserved before them.
fn write_count(at: usize, count: u32, to: &mut [u8]) {
    to[at..at + 4].copy_from_slice(&count.to_le_bytes());
}

/// Reserves space for the number of events.
fn begin_count(to: &mut Vec<u8>) -> usize {
    to.extend_from_slice(&[0; 4]);
    to.len() - 4
}

/// Writes a batch and empties it. If the batch cannot be written, the error explains the reason.
fn write_section<M: Message>(
    kinds: &Kinds<M>,
    cargo: &mut Cargo<M>,
    back: &mut Cargo<M>,
    to: &mut Vec<u8>,
) -> Result<(), String> {
    let wire = kinds.wire();
    let unwritten =
        |error: CodecError| format!("a message cannot be sent to another process: {error}");
    for (window, buffer) in cargo.windows.drain(..) {
        to.push(WINDOW);
        to.extend_from_slice(&window.to_le_bytes());
        let at = begin_count(to);
        let written = (wire.write_events)(&buffer, to);
        back.spent.push(buffer.into_cleared());
        write_count(at, written.map_err(unwritten)?, to);
    }
    if !cargo.far.is_empty() {
        to.push(FAR);
        let (at, count) = (begin_count(to), cargo.far.len());
        for OverflowEvent { time, event } in cargo.far.drain(..) {
            to.extend_from_slice(&time.to_le_bytes());
            (wire.write_event)(&event, to).map_err(unwritten)?;
        }
        write_count(at, count as u32, to);
    }
    for spawn in cargo.spawns.drain(..) {
        to.push(SPAWN);
        write_spawn(&spawn, to).map_err(|error| {
            let name = spawn.spawn.name(0);
            match error {
                CodecError::NoKind => format!(
                    "the actor {name} is spawned by a closure or has an async body, and cannot run on several processes; spawn it by kind (`spawn_kind`)"
                ),
                error => format!("the actor {name} cannot be spawned on another process: {error}"),
            }
        })?;
    }
    for multicast in cargo.multicasts.drain(..) {
        to.push(MULTICAST);
        write_multicast(&multicast, to).map_err(unwritten)?;
    }
    Ok(())
}

/// Adds the contents of a section to a batch.
fn read_section<M: Message>(
    kinds: &Kinds<M>,
    pool: &mut Pool<M>,
    cargo: &mut Cargo<M>,
    mut section: &[u8],
) -> Result<(), CodecError> {
    let (wire, from) = (kinds.wire(), &mut section);
    while !from.is_empty() {
        match take(from)? {
            [WINDOW] => {
                let (window, mut buffer) = (take_u64(from)?, Buffer::new());
                let count = u32::from_le_bytes(take(from)?);
                (wire.read_events)(count, from, &mut buffer, pool)?;
                cargo.windows.push((window, buffer));
            }
            [FAR] => {
                for _ in 0..u32::from_le_bytes(take(from)?) {
                    let time = take_u64(from)?;
                    let event = (wire.read_event)(from)?;
                    cargo.far.push(OverflowEvent { time, event });
                }
            }
            [SPAWN] => cargo.spawns.push(read_spawn(kinds, from)?),
            [MULTICAST] => cargo.multicasts.push(read_multicast(kinds, from)?),
            [other] => return Err(CodecError::Number(other.into(), "part of a section")),
        }
    }
    Ok(())
}

/// Appends a contribution to the reduction.
pub(super) fn write_reduction(contribution: Reduction, to: &mut Vec<u8>) {
    let Reduction {
        next,
        end,
        halt,
        pause,
        busy,
        events,
        last,
    } = contribution;
    for number in [next, end, events, last] {
        to.extend_from_slice(&number.to_le_bytes());
    }
    to.push(u8::from(halt) | u8::from(busy) << 1 | u8::from(pause) << 2);
}

/// Removes the contribution to the reduction from the end of a batch.
pub(super) fn take_reduction(batch: &mut Vec<u8>) -> Option<Reduction> {
    let begin = batch.len().checked_sub(REDUCTION_BYTES)?;
    let (numbers, flags) = batch[begin..].split_at(REDUCTION_BYTES - 1);
    let (numbers, _) = numbers.as_chunks::<8>();
    let &[next, end, events, last] = numbers else {
        return None;
    };
    let [next, end, events, last] = [next, end, events, last].map(u64::from_le_bytes);
    let bit = |bit: u8| flags[0] & bit != 0;
    let contribution = Reduction {
        next,
        end,
        halt: bit(1),
        busy: bit(2),
        pause: bit(4),
        events,
        last,
    };
    batch.truncate(begin);
    Some(contribution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Time;
    use crate::fsm::Msg;
    use crate::virtual_time::across::saving::Saves;
    use crate::virtual_time::across::{Batches, ThreadCarrier};
    use crate::virtual_time::event::{Head, Kind, ScheduledEvent};
    use crate::virtual_time::exchange::Matrix;

    type Shard<'a> = Across<'a, Msg, ThreadCarrier>;

    fn shard<'a>(me: usize, matrix: &'a Matrix<Cargo<Msg>>, batches: &'a Batches) -> Shard<'a> {
        Across {
            local: matrix.port(0),
            batches,
            carrier: None,
            own: me..me + 1,
            me,
            kinds: Kinds::plain(),
            sections: Vec::new(),
            pool: Pool::new(),
            failure: None,
            agreed: Reduction::NONE,
            progress: None,
            saves: Saves::new(None, Time::ZERO),
        }
    }

    /// Creates a batch with `count` events for window 7.
    fn cargo(count: u32, pool: &mut Pool<Msg>) -> Cargo<Msg> {
        let mut buffer = Buffer::new();
        for seq in 0..count {
            let head = Head::new(5, Kind::Plain, 1, 2, seq, 0);
            buffer.push(pool, ScheduledEvent::with_body(head, Msg::GoldCoin(seq)));
        }
        let mut cargo = Cargo::default();
        cargo.windows.push((7, buffer));
        cargo
    }

    /// Serializes the batch that shard 0 sends to shard 1 of another process.
    fn batch(cargo: Cargo<Msg>, back: &mut Cargo<Msg>) -> Vec<u8> {
        let (matrix, batches) = (Matrix::new(1), Batches::new(2));
        let mut out = [cargo];
        let back = std::slice::from_mut(back);
        shard(0, &matrix, &batches)
            .write(1, &mut out, back)
            .unwrap();
        assert!(out[0].is_empty());
        let batch = batches.outgoing[1].lock().unwrap();
        batch.clone()
    }

    fn read(batch: Vec<u8>) -> Result<Cargo<Msg>, Failure> {
        let (matrix, batches) = (Matrix::new(1), Batches::new(2));
        batches.incoming.write().unwrap()[0] = batch;
        let mut inbox = [Cargo::default()];
        shard(1, &matrix, &batches).read(0, &mut inbox)?;
        let [cargo] = inbox;
        Ok(cargo)
    }

    // Guarantee: cluster-1.
    #[test]
    fn parcels_arrive_and_their_memory_goes_back_to_its_owner() {
        let mut pool = Pool::new();
        for count in [1, 5, if cfg!(miri) { 500 } else { 9000 }] {
            let mut back = Cargo::default();
            let batch = batch(cargo(count, &mut pool), &mut back);
            assert_eq!(back.spent.len(), 1);
            back.spent.drain(..).for_each(|spent| pool.put(spent));
            let mut seqs = Vec::new();
            for (window, buffer) in &read(batch).unwrap().windows {
                assert_eq!(*window, 7);
                buffer.for_each(|event| seqs.push(event.label().seq));
            }
            assert!(seqs.into_iter().eq(0..count));
        }
    }

    #[test]
    fn an_empty_parcel_takes_no_section() {
        assert!(batch(Cargo::default(), &mut Cargo::default()).is_empty());
    }

    #[test]
    fn a_batch_that_is_cut_or_for_another_shard_is_an_error() {
        let whole = batch(cargo(20, &mut Pool::new()), &mut Cargo::default());
        for length in 1..whole.len() {
            assert!(read(whole[..length].to_vec()).is_err(), "{length} bytes");
        }
        let mut from_nobody = whole;
        from_nobody[0] = 9;
        let Err(Failure::Here(said)) = read(from_nobody) else {
            panic!("a section from a shard of no process was accepted");
        };
        assert!(
            said.contains("process 0") && said.contains("shard"),
            "{said}"
        );
    }

    #[test]
    fn a_vote_is_read_as_it_was_written_and_missing_bytes_are_noticed() {
        let contribution = Reduction {
            next: 7,
            end: 8,
            halt: true,
            pause: true,
            busy: false,
            events: 9,
            last: 10,
        };
        let mut bytes = vec![1, 2, 3];
        write_reduction(contribution, &mut bytes);
        assert_eq!(take_reduction(&mut bytes.clone()), Some(contribution));
        assert_eq!(
            take_reduction(&mut bytes[..REDUCTION_BYTES - 1].to_vec()),
            None
        );
        take_reduction(&mut bytes);
        assert_eq!(bytes, [1, 2, 3]);
    }
}
