//! Windows with few events, one after the other, by one thread that has all shards.
//!
//! Between two windows that concern nobody but actors, shards have nothing to agree on, so there is no vote and
//! nothing is handed over: a window is run where its events were written. What ends a run, a pause, spawns and
//! whatever else concerns all shards is left for the [loop](super) of all windows.

use super::Engine;
use super::solo::Thickness;
use super::window::run_order;
use crate::contract::{Config, Message};
use crate::virtual_time::buffer::Buffer;
use crate::virtual_time::context::Running;
use crate::virtual_time::parcel::{RING, next_pending};
use crate::virtual_time::pause::Pause;
use crate::virtual_time::shard::Shard;
use crate::virtual_time::stored::{Room, Stored};
use std::ptr::{NonNull, null_mut};

/// So many events of a window are ordered where they are listed.
const FEW: usize = 8;

/// Places for a few timers, which lie in no buffer. In memory of their own, which nothing borrows together with
/// the engine.
pub(super) struct Rooms<M>(NonNull<[Room<M>; FEW]>);

impl<M> Rooms<M> {
    pub(super) fn new() -> Rooms<M> {
        let rooms = Box::into_raw(Box::new([const { Room::new() }; FEW]));
        Rooms(NonNull::new(rooms).expect("a box is not null"))
    }

    fn place(&self, number: usize) -> *mut u8 {
        assert!(number < FEW);
        self.0
            .as_ptr()
            .cast::<Room<M>>()
            .wrapping_add(number)
            .cast()
    }
}

impl<M> Drop for Rooms<M> {
    fn drop(&mut self) {
        // SAFETY: made from a box, and given back once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// A shard among those that one thread runs.
pub(super) struct Lane<M: Message> {
    engine: *mut Engine<M>,
    shard: *mut Shard<M>,
    /// The first window for which it has something for itself.
    own: u64,
    /// The first window for which it has sent something to others.
    sent: u64,
    /// The window being run has something for it.
    runs: bool,
}

impl<M: Message> Lane<M> {
    /// The lane of a shard, which the thread has.
    pub(super) fn new(engine: *mut Engine<M>) -> Lane<M> {
        Lane {
            engine,
            shard: null_mut(),
            own: u64::MAX,
            sent: u64::MAX,
            runs: false,
        }
    }

    /// Sees what there is for later windows.
    ///
    /// # Safety
    /// The thread has the shard, to which no reference is held.
    #[inline(always)]
    unsafe fn look(&mut self) {
        // SAFETY: the contract.
        let (shard, inbound) = unsafe { (&*self.shard, (*self.engine).inbound_pending) };
        let (queues, now) = (&shard.queues, shard.window.number);
        let (mut own, mut sent) = (inbound, 0);
        for (to, out) in queues.out.iter().enumerate() {
            let pending = if to == shard.index {
                &mut own
            } else {
                &mut sent
            };
            *pending |= out.pending;
        }
        let later = queues.timers.next().min(queues.far.next());
        self.own = next_pending(own, now).min(later);
        self.sent = next_pending(sent, now);
    }

    #[inline(always)]
    fn next(&self) -> u64 {
        self.own.min(self.sent)
    }
}

/// Runs windows as long as each concerns nobody but actors, and, if there are several shards, until windows are
/// thick again.
///
/// # Safety
/// The thread has all shards of the run, of which these are the lanes in their order, and no reference to any.
/// They have absorbed what was handed over to them, and the first one runs on this thread.
pub(super) unsafe fn run_thin<M: Message, P: Pause>(
    lanes: &mut [Lane<M>],
    thickness: &mut Thickness,
    config: &Config,
    pause: &P,
) {
    // SAFETY: the contract; each reference ends with its expression, or before actors run.
    unsafe {
        for lane in &mut *lanes {
            lane.shard = (*lane.engine).shard;
            if !(*lane.shard).is_undisturbed() {
                return;
            }
        }
        let window = &(*lanes[0].shard).window;
        let bits = (*lanes[0].shard).settings.window_bits;
        // Windows before this one end before the limit and before the pause.
        let bound = window.limit.min(pause.before()) >> bits;
        let mut number = window.number;
        for lane in &mut *lanes {
            if P::EVER {
                (*lane.engine).set_spawns_wait(pause);
            }
            lane.look();
        }
        let (mut windows, mut ran, mut busy) = (0, false, false);
        let mut running = None;
        loop {
            let next = lanes.iter().map(Lane::next).fold(u64::MAX, u64::min);
            if next >= bound || config.cut.is_cut() {
                break;
            }
            if !ran {
                // The window that was run last was not told.
                for lane in &mut *lanes {
                    busy |= std::mem::take(&mut (*lane.engine).busy);
                }
                ran = true;
            }
            windows += u64::from(busy);
            number = next;
            config.progress.reached(next << bits);
            let done = if lanes.len() == 1 {
                let done = run_lane(lanes, 0, next, pause);
                lanes[0].look();
                done
            } else {
                let done = run_lanes(lanes, &mut running, next, pause);
                thickness.count_events(done.events);
                done
            };
            busy = done.busy;
            if done.concerns_all || lanes.len() > 1 && thickness.is_thick() {
                break;
            }
        }
        drop(running);
        if !ran {
            return;
        }
        for lane in &mut *lanes {
            let engine = &mut *lane.engine;
            engine.windows += windows;
            engine.counted = false;
            engine.order.clear();
            let shard = engine.shard();
            shard.leave();
            if shard.window.number < number {
                shard.go_to(number);
            }
        }
        (*lanes[0].engine).busy = busy;
    }
}

/// What came of a window.
#[derive(Default)]
struct Done {
    /// The most events of a shard.
    events: u64,
    /// Something has happened.
    busy: bool,
    /// There is something on which all shards have to agree.
    concerns_all: bool,
}

/// Runs a window of several shards.
///
/// # Safety
/// As for [`run_thin`]; `window` is the next one for which there is anything.
unsafe fn run_lanes<M: Message, P: Pause>(
    lanes: &mut [Lane<M>],
    running: &mut Option<(usize, Running)>,
    window: u64,
    pause: &P,
) -> Done {
    let place = window % RING;
    // SAFETY: the contract; each reference ends with its expression, or before actors run.
    unsafe {
        for from in 0..lanes.len() {
            if lanes[from].sent == window {
                let outboxes = &(*lanes[from].shard).queues.out;
                for (to, out) in outboxes.iter().enumerate() {
                    lanes[to].runs |= out.pending >> place & 1 == 1;
                }
            }
            lanes[from].runs |= lanes[from].own == window;
        }
        let mut all = Done::default();
        for to in 0..lanes.len() {
            if !lanes[to].runs {
                continue;
            }
            if running.as_ref().map_or(0, |(which, _)| *which) != to {
                // One after the other, so that each restores what was there before.
                drop(running.take());
                if to > 0 {
                    *running = Some((to, Running::new(lanes[to].shard)));
                }
            }
            let done = run_lane(lanes, to, window, pause);
            all.events = all.events.max(done.events);
            all.busy |= done.busy;
            all.concerns_all |= done.concerns_all;
        }
        for at in 0..lanes.len() {
            if lanes[at].runs {
                pass_far_on(lanes, at, window);
            }
        }
        for lane in lanes {
            if std::mem::take(&mut lane.runs) || lane.sent == window {
                lane.look();
            }
        }
        all
    }
}

/// Gives what a shard has sent beyond the ring to those for which it is. These go along to the window that has been run:
/// what comes to wait in a wheel is put by the window that it is at, which may be long over.
///
/// # Safety
/// As for [`run_thin`]; nothing is due before the next window.
#[inline]
unsafe fn pass_far_on<M: Message>(lanes: &mut [Lane<M>], from: usize, window: u64) {
    // SAFETY: the contract; two shards are two.
    unsafe {
        for to in (0..lanes.len()).filter(|&to| to != from) {
            let far = &mut (&mut (*lanes[from].shard).queues.out)[to].far;
            if far.is_empty() {
                continue;
            }
            let shard = lanes[to].shard;
            if (*shard).window.number < window {
                (*shard).go_to(window);
            }
            let wheel = &mut (*shard).queues.far;
            far.drain(..).for_each(|far| wheel.push(far));
            lanes[to].look();
        }
    }
}

/// Runs a window of one shard.
///
/// # Safety
/// As for [`run_thin`]; nothing is due at the shard before.
#[inline]
unsafe fn run_lane<M: Message, P: Pause>(
    lanes: &mut [Lane<M>],
    to: usize,
    window: u64,
    pause: &P,
) -> Done {
    let (engine, shard) = (lanes[to].engine, lanes[to].shard);
    let place = (window % RING) as usize;
    let mut few = [null_mut::<Stored<M>>(); FEW];
    // SAFETY: the contract; each reference ends with its expression, or before actors run.
    unsafe {
        (*shard).go_to(window);
        let mut count = Some(0);
        for lane in &*lanes {
            let out = &(&(*lane.shard).queues.out)[to];
            if out.pending >> place & 1 == 1 {
                count = count.and_then(|count| out.ring[place].append_few(&mut few, count));
            }
        }
        let queues = &(*shard).queues;
        let timers = match queues.timers.is_due() {
            true => queues.timers.few_due(),
            false => Some(0),
        };
        let elsewhere = queues.far.is_due() || (*engine).inbound_pending >> place & 1 == 1;
        let (count, timers) = match (count, timers) {
            (Some(count), Some(timers)) if count + timers <= FEW && !elsewhere => (count, timers),
            _ => return run_many(lanes, to, window, pause),
        };
        for (from, lane) in lanes.iter().enumerate() {
            let out = &mut (&mut (*lane.shard).queues.out)[to];
            if out.pending >> place & 1 == 1 {
                out.pending &= !(1 << place);
                // From here on the events are moved out one by one. If that is cut short they are leaked.
                let buffer = std::mem::replace(&mut out.ring[place], Buffer::new());
                (*engine).spent.push((from, buffer.into_spent()));
            }
        }
        let mut all = count;
        if timers > 0 {
            let base = (*shard).window.base;
            (*shard).queues.timers.drain(|timer| {
                let room = (*engine).rooms.place(all);
                let offset = (timer.time - base) as u32;
                Stored::<M>::write_timer(room, offset, timer.actor, timer.token);
                few[all] = room.cast();
                all += 1;
            });
        }
        let order = &mut few[..all];
        sort(order);
        let before = (*engine).counts();
        (*shard).window.scattered = false;
        run_order(shard, &(*engine).populations, order);
        while let Some((from, spent)) = (*engine).spent.pop() {
            (*lanes[from].shard).queues.pool.put(spent);
        }
        if (*shard).places.has_ended() {
            (*shard).leave();
            (*engine).forget_ended();
        }
        if (*shard).waits_are_many() {
            (*shard).sweep(false);
        }
        Done {
            events: all as u64,
            busy: (*engine).counts() != before,
            concerns_all: (*shard).concerns_all(),
        }
    }
}

/// Puts a few events in order; those of one receiver are next to each other then. Equals stay as they are.
///
/// # Safety
/// The events are there.
#[inline(always)]
unsafe fn sort<M>(events: &mut [*mut Stored<M>]) {
    for i in 1..events.len() {
        let mut j = i;
        // SAFETY: the contract.
        while j > 0 && unsafe { !Stored::is_before(events[j - 1], events[j]) } {
            events.swap(j - 1, j);
            j -= 1;
        }
    }
}

/// The same for a window with many events.
///
/// # Safety
/// As for [`run_lane`].
#[inline(never)]
unsafe fn run_many<M: Message, P: Pause>(
    lanes: &mut [Lane<M>],
    to: usize,
    window: u64,
    pause: &P,
) -> Done {
    let (engine, shard) = (lanes[to].engine, lanes[to].shard);
    let place = (window % RING) as usize;
    // SAFETY: the contract; each reference ends with its expression, or before actors run.
    unsafe {
        for (from, lane) in lanes.iter().enumerate().filter(|(from, _)| *from != to) {
            let out = &mut (&mut (*lane.shard).queues.out)[to];
            if out.pending >> place & 1 == 1 {
                out.pending &= !(1 << place);
                let buffer = std::mem::replace(&mut out.ring[place], Buffer::new());
                (&mut (*engine).inbound)[place].push((from, buffer));
                (*engine).inbound_pending |= 1 << place;
            }
        }
        (*engine).counted = false;
        (*engine).gather_window(window);
        (*engine).run_gathered(pause);
        for (from, lane) in lanes.iter().enumerate().filter(|(from, _)| *from != to) {
            let spent = &mut (&mut (*engine).out)[from].spent;
            spent
                .drain(..)
                .for_each(|spent| (*lane.shard).queues.pool.put(spent));
        }
        (*shard).sweep(false);
        Done {
            events: (*engine).order.events().len() as u64,
            busy: std::mem::take(&mut (*engine).busy),
            concerns_all: (*shard).concerns_all(),
        }
    }
}

impl<M: Message> Shard<M> {
    /// Whether something is to be done on which all shards have to agree, or in an order that they share.
    #[inline(always)]
    fn concerns_all(&self) -> bool {
        let counters = &self.counters;
        !self.spawns.is_empty()
            || !self.multicasts.is_empty()
            || counters.root_end != u64::MAX
            || counters.failure.is_some()
            || counters.too_many
    }

    /// Whether the next window is one like any other.
    fn is_undisturbed(&self) -> bool {
        let out = &self.queues.out;
        !self.concerns_all()
            && self.has_set_nothing_aside()
            && out.iter().all(|out| out.far.is_empty())
    }
}
