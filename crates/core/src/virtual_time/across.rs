//! A run whose shards are in several processes.
//!
//! Shards are numbered over all processes, so many in a row in each; a shard meets those of its own process
//! as ever, by swapping parcels, and writes what it has for any other into pieces, which a [`Carrier`] takes
//! there. The first piece of a window has the shard's vote, the last says that it is the last. A shard can be no
//! more than one window ahead of another, because it needs what that one sends.

mod part;
mod pieces;
mod saving;
mod told;

pub use part::{Beginning, Part, conclude_parts, course, run_part};
pub use saving::{SavedPart, Saving};

use super::buffer::Pool;
use super::exchange::{Exchange, Matrix, Port, Vote};
use super::lending::Lent;
use super::parcel::Parcel;
use super::shard::Shard;
use super::travel::Kinds;
use crate::contract::{Message, Progress};
use saving::Saves;
use std::ops::Range;

/// Takes pieces of bytes between one worker and the workers of other processes.
///
/// Workers are numbered over all processes. What one sends another arrives in the order of sending, and whole.
pub trait Carrier {
    /// The worker has come to the end of a window. What it sends and receives from here on belongs to the meeting.
    fn begin(&mut self);

    /// Sends a piece to a worker of another process. It is left empty, with the memory that it had.
    fn send(&mut self, to: usize, piece: &mut Vec<u8>);

    /// Waits for the next piece of a worker of another process, and shows it.
    ///
    /// # Errors
    /// If the run is over because of another process.
    fn receive(&mut self, from: usize, read: &mut dyn FnMut(&[u8])) -> Result<(), Lost>;

    /// The meeting is over.
    fn end(&mut self);

    /// Ends the run of all processes, and says why.
    fn fail(&mut self, why: String);
}

/// The run is over because of another process; whoever made the [`Carrier`] knows why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

type Cargo<M> = Parcel<M, Shard<M>>;

/// A shard's side of the meetings with shards of its own and of other processes.
struct Across<'a, M: Message, C> {
    local: Port<Cargo<M>, &'a Matrix<Cargo<M>>>,
    /// The shards of this process.
    own: Range<usize>,
    me: usize,
    carrier: C,
    kinds: Kinds<M>,
    /// The memory of the piece that was sent last.
    piece: Vec<u8>,
    /// Memory for the events of other processes.
    pool: Pool<M>,
    is_lost: bool,
    /// What all shards agreed on when they met last.
    agreed: Vote,
    /// Told by the first shard of the process, if the root's is in another one.
    progress: Option<(Progress, u32)>,
    saves: Saves<'a>,
}

impl<M: Message, C: Carrier> Across<'_, M, C> {
    /// The run ends here, and for the other shards of this process.
    fn lose(&mut self, vote: Vote) -> Vote {
        self.is_lost = true;
        self.local.abandon();
        Vote { halt: true, ..vote }
    }

    /// The shards of other processes, beginning with the next one, so that not all begin with the same.
    fn others(&self, shards: usize) -> impl Iterator<Item = usize> + use<M, C> {
        let (me, own) = (self.me, self.own.clone());
        let next = (1..shards).map(move |ahead| (me + ahead) % shards);
        next.filter(move |shard| !own.contains(shard))
    }
}

impl<M: Message, C: Carrier> Exchange<Cargo<M>> for Across<'_, M, C> {
    fn exchange(
        &mut self,
        vote: Vote,
        out: &mut [Cargo<M>],
        inbox: &mut [Cargo<M>],
        mut idle: impl FnMut() -> bool,
    ) -> Vote {
        if self.is_lost {
            return Vote { halt: true, ..vote };
        }
        let pause = self.saves.is_wanted();
        let vote = Vote { pause, ..vote };
        self.carrier.begin();
        for to in self.others(out.len()) {
            if let Err(why) = self.send(to, vote, &mut out[to], &mut inbox[to]) {
                self.carrier.fail(why);
                return self.lose(vote);
            }
        }
        let own = self.own.clone();
        let mut agreed =
            (self.local).exchange(vote, &mut out[own.clone()], &mut inbox[own], &mut idle);
        if self.local.is_broken() {
            return self.lose(vote);
        }
        // What is done ahead here would be done later, if there is nothing to wait for.
        idle();
        for from in self.others(inbox.len()) {
            match self.receive(from, &mut inbox[from]) {
                Ok(other) => agreed = agreed.and(other),
                Err(Lost) => return self.lose(vote),
            }
        }
        self.carrier.end();
        self.agreed = agreed;
        if let Some((progress, window_bits)) = &self.progress
            && agreed.next != u64::MAX
        {
            progress.reached(agreed.next << window_bits);
        }
        agreed
    }

    fn can_lend(&self) -> bool {
        false
    }

    fn lend<E>(&mut self, _: *mut E) -> Lent<E> {
        Lent::Lost
    }

    fn give_back(&mut self) {}
}
