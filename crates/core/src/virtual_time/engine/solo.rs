//! One thread runs all shards, while windows have so few events that meeting costs more.

use super::{End, Engine};
use crate::contract::{Config, Message};
use crate::virtual_time::context::Running;
use crate::virtual_time::exchange::{Exchange, Vote};
use crate::virtual_time::lending::Lent;
use crate::virtual_time::parcel::Parcel;
use crate::virtual_time::pause::Pause;
use crate::virtual_time::shard::Shard;

/// A window is thin if no shard has more events in it than this: what those cost is about what a
/// meeting costs.
const THIN: u64 = if cfg!(miri) { 4 } else { 64 };
/// After this many thin windows in a row one thread runs all shards.
const IN_A_ROW: u32 = if cfg!(miri) { 3 } else { 16 };
/// And after this many in a row that are not, all run their own again.
const NOT_IN_A_ROW: u32 = 2;

/// How many windows in a row were thin, or were not.
#[derive(Debug, Default)]
pub(super) struct Thickness {
    thin: u32,
    thick: u32,
}

impl Thickness {
    /// Counts a window, of which all shards know the same.
    #[inline]
    pub(super) fn count(&mut self, agreed: &Vote) {
        if agreed.events > THIN {
            (self.thin, self.thick) = (0, self.thick + 1);
        } else {
            (self.thin, self.thick) = (self.thin + 1, 0);
        }
    }

    /// Whether one thread is to run all shards.
    #[inline]
    pub(super) fn is_thin(&self) -> bool {
        self.thin >= IN_A_ROW
    }

    fn is_thick(&self) -> bool {
        self.thick >= NOT_IN_A_ROW
    }
}

impl<M: Message> Engine<M> {
    /// Lends this shard to the first one, or runs all of them, until windows are thick again or the
    /// run ends or pauses.
    #[cold]
    #[inline(never)]
    pub(super) fn run_lent<X: Exchange<Parcel<M, Shard<M>>>, P: Pause>(
        &mut self,
        config: &Config,
        exchange: &mut X,
        pause: &P,
    ) -> Option<End> {
        let this: *mut Engine<M> = self;
        match exchange.lend(this) {
            Lent::All(others) => {
                // SAFETY: all other shards wait until they are given back, and this one is borrowed
                // exclusively. Actors and messages are `Send`; what is kept per thread about a shard
                // is set while it is run.
                let end = unsafe { run_all(this, &others, config, pause) };
                exchange.give_back();
                end
            }
            Lent::Back => {
                self.thickness = Thickness::default();
                self.lent_end.take()
            }
            Lent::Lost => Some(End::Halted),
        }
    }
}

/// A shard while one thread runs all of them.
struct Member<M: Message> {
    engine: *mut Engine<M>,
    /// What it said last.
    vote: Vote,
    /// Since then it has run a window, has given events away or has got some.
    changed: bool,
    /// It has said something new for the next window.
    spoke: bool,
}

/// Runs all shards on this thread. A shard for which a window has nothing is passed over, so that a
/// window costs what its events cost, however many shards there are.
///
/// # Safety
/// Nothing else uses what the pointers lead to. `first` is the shard that runs on this thread.
unsafe fn run_all<M: Message, P: Pause>(
    first: *mut Engine<M>,
    others: &[*mut Engine<M>],
    config: &Config,
    pause: &P,
) -> Option<End> {
    let mut members: Vec<Member<M>> = std::iter::once(first)
        .chain(others.iter().copied())
        .map(|engine| Member {
            engine,
            vote: Vote::NONE,
            changed: true,
            spoke: false,
        })
        .collect();
    let mut thickness = Thickness::default();
    // SAFETY: the contract; of all references only one is there at a time, or two to different
    // shards.
    unsafe {
        loop {
            let mut agreed = Vote::NONE;
            for member in &mut members {
                if std::mem::take(&mut member.changed) {
                    member.vote = (*member.engine).prepare_vote(config);
                    member.spoke = true;
                }
                agreed = agreed.and(member.vote);
            }
            let spawns = hand_over_all(&mut members);
            agreed.halt |= config.cut.is_cut();
            thickness.count(&agreed);
            // Ends, pauses and spawns concern all shards.
            let ordinary = !spawns && (*first).is_ordinary(&agreed, pause);
            let (mut end, mut ran, mut last) = (None, 0, 0);
            for (index, member) in members.iter_mut().enumerate() {
                let engine = &mut *member.engine;
                if ordinary && !member.changed && member.vote.next > agreed.next {
                    engine.pass_over(config, &agreed, u64::from(agreed.busy));
                    (member.vote.busy, member.vote.events) = (false, 0);
                    continue;
                }
                let other = !std::ptr::eq(engine, first);
                let running = other.then(|| Running::new(engine.shard));
                if ordinary {
                    engine.absorb();
                    engine.run_ordinary(config, &agreed, pause);
                } else {
                    end = engine.carry_out(config, agreed, pause);
                }
                engine.lent_end = end;
                member.changed = true;
                drop(running);
                (ran, last) = (ran + 1, index);
            }
            if ordinary && ran == 1 && !thickness.is_thick() {
                run_on(&mut members, last, &mut thickness, config, pause);
            }
            if end.is_some() || thickness.is_thick() {
                (*first).lent_end = None;
                (*first).thickness = Thickness::default();
                return end;
            }
        }
    }
}

/// The only shard that had something for the last window runs those that follow, as if it were alone,
/// until another shard has something to do or all of them something to agree on. What it says then is
/// left for the next round.
///
/// # Safety
/// As for [`run_all`].
unsafe fn run_on<M: Message, P: Pause>(
    members: &mut [Member<M>],
    which: usize,
    thickness: &mut Thickness,
    config: &Config,
    pause: &P,
) {
    let mut others = Vote::NONE;
    for (_, member) in members.iter().enumerate().filter(|(at, _)| *at != which) {
        others = others.and(member.vote);
    }
    // SAFETY: the contract; no other shard is referred to meanwhile.
    let engine = unsafe { &mut *members[which].engine };
    // SAFETY: the same; the first shard's is there already.
    let running = (which != 0).then(|| unsafe { Running::new(engine.shard) });
    let (mut last, mut busy) = (None, 0);
    let vote = loop {
        let vote = engine.prepare_vote(config);
        let agreed = vote.and(others);
        let meets = vote.next >= others.next
            || vote.events > THIN
            || !engine.is_ordinary(&agreed, pause)
            || engine.out.iter().any(|parcel| !parcel.is_empty());
        if meets {
            break vote;
        }
        thickness.count(&agreed);
        // Nothing came from others since it absorbed what had.
        engine.run_ordinary(config, &agreed, pause);
        busy += u64::from(agreed.busy);
        last = Some(agreed);
    };
    drop(running);
    let member = &mut members[which];
    (member.vote, member.spoke, member.changed) = (vote, true, false);
    let Some(agreed) = last else { return };
    for (_, member) in members.iter().enumerate().filter(|(at, _)| *at != which) {
        // SAFETY: the contract.
        unsafe { (*member.engine).pass_over(config, &agreed, busy) };
    }
}

/// Hands over what the shards have for each other. Returns whether there are spawns.
///
/// # Safety
/// As for [`run_all`].
unsafe fn hand_over_all<M: Message>(members: &mut [Member<M>]) -> bool {
    let mut spawns = false;
    for from in 0..members.len() {
        if !std::mem::take(&mut members[from].spoke) {
            continue;
        }
        for to in (0..members.len()).filter(|&to| to != from) {
            // SAFETY: the contract; they are two.
            let (sender, receiver) =
                unsafe { (&mut *members[from].engine, &mut *members[to].engine) };
            let parcel = &mut sender.out[to];
            if !parcel.spent.is_empty() {
                let pool = &mut receiver.shard().queues.pool;
                parcel.spent.drain(..).for_each(|spent| pool.put(spent));
            }
            if parcel.is_empty() {
                continue;
            }
            spawns |= !parcel.spawns.is_empty();
            std::mem::swap(parcel, &mut receiver.inbox[from]);
            (members[from].changed, members[to].changed) = (true, true);
        }
    }
    spawns
}

impl<M: Message> Engine<M> {
    /// Whether the next window is neither the last one before an end or a pause nor beyond it.
    fn is_ordinary<P: Pause>(&mut self, agreed: &Vote, pause: &P) -> bool {
        if agreed.halt || agreed.end != u64::MAX || agreed.next == u64::MAX {
            return false;
        }
        let shard = self.shard();
        let bits = shard.settings.window_bits;
        let end = agreed.next << bits | ((1 << bits) - 1);
        end < shard.window.limit && (!P::EVER || end < pause.before())
    }

    /// Runs a window that [is ordinary](Engine::is_ordinary): what [`Engine::carry_out`] does of it.
    fn run_ordinary<P: Pause>(&mut self, config: &Config, agreed: &Vote, pause: &P) {
        self.windows += u64::from(agreed.busy);
        self.counted |= agreed.busy;
        self.over = agreed.last;
        config
            .progress
            .reached(agreed.next << self.shard().settings.window_bits);
        self.run_window(agreed.next, pause);
    }

    /// Goes to a window before which there is nothing here, and before which so many of others counted.
    fn pass_over(&mut self, config: &Config, agreed: &Vote, busy: u64) {
        self.windows += busy;
        self.counted |= agreed.busy;
        self.order.clear();
        let shard = self.shard();
        shard.go_to(agreed.next);
        if shard.index == 0 {
            config.progress.reached(shard.window.base);
        }
    }
}
