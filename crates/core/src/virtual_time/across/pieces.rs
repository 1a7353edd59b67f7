//! Votes and parcels as pieces of bytes.
//!
//! ```text
//! piece    flags, then if it is the first of its window the vote, then sections
//! section  WINDOW its number, how many events, the events; FAR how many, each with its time; SPAWN one
//! event    its label, its cause if it has one, its message if it has one
//! ```
//!
//! Labels are the sixteen bytes that they are in memory; the processes of a run have one program. Only messages
//! and what spawns are made of go through a serializer.

use super::{Across, Cargo, Carrier, Lost};
use crate::contract::Message;
use crate::virtual_time::buffer::{Buffer, Pool};
use crate::virtual_time::exchange::Vote;
use crate::virtual_time::parcel::Far;
use crate::virtual_time::scheduled::{Cause, Head, Kind, Label, Scheduled};
use crate::virtual_time::stored::Stored;
use crate::virtual_time::travel::{CodecError, Input, Kinds, read_spawn, write_spawn};

/// Pieces end with the event with which they get longer than this.
const LONG: usize = 1 << 18;
const FIRST: u8 = 1;
const LAST: u8 = 2;
const WINDOW: u8 = 1;
const FAR: u8 = 2;
const SPAWN: u8 = 3;

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

    /// An event was written; goes on in another piece if this one is long.
    #[inline]
    fn counted(&mut self, tag: u8, window: u64) {
        self.count.1 += 1;
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
    /// Sends a shard of another process what there is for it. Why it cannot be sent is an error.
    pub(super) fn send(
        &mut self,
        to: usize,
        vote: Vote,
        parcel: &mut Cargo<M>,
    ) -> Result<(), String> {
        let (kinds, pool) = (&self.kinds, &mut self.pool);
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
            buffer.for_each(|event| {
                // SAFETY: the events of buffers are valid.
                let written = unsafe { write_stored(kinds, event, &mut pieces.piece) };
                failed = failed.take().or(written.err());
                pieces.counted(WINDOW, window);
            });
            pieces.end_section();
            pool.put(buffer.into_cleared());
            failed.map_or(Ok(()), |error| Err(unwritten(error)))?;
        }
        if !parcel.far.is_empty() {
            pieces.section(FAR, 0);
            for Far { time, event } in parcel.far.drain(..) {
                pieces.piece.extend_from_slice(&time.to_le_bytes());
                let piece = &mut pieces.piece;
                write_event(kinds, &event.head, event.body(), piece).map_err(unwritten)?;
                pieces.counted(FAR, 0);
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

/// Writes an event as it lies in a buffer, and leaves it there.
///
/// # Safety
/// It is a stored event that has not been moved out.
#[inline]
unsafe fn write_stored<M: Message>(
    kinds: &Kinds<M>,
    event: *mut Stored<M>,
    to: &mut Vec<u8>,
) -> Result<(), CodecError> {
    // SAFETY: the contract; a kind with a body has one.
    unsafe {
        let head = Stored::head(event, 0);
        let body = head.kind().has_body().then(|| &*Stored::body(event));
        write_event(kinds, &head, body, to)
    }
}

#[inline]
fn write_event<M: Message>(
    kinds: &Kinds<M>,
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
    body.map_or(Ok(()), |body| kinds.codec().write_body(body, to))
}

/// Takes so many bytes.
#[inline]
fn take<const N: usize>(from: &mut Input<'_>) -> Result<[u8; N], CodecError> {
    let (taken, rest) = from
        .split_first_chunk::<N>()
        .ok_or_else(CodecError::short)?;
    *from = rest;
    Ok(*taken)
}

fn take_u64(from: &mut Input<'_>) -> Result<u64, CodecError> {
    take(from).map(u64::from_le_bytes)
}

#[inline]
fn read_event<M: Message>(
    kinds: &Kinds<M>,
    from: &mut Input<'_>,
) -> Result<Scheduled<M>, CodecError> {
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
        Scheduled::with_body(head, kinds.codec().read_body(from)?)
    } else {
        Scheduled::bare(head)
    })
}

/// Takes in a piece. Returns its flags.
fn read_piece<M: Message>(
    kinds: &Kinds<M>,
    pool: &mut Pool<M>,
    vote: &mut Vote,
    parcel: &mut Cargo<M>,
    mut piece: &[u8],
) -> Result<u8, CodecError> {
    let from = &mut piece;
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
                for _ in 0..count {
                    buffer.push(pool, read_event(kinds, from)?);
                }
            }
            [FAR] => {
                for _ in 0..u32::from_le_bytes(take(from)?) {
                    let time = take_u64(from)?;
                    let event = read_event(kinds, from)?;
                    parcel.far.push(Far { time, event });
                }
            }
            [SPAWN] => parcel.spawns.push(read_spawn(kinds, from)?),
            [other] => return Err(CodecError::Number(other.into(), "section")),
        }
    }
    Ok(flags)
}
