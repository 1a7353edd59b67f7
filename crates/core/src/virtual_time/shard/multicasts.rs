//! Sends messages to many receivers.

use super::Shard;
#[cfg(feature = "serde")]
use crate::contract::EachKind;
use crate::contract::{Addr, AddrRange, Message, PanicReport, Time, report::panic_text};
use crate::virtual_time::addresses::PAGE;
use crate::virtual_time::multicast::{Bodies, Multicast, MulticastLabel, Sharing};
use crate::virtual_time::shard::ShardCell;
#[cfg(feature = "serde")]
use crate::virtual_time::travel::{CodecError, get, put};
use crate::virtual_time::turn_cell::caught;
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

/// The minimum number of receivers for which a multicast pays off.
const MANY: u32 = if cfg!(miri) { 4 } else { 2 * PAGE };

/// Makes the messages for a receiver.
pub(in super::super) trait MakeBodies<M, const N: usize>:
    Send + Sync + 'static
{
    /// Makes the messages for the receiver with this index.
    fn make(&self, index: u32) -> [M; N];

    /// See [`Bodies::portable`].
    #[cfg(feature = "serde")]
    const KIND: Option<&'static str> = None;

    /// See [`Bodies::parameters`].
    #[cfg(feature = "serde")]
    fn parameters(&self, _: &mut Vec<u8>) -> Result<(), CodecError> {
        Err(CodecError::NoKind)
    }
}

/// Messages made by a closure.
pub(in super::super) struct ByClosure<F>(pub(in super::super) F);

impl<M, F: Fn(u32) -> [M; N] + Send + Sync + 'static, const N: usize> MakeBodies<M, N>
    for ByClosure<F>
{
    #[inline(always)]
    fn make(&self, index: u32) -> [M; N] {
        (self.0)(index)
    }
}

/// Creates the messages of a multicast from the data of its kind.
#[cfg(feature = "serde")]
pub(in super::super) struct ByKind<K>(pub(in super::super) K);

#[cfg(feature = "serde")]
impl<M, K: EachKind<M, N>, const N: usize> MakeBodies<M, N> for ByKind<K> {
    #[inline(always)]
    fn make(&self, index: u32) -> [M; N] {
        self.0.bodies(index)
    }

    const KIND: Option<&'static str> = Some(K::NAME);

    fn parameters(&self, to: &mut Vec<u8>) -> Result<(), CodecError> {
        put(to, &self.0)
    }
}

/// Messages of a kind, from serialized parameters.
#[cfg(feature = "serde")]
pub(in super::super) fn read_bodies<M: Message, K: EachKind<M, N>, const N: usize>(
    from: &mut &[u8],
) -> Result<Arc<dyn Bodies<Shard<M>>>, CodecError> {
    let kind: K = get(from)?;
    Ok(Arc::new(ByIndex(ByKind(kind))))
}

/// Messages made by a closure from the receiver's index.
struct ByIndex<B, const N: usize>(B);

impl<M: Message, B: MakeBodies<M, N>, const N: usize> Bodies<Shard<M>> for ByIndex<B, N> {
    #[inline]
    fn send(&self, label: MulticastLabel, receivers: Range<u32>, shard: ShardCell<M>) {
        let MulticastLabel {
            from, sent, first, ..
        } = label;
        let mut left = receivers;
        while !left.is_empty() {
            let mut at = left.start;
            let send = || {
                for index in left.clone() {
                    at = index;
                    let bodies = self.0.make(index);
                    let seq = label.seq + index * N as u32;
                    let to = first.wrapping_add(index);
                    shard.with(|shard| shard.post_row(from, sent, seq, to, bodies));
                }
            };
            let Err(panic) = caught(send) else {
                return;
            };
            let to = first.wrapping_add(at);
            shard.with(|shard| shard.note_unmade(from, sent, to, &*panic));
            left.start = at + 1;
        }
    }

    #[cfg(feature = "serde")]
    fn portable(&self) -> Option<&'static str> {
        B::KIND
    }

    #[cfg(feature = "serde")]
    fn parameters(&self, to: &mut Vec<u8>) -> Result<(), CodecError> {
        self.0.parameters(to)
    }
}

impl<M: Message> Shard<M> {
    /// Sends messages of the actor being run to each actor of a range. The run must have no network, and its messages
    /// must have only their sender as metadata. If the actor has too few sequence numbers left, it sends nothing and
    /// returns `bodies`.
    #[inline]
    pub(in super::super) fn post_each<const N: usize, B: MakeBodies<M, N>>(
        shard: ShardCell<M>,
        to: AddrRange,
        bodies: B,
    ) -> Result<(), B> {
        let label = shard.with(|shard| {
            let before = shard.header().seq;
            let count = u32::try_from(N).ok();
            let count = count.and_then(|count| count.checked_mul(to.len()));
            let last = count.and_then(|count| before.checked_add(count))?;
            shard.header().seq = last;
            Some(MulticastLabel {
                from: shard.turn.me,
                sent: shard.turn.now,
                seq: before.wrapping_add(1),
                first: to.first,
                count: to.len(),
            })
        });
        let Some(label) = label else {
            return Err(bodies);
        };
        let bodies = ByIndex(bodies);
        let shared = match shard.with(|shard| shard.settings.sharing) {
            Sharing::None => false,
            #[cfg(feature = "serde")]
            Sharing::Portable => B::KIND.is_some(),
            Sharing::All => true,
        };
        if shared && to.len() >= MANY {
            let bodies = Arc::new(bodies);
            shard.with(|shard| {
                shard.notable = true;
                shard.multicasts.push(Multicast { label, bodies });
            });
        } else {
            bodies.send(label, 0..label.count, shard);
        }
        Ok(())
    }

    /// Skips sequence numbers of the actor being run, one for each of `messages` messages.
    pub(in super::super) fn skip(&mut self, messages: usize) {
        let header = self.header();
        let messages = u32::try_from(messages).unwrap_or(u32::MAX);
        header.seq = header.seq.saturating_add(messages);
    }

    /// Reports that the messages for an actor could not be made, because their sender's closure panicked. The sender
    /// does not end, because it has already continued.
    #[cold]
    pub(in super::super) fn note_unmade(
        &mut self,
        from: u32,
        sent: u64,
        to: u32,
        panic: &(dyn Any + Send),
    ) {
        let report = PanicReport {
            who: Addr(from),
            // Another shard may know the name, and adds it to the report.
            name: String::new(),
            time: Time(sent),
            event: "making its messages for ".to_owned(),
            message: panic_text(panic),
        };
        self.report_panic(report, Some(to));
    }
}
