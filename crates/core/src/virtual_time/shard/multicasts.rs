//! Sending to many.

use super::Shard;
use super::counters::{Failure, FailureCause};
use crate::contract::{Addr, AddrRange, Message, PanicReport, Time, report::panic_text};
use crate::virtual_time::addresses::PAGE;
use crate::virtual_time::multicast::{Bodies, Multicast, MulticastLabel};
use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Fewer receivers than this are not worth a meeting.
const MANY: u32 = if cfg!(miri) { 4 } else { 2 * PAGE };

/// The messages are what a function makes of the receiver's index.
struct ByIndex<F, const N: usize>(F);

impl<M, F, const N: usize> Bodies<Shard<M>> for ByIndex<F, N>
where
    M: Message,
    F: Fn(u32) -> [M; N] + Send + Sync,
{
    #[inline]
    unsafe fn send(&self, label: MulticastLabel, receivers: Range<u32>, shard: *mut Shard<M>) {
        let MulticastLabel {
            from, sent, first, ..
        } = label;
        let mut left = receivers;
        while !left.is_empty() {
            let mut at = left.start;
            let send = AssertUnwindSafe(|| {
                for index in left.clone() {
                    at = index;
                    let bodies = (self.0)(index);
                    let seq = label.seq + index * N as u32;
                    // SAFETY: the contract; the reference ends before the function is called again.
                    unsafe {
                        (*shard).post_row(from, sent, seq, first.wrapping_add(index), bodies)
                    };
                }
            });
            let Err(panic) = catch_unwind(send) else {
                return;
            };
            // SAFETY: as above.
            unsafe { (*shard).note_unmade(from, sent, first.wrapping_add(at), &*panic) };
            left.start = at + 1;
        }
    }
}

impl<M: Message> Shard<M> {
    /// Sends messages of the actor being run to each of a range of others, where nothing is known of a message but its
    /// sender and there is no network. Gives the function back, and nothing is sent, if the actor has not so many sequence
    /// numbers left.
    ///
    /// # Safety
    /// The shard is valid and this thread's, and no reference to it is held.
    #[inline]
    pub(in super::super) unsafe fn post_each<const N: usize, F>(
        shard: *mut Shard<M>,
        to: AddrRange,
        bodies: F,
    ) -> Result<(), F>
    where
        F: Fn(u32) -> [M; N] + Send + Sync + 'static,
    {
        // SAFETY: the contract; references end before code of the user's runs.
        unsafe {
            let before = (*shard).header().seq;
            let count = u32::try_from(N).ok();
            let count = count.and_then(|count| count.checked_mul(to.len()));
            let Some(last) = count.and_then(|count| before.checked_add(count)) else {
                return Err(bodies);
            };
            (*shard).header().seq = last;
            let label = MulticastLabel {
                from: (*shard).turn.me,
                sent: (*shard).turn.now,
                seq: before.wrapping_add(1),
                first: to.first,
                count: to.len(),
            };
            let bodies = ByIndex(bodies);
            if (*shard).settings.shares_multicasts && to.len() >= MANY {
                let bodies = Arc::new(bodies);
                (*shard).multicasts.push(Multicast { label, bodies });
            } else {
                bodies.send(label, 0..label.count, shard);
            }
            Ok(())
        }
    }

    /// The actor being run sends so many messages fewer than it has numbers for.
    pub(in super::super) fn skip(&mut self, messages: usize) {
        let header = self.header();
        let messages = u32::try_from(messages).unwrap_or(u32::MAX);
        header.seq = header.seq.saturating_add(messages);
    }

    /// The messages for an actor could not be made: a panic of their sender's, in which it does not end, because it
    /// has gone on.
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
            // Another shard may know it.
            name: String::new(),
            time: Time(sent),
            event: "making its messages for ".to_owned(),
            message: panic_text(panic),
        };
        let whose = Some(to);
        if self.settings.survives_panics && from != super::ROOT {
            return self.counters.survive(report, whose);
        }
        self.fail_by(Failure {
            time: sent,
            who: from,
            name: String::new(),
            cause: FailureCause::Panic { report, whose },
        });
    }
}
