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
    next: Next,
    /// In the window being run it has done something.
    runs: bool,
    /// How many others have sent something that is due in the window about to be run, and one of them.
    sources: u32,
    source: usize,
}

/// For which windows a shard has something.
#[derive(Clone, Copy)]
struct Next {
    /// The first window for which it has something for itself.
    own: u64,
    /// What it has for that window.
    kind: Kind,
    /// The first window for which it has sent something to others.
    sent: u64,
}

/// What a shard has for a window.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Only what it has sent itself.
    Sent,
    /// Only timers, or those of a later window.
    Timers,
    /// Anything.
    Any,
}

impl<M: Message> Lane<M> {
    /// The lane of a shard, which the thread has.
    pub(super) fn new(engine: *mut Engine<M>) -> Lane<M> {
        Lane {
            engine,
            shard: null_mut(),
            next: Next {
                own: u64::MAX,
                kind: Kind::Any,
                sent: u64::MAX,
            },
            runs: false,
            sources: 0,
            source: 0,
        }
    }

    /// Sees what there is for later windows; `ALONE`: it is the only one.
    ///
    /// # Safety
    /// The thread has the shard, to which no reference is held.
    #[inline(always)]
    unsafe fn look<const ALONE: bool>(&self) -> Next {
        // SAFETY: the contract.
        let (shard, inbound) = unsafe { (&*self.shard, (*self.engine).inbound_pending) };
        let (queues, now) = (&shard.queues, shard.window.number);
        let (mut pending, mut sent) = (
            queues.out[if ALONE { 0 } else { shard.index }].pending,
            u64::MAX,
        );
        if !ALONE {
            pending |= inbound;
            sent = next_pending(queues.sent, now);
        }
        let near = next_pending(pending, now);
        let (timers, far) = (queues.timers.next(), queues.far.next());
        let later = timers.min(far);
        let own = near.min(later);
        let kind = if near < later && (ALONE || inbound == 0) {
            Kind::Sent
        } else if timers < near && timers < far {
            Kind::Timers
        } else {
            Kind::Any
        };
        Next { own, kind, sent }
    }

    #[inline(always)]
    fn first(&self) -> u64 {
        self.next.own.min(self.next.sent)
    }
}

/// How far one thread has come.
#[derive(Clone, Copy)]
struct Course {
    /// Windows before this one end before the limit and before the pause.
    bound: u64,
    window_bits: u32,
    /// The window begun last.
    window: u64,
    /// Windows in which something has happened, but for that one.
    windows: u64,
    /// Something has happened in it.
    busy: bool,
    /// There is something on which all shards have to agree.
    stops: bool,
}

impl Course {
    #[inline(always)]
    fn begin(&mut self, window: u64, config: &Config) {
        self.windows += u64::from(self.busy);
        self.busy = false;
        self.window = window;
        self.stops = config.cut.is_cut();
        config.progress.reached(window << self.window_bits);
    }

    #[inline(always)]
    fn note(&mut self, done: &Done) {
        self.busy |= done.busy;
        self.stops |= done.concerns_all;
    }
}

/// Runs windows as long as each concerns nobody but actors, and, unless the shard is `ALONE`, until windows are thick
/// again.
///
/// # Safety
/// The thread has all shards of the run, of which these are the lanes in their order, and no reference to any.
/// They have absorbed what was handed over to them, and the first one runs on this thread.
pub(super) unsafe fn run_thin<M: Message, P: Pause, const ALONE: bool>(
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
        let mut next = u64::MAX;
        for lane in &mut *lanes {
            if P::EVER {
                (*lane.engine).set_spawns_wait(pause);
            }
            (*lane.shard).window.scattered = false;
            (*lane.shard).count_sent();
            lane.next = lane.look::<ALONE>();
            next = next.min(lane.first());
        }
        let window = &(*lanes[0].shard).window;
        let bits = (*lanes[0].shard).settings.window_bits;
        let mut course = Course {
            bound: window.limit.min(pause.before()) >> bits,
            window_bits: bits,
            window: window.number,
            windows: 0,
            busy: false,
            stops: false,
        };
        if next >= course.bound {
            return;
        }
        // The window that was run last was not told.
        for lane in &mut *lanes {
            course.busy |= std::mem::take(&mut (*lane.engine).busy);
        }
        if ALONE {
            let bound = course.bound;
            run_on::<M, P, true>(lanes, 0, bound, &mut course, thickness, config, pause);
        } else {
            let mut running = Running::new(lanes[0].shard);
            run_lanes(lanes, &mut running, &mut course, thickness, config, pause);
        }
        for lane in &mut *lanes {
            let engine = &mut *lane.engine;
            engine.windows += course.windows;
            engine.counted = false;
            engine.order.clear();
            let shard = engine.shard();
            shard.leave();
            if shard.window.number < course.window {
                shard.go_to(course.window);
            }
        }
        (*lanes[0].engine).busy = course.busy;
    }
}

/// What came of a window.
#[derive(Default)]
struct Done {
    /// How many events there were.
    events: u64,
    /// Something has happened.
    busy: bool,
    /// There is something on which all shards have to agree.
    concerns_all: bool,
}

/// Runs windows of one shard as long as they are before `until`, from which on others have something to do, and
/// others have got nothing from it that is due before.
///
/// # Safety
/// As for [`run_thin`].
#[inline(always)]
unsafe fn run_on<M: Message, P: Pause, const ALONE: bool>(
    lanes: &mut [Lane<M>],
    at: usize,
    mut until: u64,
    course: &mut Course,
    thickness: &mut Thickness,
    config: &Config,
    pause: &P,
) {
    // SAFETY: the contract; each reference ends with its expression, or before actors run.
    unsafe {
        // Not where they are, because that is memory.
        let (mut next, mut here) = (lanes[at].next, *course);
        while next.own < until && !here.stops && (ALONE || next.own < next.sent) {
            let window = next.own;
            here.begin(window, config);
            let done = run_own(lanes, at, next.kind, window, pause);
            here.note(&done);
            if !ALONE {
                here.stops |= thickness.is_thick_after(done.events);
                until = until.min(pass_far_on(lanes, at, window));
            }
            next = lanes[at].look::<ALONE>();
        }
        (lanes[at].next, *course) = (next, here);
    }
}

/// Runs windows of several shards.
///
/// # Safety
/// As for [`run_thin`]; `running` is for one of them.
unsafe fn run_lanes<M: Message, P: Pause>(
    lanes: &mut [Lane<M>],
    running: &mut Running,
    course: &mut Course,
    thickness: &mut Thickness,
    config: &Config,
    pause: &P,
) {
    // SAFETY: the contract; each reference ends with its expression, or before actors run.
    unsafe {
        while !course.stops {
            // When the first shard has something, which that is, and when the next one has.
            let (mut first, mut at, mut second) = (u64::MAX, 0, u64::MAX);
            for (index, lane) in lanes.iter().enumerate() {
                let next = lane.first();
                if next < first {
                    (second, first, at) = (first, next, index);
                } else {
                    second = second.min(next);
                }
            }
            if first >= course.bound {
                return;
            }
            if first < second && lanes[at].next.own < lanes[at].next.sent {
                running.go_to(lanes[at].shard);
                let until = second.min(course.bound);
                run_on::<M, P, false>(lanes, at, until, course, thickness, config, pause);
                continue;
            }
            course.begin(first, config);
            let only = first < second && lanes[at].next.own > first;
            let receiver = only.then(|| only_receiver(lanes, at, first)).flatten();
            let events = match receiver {
                Some(to) => {
                    running.go_to(lanes[to].shard);
                    let done = run_sent(lanes, to, at, first, pause);
                    (*lanes[at].shard).queues.sent &= !(1 << (first % RING));
                    course.note(&done);
                    pass_far_on(lanes, to, first);
                    lanes[to].next = lanes[to].look::<false>();
                    lanes[at].next = lanes[at].look::<false>();
                    done.events
                }
                None => run_together(lanes, running, course, first, pause),
            };
            course.stops |= thickness.is_thick_after(events);
        }
    }
}

/// The shard to which another has sent something that is due in a window, if it is one.
///
/// # Safety
/// As for [`run_thin`].
#[inline(always)]
unsafe fn only_receiver<M: Message>(lanes: &[Lane<M>], from: usize, window: u64) -> Option<usize> {
    // SAFETY: the contract.
    let outboxes = unsafe { &(&*lanes[from].shard).queues.out };
    let mut receivers = outboxes
        .iter()
        .enumerate()
        .filter(|(_, out)| out.pending >> (window % RING) & 1 == 1);
    let (first, _) = receivers.next()?;
    receivers.next().is_none().then_some(first)
}

/// Runs a window for which several shards may have something. Returns the most events of one.
///
/// # Safety
/// As for [`run_lanes`]; `window` is the next one for which there is anything.
#[inline(never)]
unsafe fn run_together<M: Message, P: Pause>(
    lanes: &mut [Lane<M>],
    running: &mut Running,
    course: &mut Course,
    window: u64,
    pause: &P,
) -> u64 {
    let place = window % RING;
    let mut events = 0;
    // SAFETY: the contract; each reference ends with its expression, or before actors run.
    unsafe {
        for from in 0..lanes.len() {
            if lanes[from].next.sent == window {
                let queues = &mut (*lanes[from].shard).queues;
                queues.sent &= !(1 << place);
                for (to, out) in queues.out.iter().enumerate() {
                    let has = to != from && out.pending >> place & 1 == 1;
                    let lane = &mut lanes[to];
                    lane.sources += u32::from(has);
                    lane.source = if has { from } else { lane.source };
                }
            }
        }
        for to in 0..lanes.len() {
            let sources = std::mem::take(&mut lanes[to].sources);
            let own = lanes[to].next.own == window;
            if sources == 0 && !own {
                continue;
            }
            lanes[to].runs = true;
            running.go_to(lanes[to].shard);
            let done = if sources == 0 {
                run_own(lanes, to, lanes[to].next.kind, window, pause)
            } else if sources == 1 && !own {
                run_sent(lanes, to, lanes[to].source, window, pause)
            } else {
                (*lanes[to].shard).go_to(window);
                run_several(lanes, to, window, pause)
            };
            events = events.max(done.events);
            course.note(&done);
        }
        for at in 0..lanes.len() {
            if lanes[at].runs {
                pass_far_on(lanes, at, window);
            }
        }
        for lane in lanes {
            if std::mem::take(&mut lane.runs) || lane.next.sent == window {
                lane.next = lane.look::<false>();
            }
        }
    }
    events
}

/// Gives what a shard has sent beyond the ring to those for which it is. These go along to the window that has been run:
/// what comes to wait in a wheel is put by the window that it is at, which may be long over. Returns a window before
/// which none of it is due.
///
/// # Safety
/// As for [`run_thin`]; nothing is due before the next window.
#[inline(always)]
unsafe fn pass_far_on<M: Message>(lanes: &mut [Lane<M>], from: usize, window: u64) -> u64 {
    // SAFETY: the contract.
    unsafe {
        match std::mem::take(&mut (*lanes[from].shard).queues.has_sent_far) {
            true => pass_all_far_on(lanes, from, window),
            false => u64::MAX,
        }
    }
}

/// The same where there is any.
///
/// # Safety
/// As for [`pass_far_on`].
#[inline(never)]
unsafe fn pass_all_far_on<M: Message>(lanes: &mut [Lane<M>], from: usize, window: u64) -> u64 {
    let mut first = u64::MAX;
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
            lanes[to].next = lanes[to].look::<false>();
            first = first.min(lanes[to].next.own);
        }
    }
    first
}

/// Runs a window of one shard, for which it has something itself, and nobody else has.
///
/// # Safety
/// As for [`run_thin`]; `window` is the lane's own next one.
#[inline(always)]
unsafe fn run_own<M: Message, P: Pause>(
    lanes: &mut [Lane<M>],
    at: usize,
    kind: Kind,
    window: u64,
    pause: &P,
) -> Done {
    let Lane { engine, shard, .. } = lanes[at];
    // SAFETY: the contract; each reference ends with its expression, or before actors run.
    unsafe {
        match kind {
            Kind::Sent => return run_sent(lanes, at, at, window, pause),
            Kind::Timers => {
                (*shard).go_to(window);
                let timers = &mut (*shard).queues.timers;
                if !timers.is_due() {
                    return Done::default();
                }
                if let Some(timer) = timers.take_only() {
                    let room = (*engine).rooms.place(0);
                    let offset = (timer.time - (*shard).window.base) as u32;
                    Stored::<M>::write_timer(room, offset, timer.actor, timer.token);
                    let before = (*engine).counts();
                    run_order(shard, &(*engine).populations, &[room.cast()]);
                    return close(engine, shard, 1, before);
                }
            }
            Kind::Any => (*shard).go_to(window),
        }
        run_several(lanes, at, window, pause)
    }
}

/// Runs a window of one shard, for which there is only what `from` has sent, perhaps itself.
///
/// # Safety
/// As for [`run_thin`].
#[inline(always)]
unsafe fn run_sent<M: Message, P: Pause>(
    lanes: &mut [Lane<M>],
    to: usize,
    from: usize,
    window: u64,
    pause: &P,
) -> Done {
    let Lane { engine, shard, .. } = lanes[to];
    let sender = lanes[from].shard;
    let place = (window % RING) as usize;
    // SAFETY: the contract; each reference ends with its expression, or before actors run.
    unsafe {
        (*shard).go_to(window);
        let out = &mut (&mut (*sender).queues.out)[to];
        if let Some((event, spent)) = out.ring[place].take_only() {
            out.pending &= !(1 << place);
            let before = (*engine).counts();
            run_order(shard, &(*engine).populations, &[event]);
            (*sender).queues.pool.put(spent);
            return close(engine, shard, 1, before);
        }
        run_several(lanes, to, window, pause)
    }
}

/// Runs a window of one shard, which is there, whatever it has.
///
/// # Safety
/// As for [`run_sent`].
#[inline(never)]
unsafe fn run_several<M: Message, P: Pause>(
    lanes: &mut [Lane<M>],
    to: usize,
    window: u64,
    pause: &P,
) -> Done {
    let Lane { engine, shard, .. } = lanes[to];
    // SAFETY: the contract; each reference ends with its expression, or before actors run.
    unsafe {
        let inbound = (*engine).inbound_pending >> (window % RING) & 1 == 1;
        if !inbound
            && !(*shard).queues.far.is_due()
            && let Some(done) = run_few(lanes, to, (window % RING) as usize)
        {
            return done;
        }
        run_many(lanes, to, window, pause)
    }
}

/// What came of a window with so many events, before which there were these counts.
///
/// # Safety
/// As for [`run_sent`].
#[inline(always)]
unsafe fn close<M: Message>(
    engine: *mut Engine<M>,
    shard: *mut Shard<M>,
    events: u64,
    before: (u64, u64, u64),
) -> Done {
    // SAFETY: the contract; each reference ends with its expression, or before actors run.
    unsafe {
        if (*shard).places.has_ended() {
            (*shard).leave();
            (*engine).forget_ended();
        }
        if (*shard).waits_are_many() {
            (*shard).sweep(false);
        }
        Done {
            events,
            busy: (*engine).counts() != before,
            concerns_all: (*shard).concerns_all(),
        }
    }
}

/// Runs a window of one shard, unless it has more than a few events. Nothing of it is inbound or from afar.
///
/// # Safety
/// As for [`run_sent`].
#[inline(never)]
unsafe fn run_few<M: Message>(lanes: &mut [Lane<M>], to: usize, place: usize) -> Option<Done> {
    let (engine, shard) = (lanes[to].engine, lanes[to].shard);
    let mut few = [null_mut::<Stored<M>>(); FEW];
    // SAFETY: the contract; each reference ends with its expression, or before actors run.
    unsafe {
        let mut count = 0;
        for lane in &*lanes {
            let out = &(&(*lane.shard).queues.out)[to];
            if out.pending >> place & 1 == 1 {
                count = out.ring[place].append_few(&mut few, count)?;
            }
        }
        let timers = match (*shard).queues.timers.is_due() {
            true => (*shard).queues.timers.few_due()?,
            false => 0,
        };
        if count + timers > FEW {
            return None;
        }
        for (from, lane) in lanes.iter().enumerate() {
            let out = &mut (&mut (*lane.shard).queues.out)[to];
            if out.pending >> place & 1 == 1 {
                out.pending &= !(1 << place);
                // From here on the events are moved out one by one. If that is cut short they are leaked.
                let buffer = std::mem::replace(&mut out.ring[place], Buffer::new());
                (*engine).spent.push((from, buffer.into_spent()));
            }
        }
        if timers > 0 {
            let base = (*shard).window.base;
            (*shard).queues.timers.drain(|timer| {
                let room = (*engine).rooms.place(count);
                let offset = (timer.time - base) as u32;
                Stored::<M>::write_timer(room, offset, timer.actor, timer.token);
                few[count] = room.cast();
                count += 1;
            });
        }
        let order = &mut few[..count];
        sort(order);
        let before = (*engine).counts();
        run_order(shard, &(*engine).populations, order);
        while let Some((from, spent)) = (*engine).spent.pop() {
            (*lanes[from].shard).queues.pool.put(spent);
        }
        Some(close(engine, shard, count as u64, before))
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
/// As for [`run_sent`].
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
        (*shard).window.scattered = false;
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

    /// Counts anew for which windows it has sent something to others.
    fn count_sent(&mut self) {
        let index = self.index;
        let others = self.queues.out.iter().enumerate();
        let others = others.filter(|(to, _)| *to != index);
        self.queues.sent = others.fold(0, |sent, (_, out)| sent | out.pending);
    }

    /// Whether the next window is one like any other.
    fn is_undisturbed(&self) -> bool {
        let out = &self.queues.out;
        !self.concerns_all()
            && self.has_set_nothing_aside()
            && out.iter().all(|out| out.far.is_empty())
    }
}
