//! Actors of one spawn on one shard, side by side in memory, and how an event reaches one.
//!
//! The engine hands a population a run of events; the loop over them is compiled for the type of
//! the population's actors, so that a handler is inlined into it and an event costs no indirect
//! call.

use super::header::{Header, State};
use super::pages::{PAGE, PAGE_BITS, Page, Region};
use super::population::{Blueprint, Population};
use super::scheduled::{Kind, Scheduled};
use super::shard::{ROOT, Shard, Timer};
use crate::contract::{Flow, Message, Reason};
use std::alloc::Layout;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// What an actor's type has to do with events.
pub(super) trait Form<M>: Send + Sync + 'static {
    /// What lies in a slot.
    type Actor: 'static;

    /// Makes the actor with this index.
    fn make(&self, shard: *mut Shard<M>, index: u32) -> Self::Actor;

    /// Does what it does before its first event.
    ///
    /// # Safety
    /// Called on the shard's thread, with a shard that nobody holds a reference to; `actor` is
    /// pinned in its slot and not used otherwise. So for the other functions.
    unsafe fn begin(actor: *mut Self::Actor, shard: *mut Shard<M>);

    /// Lets it handle the event that has arrived, if one has; if not, it has just begun.
    ///
    /// # Safety
    /// As for [`Form::begin`].
    unsafe fn handle(actor: *mut Self::Actor, shard: *mut Shard<M>) -> Flow;

    /// Lets it say in the shard's `waiting` what it waits for.
    ///
    /// # Safety
    /// As for [`Form::begin`].
    unsafe fn ask(actor: *mut Self::Actor, shard: *mut Shard<M>);
}

/// An actor's place in memory: whole cache lines, so that none holds parts of two actors and all
/// that an actor has can be fetched ahead.
#[repr(C, align(64))]
struct Slot<A> {
    header: Header,
    /// Initialised exactly if the header's state is [`State::Live`].
    actor: MaybeUninit<A>,
}

/// The population of a form.
struct Residents<M, F: Form<M>> {
    form: Arc<F>,
    first: u32,
    count: u32,
    slots: usize,
    region: Region,
    _message: PhantomData<fn() -> M>,
}

impl<M: Message, F: Form<M>> Blueprint<M, Shard<M>> for F {
    fn build(
        self: Arc<Self>,
        first: u32,
        count: u32,
        slots: usize,
    ) -> Box<dyn Population<M, Shard<M>>> {
        let region = Region::new(Layout::new::<Slot<F::Actor>>(), slots);
        Box::new(Residents {
            form: self,
            first,
            count,
            slots,
            region,
            _message: PhantomData,
        })
    }
}

/// Whether an actor is to handle an event.
enum Ready {
    Yes,
    No,
    Ends(Reason),
}

/// Counts a message being delivered.
///
/// # Safety
/// The shard is valid and nobody holds a reference to it; the event has a body.
#[inline(always)]
unsafe fn count_message<M: Message>(shard: *mut Shard<M>, event: *const Scheduled<M>) {
    // SAFETY: the contract. What the message's type is asked for is foreign code, and is over
    // before the shard is borrowed.
    unsafe {
        let body = (*event).body_unchecked();
        let (kind, fingerprint) = (body.kind(), body.fingerprint());
        (*shard).count_message(kind, fingerprint);
    }
}

/// How many events ahead a slot is fetched into the cache.
const AHEAD: usize = 10;

impl<M: Message, F: Form<M>> Residents<M, F> {
    /// The slot of an actor of this population.
    ///
    /// # Safety
    /// The actor is one of this population, and this shard has its page.
    #[inline(always)]
    unsafe fn slot(&self, shard: *mut Shard<M>, actor: u32) -> *mut Slot<F::Actor> {
        // SAFETY: an actor of the population has a page, and the page's memory has its slot.
        unsafe {
            let pages: &[Page] = &(*shard).places.pages;
            let page = pages.get_unchecked((actor >> PAGE_BITS) as usize);
            page.slots
                .cast::<Slot<F::Actor>>()
                .add((actor % PAGE) as usize)
        }
    }

    /// Fetches an actor's slot into the cache, if it is one of this population.
    #[inline(always)]
    unsafe fn prefetch(&self, shard: *mut Shard<M>, actor: u32) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if actor.wrapping_sub(self.first) < self.count {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: the slot is one of this population's; a prefetch reads nothing.
            unsafe {
                let line = self.slot(shard, actor).cast::<i8>();
                _mm_prefetch(line, _MM_HINT_T0);
                _mm_prefetch(line.wrapping_add(64), _MM_HINT_T0);
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = (shard, actor);
    }

    /// Lets the actor of a slot handle one event.
    ///
    /// # Safety
    /// As for [`Population::run`]; `event` has not been moved out, and is from here on.
    #[inline(always)]
    unsafe fn deliver(
        &self,
        shard: *mut Shard<M>,
        slot: *mut Slot<F::Actor>,
        event: *mut Scheduled<M>,
    ) {
        // SAFETY: shard, slot and event are valid by the contract. References to them end before
        // code of an actor or of a message type is called.
        unsafe {
            let head = &raw const (*event).head;
            (*shard).turn.me = (*head).to;
            (*shard).turn.now = (*shard).window.base + (*head).offset() as u64;
            (*shard).turn.header = &raw mut (*slot).header;
            (*shard).turn.current = head;
            if (*slot).header.state == State::Live && (*head).is_message() {
                (*shard).turn.arrived = event;
                count_message(shard, event);
            } else {
                match self.prepare(shard, slot, event) {
                    Ready::Yes => {}
                    Ready::No => return,
                    Ready::Ends(reason) => return self.end(shard, slot, reason),
                }
            }
            if F::handle((*slot).actor.as_mut_ptr(), shard) == Flow::Stop {
                self.end(shard, slot, Reason::Returned);
            }
        }
    }

    /// Prepares the delivery of what is not a message for an actor that has begun.
    ///
    /// # Safety
    /// As for [`Residents::deliver`].
    #[inline(never)]
    unsafe fn prepare(
        &self,
        shard: *mut Shard<M>,
        slot: *mut Slot<F::Actor>,
        event: *mut Scheduled<M>,
    ) -> Ready {
        // SAFETY: as in `deliver`; the event is moved out once on every path.
        unsafe {
            let kind = (*event).head.kind();
            let state = (*slot).header.state;
            if state == State::Ended {
                let event = event.read();
                let kind = event.message_kind();
                drop((*shard).undeliverable(event, kind));
                return Ready::No;
            }
            if kind == Kind::Stop {
                return Ready::Ends(Reason::Stopped);
            }
            (*shard).turn.arrived = if kind == Kind::Start {
                std::ptr::null_mut()
            } else {
                event
            };
            if kind == Kind::Timer {
                let token = (*event).head.parent;
                (*shard).count_timer(token);
            } else if kind.is_message() {
                count_message(shard, event);
            }
            if state == State::Fresh {
                let made = self.form.make(shard, (*event).head.to - self.first);
                (*slot).actor.write(made);
                (*slot).header.state = State::Live;
                (*shard).tally.begun += 1;
                F::begin((*slot).actor.as_mut_ptr(), shard);
            }
        }
        Ready::Yes
    }

    /// Ends the actor being run.
    ///
    /// # Safety
    /// As for [`Residents::deliver`].
    #[cold]
    #[inline(never)]
    unsafe fn end(&self, shard: *mut Shard<M>, slot: *mut Slot<F::Actor>, reason: Reason) {
        // SAFETY: as in `deliver`. The state is `Ended` before the body is dropped, so that it is
        // dropped once, even if its drop panics.
        unsafe {
            let begun = (*slot).header.state == State::Live;
            (*slot).header.end(reason);
            let tally = &mut (*shard).tally;
            tally.ended += 1;
            tally.never += u64::from(!begun);
            let (me, now) = ((*shard).turn.me, (*shard).turn.now);
            if me == ROOT {
                let end = now.saturating_add((*shard).min_latency());
                (*shard).tally.root_end = end;
                (*shard).tally.root_ended = Some(now);
            }
            (*shard).turn.near.clear();
            let group = (*shard).places.group_of(me);
            let watcher = group
                .filter(|group| group.spawn.watched)
                .map(|group| group.parent);
            if let Some(parent) = watcher {
                (*shard).notify(Kind::Down, parent, Header::reason_number(reason) as u64);
            }
            if begun {
                (*slot).actor.as_mut_ptr().drop_in_place();
            }
            while let Some(event) = (*shard).take_kept() {
                let kind = event.message_kind();
                drop((*shard).undeliverable(event, kind));
            }
        }
    }

    /// As [`Residents::deliver`], for where it is rare: the handler is inlined only once.
    ///
    /// # Safety
    /// As for [`Residents::deliver`].
    #[cold]
    #[inline(never)]
    unsafe fn deliver_rarely(
        &self,
        shard: *mut Shard<M>,
        slot: *mut Slot<F::Actor>,
        event: *mut Scheduled<M>,
    ) {
        // SAFETY: passed on.
        unsafe { self.deliver(shard, slot, event) }
    }

    /// Runs the timers that the actor has set within the window and that are due before its next
    /// event.
    ///
    /// # Safety
    /// As for [`Population::run`]; the actor being run is that of `slot`.
    #[cold]
    #[inline(never)]
    unsafe fn run_near(&self, shard: *mut Shard<M>, slot: *mut Slot<F::Actor>, until: Option<u32>) {
        // SAFETY: as in `deliver`.
        unsafe {
            let until = until.map_or(u64::MAX, |offset| (*shard).window.base + offset as u64);
            while let Some(timer) = (*shard).turn.near.pop_if(|timer| timer.time < until) {
                if timer.time > (*shard).window.limit {
                    (*shard).tally.beyond = (*shard).tally.beyond.min(timer.time);
                    continue;
                }
                let mut event = MaybeUninit::new(timer.event((*shard).window.base, 0));
                self.deliver_rarely(shard, slot, event.as_mut_ptr());
            }
        }
    }
}

impl<M: Message, F: Form<M>> Population<M, Shard<M>> for Residents<M, F> {
    unsafe fn run(
        &self,
        shard: *mut Shard<M>,
        events: *mut Scheduled<M>,
        order: &[u32],
        mut at: usize,
    ) -> usize {
        // SAFETY: `order` names events, by the contract.
        let receiver = |place: usize| unsafe { (*events.add(order[place] as usize)).head.to };
        while at < order.len() {
            let actor = receiver(at);
            if actor.wrapping_sub(self.first) >= self.count {
                break;
            }
            // SAFETY: the actor is one of this population, and events for it are only given to the
            // shard that has it. The rest is the contract.
            unsafe {
                // In the order of addresses the processor sees for itself what comes next.
                if let Some(&ahead) = order.get(at + AHEAD)
                    && ahead as usize != at + AHEAD
                {
                    self.prefetch(shard, (*events.add(ahead as usize)).head.to);
                }
                (*shard).window.cursor = at;
                let slot = self.slot(shard, actor);
                self.deliver(shard, slot, events.add(order[at] as usize));
                at += 1;
                let near: &[Timer] = &(*shard).turn.near;
                if !near.is_empty() {
                    let next = (at < order.len() && receiver(at) == actor)
                        .then(|| (*events.add(order[at] as usize)).head.offset());
                    self.run_near(shard, slot, next);
                }
            }
        }
        at
    }

    unsafe fn discard(&self, shard: *mut Shard<M>, actor: u32) {
        // SAFETY: the contract.
        unsafe {
            let slot = self.slot(shard, actor);
            self.end(shard, slot, Reason::Panicked);
        }
    }

    unsafe fn visit(&self, shard: *mut Shard<M>, each: &mut dyn FnMut(u32, *mut Header) -> bool) {
        let pages = self.count.div_ceil(PAGE);
        // SAFETY: only the shard's own pages are looked at, and only slots of the population.
        unsafe {
            let owned = (0..pages).filter(|page| (*shard).owns(self.first + page * PAGE));
            for page in owned.collect::<Vec<_>>() {
                for index in page * PAGE..self.count.min((page + 1) * PAGE) {
                    let header = &raw mut (*self.slot(shard, self.first + index)).header;
                    if !each(self.first + index, header) {
                        return;
                    }
                }
            }
        }
    }

    unsafe fn ask(&self, shard: *mut Shard<M>, actor: u32) {
        // SAFETY: the contract.
        unsafe {
            let slot = self.slot(shard, actor);
            (*shard).turn.me = actor;
            (*shard).turn.header = &raw mut (*slot).header;
            (*shard).turn.arrived = std::ptr::null_mut();
            F::ask((*slot).actor.as_mut_ptr(), shard);
        }
    }

    fn slots(&self) -> (*mut u8, usize) {
        (self.region.start(), size_of::<Slot<F::Actor>>())
    }

    unsafe fn drop_all(&mut self, shard: *mut Shard<M>) {
        if !std::mem::needs_drop::<F::Actor>() {
            return;
        }
        let slots = self.region.start().cast::<Slot<F::Actor>>();
        for index in 0..self.slots {
            // SAFETY: the region has so many slots; a live one has an actor, which is dropped
            // once. Nobody else uses them any more.
            unsafe {
                let slot = slots.add(index);
                if (*slot).header.state == State::Live {
                    (*slot).header.end(Reason::Stopped);
                    (*shard).leave();
                    (*slot).actor.as_mut_ptr().drop_in_place();
                }
            }
        }
    }
}
