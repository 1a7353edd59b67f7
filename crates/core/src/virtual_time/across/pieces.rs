//! Votes and parcels as pieces of bytes.
//!
//! ```text
//! piece    flags, then if it is the first of its window the vote, then sections
//! section  WINDOW its number, how many events, the events; FAR how many, each with its time; SPAWN one;
//!          MULTICAST one
//! ```
//!
//! How events are written says [`Wire`](crate::virtual_time::travel::Wire). Only what spawns are made of, and messages that are
//! not plain data, go through a serializer.

use super::{Across, Cargo, Carrier, Lost};
use crate::contract::Message;
use crate::virtual_time::buffer::{Buffer, Pool};
use crate::virtual_time::exchange::Vote;
use crate::virtual_time::parcel::Far;
use crate::virtual_time::travel::{
    CodecError, Kinds, read_multicast, read_spawn, take, take_u64, write_multicast, write_spawn,
};

/// Pieces end with the events of a chunk with which they get longer than this.
const LONG: usize = 1 << 16;
const FIRST: u8 = 1;
const LAST: u8 = 2;
const WINDOW: u8 = 1;
const FAR: u8 = 2;
const SPAWN: u8 = 3;
const MULTICAST: u8 = 4;

/// Pieces that are being written for one shard.
struct Pieces<'a, C> {
    to: usize,
    carrier: &'a mut C,
    piece: Vec<u8>,
    /// Where the section's number of events stands, and what that is.
    count: (usize, u32),
}

impl<C: Carrier> Pieces<'_, C> {
    /// Begins a section for events.
    fn section(&mut self, tag: u8, window: u64) {
        self.piece.push(tag);
        if tag == WINDOW {
            self.piece.extend_from_slice(&window.to_le_bytes());
        }
        self.count = (self.piece.len(), 0);
        self.piece.extend_from_slice(&[0; 4]);
    }

    fn end_section(&mut self) {
        let (at, count) = self.count;
        self.piece[at..at + 4].copy_from_slice(&count.to_le_bytes());
    }

    /// So many events were written; goes on in another piece if this one is long.
    fn counted(&mut self, events: u32, tag: u8, window: u64) {
        self.count.1 += events;
        if self.piece.len() >= LONG {
            self.end_section();
            self.next();
            self.section(tag, window);
        }
    }

    /// Sends what is written and begins another piece.
    fn next(&mut self) {
        self.carrier.send(self.to, &mut self.piece);
        self.piece.push(0);
    }
}

impl<M: Message, C: Carrier> Across<'_, M, C> {
    /// Sends a shard of another process what there is for it; the memory of what is sent goes back to its owner with what comes
    /// from there. Why it cannot be sent is an error.
    pub(super) fn send(
        &mut self,
        to: usize,
        vote: Vote,
        parcel: &mut Cargo<M>,
        back: &mut Cargo<M>,
    ) -> Result<(), String> {
        let (wire, pool) = (self.kinds.wire(), &mut self.pool);
        parcel.spent.drain(..).for_each(|spent| pool.put(spent));
        let mut pieces = Pieces {
            to,
            carrier: &mut self.carrier,
            piece: std::mem::take(&mut self.piece),
            count: (0, 0),
        };
        pieces.piece.push(FIRST);
        write_vote(vote, &mut pieces.piece);
        let unwritten =
            |error: CodecError| format!("a message cannot be sent to another process: {error}");
        for (window, buffer) in parcel.windows.drain(..) {
            pieces.section(WINDOW, window);
            let mut failed = None;
            buffer.for_each_chunk(|begin, end| {
                // SAFETY: these are the events of a chunk.
                match unsafe { (wire.write_events)(begin, end, &mut pieces.piece) } {
                    Ok(events) => pieces.counted(events, WINDOW, window),
                    Err(error) => failed = Some(error),
                }
            });
            pieces.end_section();
            back.spent.push(buffer.into_cleared());
            failed.map_or(Ok(()), |error| Err(unwritten(error)))?;
        }
        if !parcel.far.is_empty() {
            pieces.section(FAR, 0);
            for Far { time, event } in parcel.far.drain(..) {
                pieces.piece.extend_from_slice(&time.to_le_bytes());
                (wire.write_event)(&event, &mut pieces.piece).map_err(unwritten)?;
                pieces.counted(1, FAR, 0);
            }
            pieces.end_section();
        }
        for spawn in parcel.spawns.drain(..) {
            pieces.piece.push(SPAWN);
            write_spawn(&spawn, &mut pieces.piece).map_err(|error| match error {
                CodecError::NoKind => format!(
                    "the actor {} is spawned by a closure or has an async body, and cannot be on several processes; spawn it by kind (`spawn_kind`)",
                    spawn.spawn.name(0)
                ),
                error => format!("the actor {} cannot be spawned on another process: {error}", spawn.spawn.name(0)),
            })?;
            if pieces.piece.len() >= LONG {
                pieces.next();
            }
        }
        for multicast in parcel.multicasts.drain(..) {
            pieces.piece.push(MULTICAST);
            write_multicast(&multicast, &mut pieces.piece).map_err(unwritten)?;
            if pieces.piece.len() >= LONG {
                pieces.next();
            }
        }
        pieces.piece[0] |= LAST;
        pieces.carrier.send(to, &mut pieces.piece);
        self.piece = pieces.piece;
        Ok(())
    }

    /// Receives what a shard of another process has for this one, and its vote.
    pub(super) fn receive(&mut self, from: usize, parcel: &mut Cargo<M>) -> Result<Vote, Lost> {
        let (kinds, pool) = (&self.kinds, &mut self.pool);
        let mut vote = Vote::NONE;
        loop {
            let mut flags = Ok(0);
            self.carrier.receive(from, &mut |piece| {
                flags = read_piece(kinds, pool, &mut vote, parcel, piece);
            })?;
            match flags {
                Ok(flags) if flags & LAST != 0 => return Ok(vote),
                Ok(_) => {}
                Err(error) => {
                    let why = "what worker";
                    self.carrier
                        .fail(format!("{why} {from} has sent makes no sense: {error}"));
                    return Err(Lost);
                }
            }
        }
    }
}

fn write_vote(vote: Vote, to: &mut Vec<u8>) {
    let Vote {
        next,
        end,
        halt,
        pause,
        busy,
        events,
        last,
    } = vote;
    for number in [next, end, events, last] {
        to.extend_from_slice(&number.to_le_bytes());
    }
    to.push(u8::from(halt) | u8::from(busy) << 1 | u8::from(pause) << 2);
}

/// Takes in a piece. Returns its flags.
fn read_piece<M: Message>(
    kinds: &Kinds<M>,
    pool: &mut Pool<M>,
    vote: &mut Vote,
    parcel: &mut Cargo<M>,
    mut piece: &[u8],
) -> Result<u8, CodecError> {
    let (wire, from) = (kinds.wire(), &mut piece);
    let [flags] = take(from)?;
    if flags & FIRST != 0 {
        (vote.next, vote.end) = (take_u64(from)?, take_u64(from)?);
        (vote.events, vote.last) = (take_u64(from)?, take_u64(from)?);
        let [bits] = take(from)?;
        (vote.halt, vote.busy, vote.pause) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
    }
    while !from.is_empty() {
        match take(from)? {
            [WINDOW] => {
                let window = take_u64(from)?;
                let count = u32::from_le_bytes(take(from)?);
                let goes_on = matches!(parcel.windows.last(), Some((last, _)) if *last == window);
                if !goes_on {
                    parcel.windows.push((window, Buffer::new()));
                }
                let Some((_, buffer)) = parcel.windows.last_mut() else {
                    continue;
                };
                (wire.read_events)(count, from, buffer, pool)?;
            }
            [FAR] => {
                for _ in 0..u32::from_le_bytes(take(from)?) {
                    let time = take_u64(from)?;
                    let event = (wire.read_event)(from)?;
                    parcel.far.push(Far { time, event });
                }
            }
            [SPAWN] => parcel.spawns.push(read_spawn(kinds, from)?),
            [MULTICAST] => parcel.multicasts.push(read_multicast(kinds, from)?),
            [other] => return Err(CodecError::Number(other.into(), "section")),
        }
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Time;
    use crate::fsm::Msg;
    use crate::virtual_time::across::saving::Saves;
    use crate::virtual_time::exchange::Matrix;
    use crate::virtual_time::scheduled::{Head, Kind, Scheduled};

    /// Gives back the pieces that it was given.
    #[derive(Default)]
    struct Echo(Vec<Vec<u8>>);

    impl Carrier for Echo {
        fn begin(&mut self) {}

        fn send(&mut self, _: usize, piece: &mut Vec<u8>) {
            self.0.push(std::mem::take(piece));
        }

        fn receive(&mut self, _: usize, read: &mut dyn FnMut(&[u8])) -> Result<(), Lost> {
            read(&self.0.remove(0));
            Ok(())
        }

        fn end(&mut self) {}

        fn fail(&mut self, why: String) {
            panic!("{why}");
        }
    }

    // Guarantee: cluster-1.
    #[test]
    fn what_is_sent_arrives_and_its_memory_goes_back_to_its_owner() {
        let matrix = Matrix::new(1);
        let mut across = Across {
            local: matrix.port(0),
            own: 0..1,
            me: 0,
            carrier: Echo::default(),
            kinds: Kinds::<Msg>::plain(),
            piece: Vec::new(),
            pool: Pool::new(),
            is_lost: false,
            agreed: Vote::NONE,
            progress: None,
            saves: Saves::new(None, Time::ZERO),
        };
        let mut pool = Pool::new();
        for count in [0, 5, if cfg!(miri) { 500 } else { 9000 }] {
            let mut buffer = Buffer::new();
            for seq in 0..count {
                let head = Head::new(5, Kind::Plain, 1, 2, seq, 0);
                let event = Scheduled::with_body(head, Msg::GoldCoin(seq));
                buffer.push(&mut pool, event);
            }
            let (mut out, mut back, mut inbox) =
                (Cargo::default(), Cargo::default(), Cargo::default());
            out.windows.push((7, buffer));
            let vote = Vote {
                next: 7,
                ..Vote::NONE
            };
            across.send(1, vote, &mut out, &mut back).unwrap();
            assert!(out.is_empty());
            assert_eq!(back.spent.len(), 1);
            back.spent.drain(..).for_each(|spent| pool.put(spent));
            assert_eq!(across.carrier.0.len() > 1, count > 4000);
            assert_eq!(across.receive(1, &mut inbox), Ok(vote));
            let mut seqs = Vec::new();
            for (window, buffer) in &inbox.windows {
                assert_eq!(*window, 7);
                // SAFETY: the events are there.
                buffer.for_each(|event| seqs.push(unsafe { (*event).label.seq }));
            }
            assert!(seqs.into_iter().eq(0..count));
        }
    }
}
