//! Delta debugging: the smallest run that still violates the property.

use crate::search::Past;
use crate::{Absence, Failure, Fault, FaultPlan, HuntError, Replay, RunResult, Subject};
use corsair::Random;
use std::time::{Duration, Instant};

/// A failure that was shrunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The failure. If any one of its faults is removed, its seed no longer violates the property.
    pub failure: Failure,
    /// The digest of the run with the remaining faults, which was the same on 1 to 4 workers.
    pub digest: u64,
    /// The number of runs that shrinking took.
    pub runs: u32,
}

impl Shrunk {
    /// Returns the failure for a file.
    pub fn replay(&self, subject: &dyn Subject) -> Replay {
        self.failure.replay(subject)
    }
}

impl Failure {
    fn replay(&self, subject: &dyn Subject) -> Replay {
        Replay {
            program: subject.name().to_owned(),
            property: self.property.clone(),
            seed: self.seed,
            plan: self.plan.clone(),
        }
    }
}

/// The maximum time of all runs, as a multiple of the failure's time.
const MOST_TIME: u64 = 24_000;
/// The number of times that a failure is shrunk, each time with other random placements; the best result counts.
const ATTEMPTS: u32 = 3;
/// The number of other seeds that are tried with each smaller plan.
const SEEDS: u64 = 4;
/// The number of other seeds that are tried with a run of half the length; shorter runs are tried with more.
const MORE_SEEDS: u64 = 16;
/// The number of random placements of the faults after which no smaller run is expected.
const PLACEMENTS: u32 = 512;
/// The lengths of runs in which the violation is searched for again, as fractions of the failure's, and the number of runs
/// of each.
const SHORTER: [(u32, u32); 3] = [(1, 2), (3, 4), (7, 8)];
const SEARCHES: u32 = 2_048;
/// The lengths that replace the length of a run whose violation is found at its end, as fractions of it.
const LENGTHS: [(u32, u32); 8] = [
    (15, 16),
    (7, 8),
    (3, 4),
    (1, 2),
    (1, 4),
    (1, 8),
    (3, 32),
    (1, 16),
];
/// The number of random plans that must pass at a shorter length, of those that pass at the whole length; the number of
/// them that may fail, because they may show the bug; and the number of plans that are tried.
const PASSES: u32 = 12;
const MAY_FAIL: u32 = 2;
const TRIED: u64 = 48;

/// Removes faults, nodes, load, time and random choices while the same property is still violated, and weakens the
/// remaining faults. Every step is a run, and the result is run again on 1 to 4 workers.
///
/// # Errors
/// If a run cannot be completed, or the failure does not violate its property.
pub fn shrink(subject: &dyn Subject, failure: &Failure) -> Result<Shrunk, HuntError> {
    shrink_within(subject, failure, Duration::MAX)
}

/// Shrinks like [`shrink`], but ends the work after some real time, so the result may be larger than necessary.
///
/// # Errors
/// The same errors as [`shrink`].
pub fn shrink_within(
    subject: &dyn Subject,
    failure: &Failure,
    time: Duration,
) -> Result<Shrunk, HuntError> {
    let mut shrinker = Shrinker {
        subject,
        deadline: Instant::now().checked_add(time),
        runs: 0,
        time: 0,
        random: Random::new(failure.seed),
        whole: failure.plan.time,
        faults: failure.plan.faults.len(),
        passes: Vec::new(),
        failure: failure.clone(),
    };
    let Some(result) = shrinker.fails(failure.seed, &failure.plan)? else {
        return Err(HuntError::NotReproduced {
            property: failure.property.clone(),
        });
    };
    shrinker.failure.events = result.events;
    let whole = shrinker.failure.clone();
    shrinker.shrink()?;
    for _ in 1..ATTEMPTS {
        let before = std::mem::replace(&mut shrinker.failure, whole.clone());
        shrinker.shrink()?;
        // A result without the last steps may list more messages than it needs.
        if shrinker.is_over() {
            shrinker.failure = before;
            break;
        }
        shrinker.keep_better(before);
    }
    let Shrinker { runs, failure, .. } = shrinker;
    let digest = failure.replay(subject).verify(subject)?;
    Ok(Shrunk {
        failure,
        digest,
        runs,
    })
}

struct Shrinker<'a> {
    subject: &'a dyn Subject,
    deadline: Option<Instant>,
    runs: u32,
    /// The time of all runs, in milliseconds.
    time: u64,
    random: Random,
    /// The length of the run before shrinking.
    whole: u32,
    /// The number of faults before shrinking.
    faults: usize,
    /// For each seed from 0 on, true if the random plan drawn from it passes at the whole length.
    passes: Vec<bool>,
    failure: Failure,
}

/// The size of a failure: the number of faults, of random choices and of events, and the strength of the faults.
type Size = (usize, usize, u64, u64);

/// True if faults of the plan affect random messages.
fn is_random(plan: &FaultPlan) -> bool {
    plan.faults.iter().any(|fault| fault.share().is_some())
}

fn size(plan: &FaultPlan, events: u64) -> Size {
    let choices = match &plan.only {
        Some(only) => only.len(),
        None if is_random(plan) => usize::MAX,
        None => 0,
    };
    let strength = plan.faults.iter().map(|fault| fault.strength()).sum();
    (plan.faults.len(), choices, events, strength)
}

impl Shrinker<'_> {
    fn plan(&self) -> &FaultPlan {
        &self.failure.plan
    }

    /// True if the runs have taken all the time that they may take.
    fn is_over(&self) -> bool {
        self.time >= MOST_TIME * u64::from(self.plan().time)
            || self.deadline.is_some_and(|end| Instant::now() >= end)
    }

    fn run(&mut self, seed: u64, plan: &FaultPlan) -> Result<RunResult, HuntError> {
        self.runs += 1;
        self.time += u64::from(plan.end());
        self.subject.run(seed, plan, 1)
    }

    fn fails(&mut self, seed: u64, plan: &FaultPlan) -> Result<Option<RunResult>, HuntError> {
        let result = self.run(seed, plan)?;
        Ok(self.violates(&result).then_some(result))
    }

    fn violates(&self, result: &RunResult) -> bool {
        let violated = result.properties.violated();
        violated.contains(&self.failure.property.as_str())
    }

    /// Accepts the plan if it fails and is smaller with the seed of the failure, or with one of some other seeds.
    fn accept(&mut self, plan: &FaultPlan, seeds: u64) -> Result<bool, HuntError> {
        if plan == self.plan() && seeds == 0 {
            return Ok(false);
        }
        let now = size(self.plan(), self.failure.events);
        for seed in std::iter::once(self.failure.seed).chain(0..seeds) {
            // Without any event the size would be this.
            if self.is_over() || size(plan, 0) >= now {
                return Ok(false);
            }
            if let Some(result) = self.fails(seed, plan)?
                && size(plan, result.events) < now
                && (plan.absent == self.plan().absent || self.may_be_absent(plan)?)
                && self.persists(seed, plan)?
            {
                self.keep(seed, plan.clone(), result.events);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn keep(&mut self, seed: u64, plan: FaultPlan, events: u64) {
        self.failure.seed = seed;
        self.failure.plan = plan;
        self.failure.events = events;
    }

    /// Other seeds change random choices, so they are of no use once the choices are listed.
    fn seeds(&self, seeds: u64) -> u64 {
        match self.plan().only {
            None => seeds,
            Some(_) => 0,
        }
    }

    fn shrink(&mut self) -> Result<(), HuntError> {
        self.reduce()?;
        self.search_shorter()?;
        if self.plan().only.is_none() && self.list_choices()? {
            self.reduce()?;
        }
        if !is_random(self.plan()) {
            self.failure.plan.only = None;
        }
        Ok(())
    }

    /// Changes the plan until no change makes it smaller.
    fn reduce(&mut self) -> Result<(), HuntError> {
        loop {
            let before = size(self.plan(), self.failure.events);
            self.shorten()?;
            self.remove_faults()?;
            self.start_earlier()?;
            self.place_again()?;
            self.weaken()?;
            if self.plan().absent.is_empty() && self.compress()? {
                continue;
            }
            self.remove_nodes()?;
            if self.is_over() || size(self.plan(), self.failure.events) >= before {
                return Ok(());
            }
        }
    }

    /// Ends the run at the violation.
    fn shorten(&mut self) -> Result<(), HuntError> {
        let mut ends = self.plan().end();
        if self.plan().until.is_none() {
            let mut plan = self.plan().clone();
            plan.until = Some(ends);
            // A property of the end of a run needs the entire run.
            if self.fails(self.failure.seed, &plan)?.is_none() {
                return Ok(());
            }
            self.failure.plan = plan;
        }
        let mut passes = 0;
        while ends - passes > 1 {
            let middle = passes + (ends - passes) / 2;
            let mut plan = self.plan().clone();
            plan.shorten(middle);
            match self.fails(self.failure.seed, &plan)? {
                None => passes = middle,
                Some(result) => {
                    ends = middle;
                    self.failure.events = result.events;
                    self.failure.plan = plan;
                }
            }
        }
        Ok(())
    }

    /// Keeps the failure if it is better than the one before: it has fewer events, or half of them if it has more faults,
    /// though not more than before shrinking.
    fn keep_better(&mut self, before: Failure) -> bool {
        let (faults, events) = (self.plan().faults.len(), self.failure.events);
        let has_more = faults > before.plan.faults.len();
        let least = if has_more { 2 * events } else { events + 1 };
        let is_better = faults <= self.faults && least <= before.events;
        if !is_better {
            self.failure = before;
        }
        is_better
    }

    /// Searches for the violation in ever shorter runs.
    fn search_shorter(&mut self) -> Result<(), HuntError> {
        for (share, of) in SHORTER {
            while let Some(until) = self.plan().until {
                let before = self.failure.clone();
                let calm = FaultPlan {
                    until: Some((until / of * share).max(1)),
                    ..FaultPlan::calm(self.whole)
                };
                if !self.search(&calm)? {
                    break;
                }
                self.reduce()?;
                if !self.keep_better(before) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Searches for the violation with fewer events in runs as long as this plan. They also branch from the failure.
    fn search(&mut self, calm: &FaultPlan) -> Result<bool, HuntError> {
        let (mut past, Failure { seed, plan, .. }) = (Past::new(), self.failure.clone());
        let changes = self.run(seed, &plan)?.changes;
        let mut shorter = plan;
        shorter.shorten(calm.end());
        past.add(seed, shorter, &changes);
        for _ in 0..SEARCHES {
            if self.is_over() {
                break;
            }
            let (seed, plan) = past.draw(self.subject, calm, true, &mut self.random);
            let result = self.run(seed, &plan)?;
            if self.violates(&result) && result.events < self.failure.events {
                self.keep(seed, plan, result.events);
                return Ok(true);
            }
            past.add(seed, plan, &result.changes);
        }
        Ok(false)
    }

    /// Removes items from a list of the plan: half of them, a quarter, and so on down to one.
    fn remove<T>(
        &mut self,
        seeds: u64,
        list: impl Fn(&mut FaultPlan) -> Option<&mut Vec<T>>,
    ) -> Result<(), HuntError> {
        let count = |plan: &FaultPlan| list(&mut plan.clone()).map_or(0, |list| list.len());
        let mut size = count(self.plan());
        while size > 0 {
            let mut at = 0;
            while at < count(self.plan()) {
                let mut plan = self.plan().clone();
                if let Some(list) = list(&mut plan) {
                    list.drain(at..(at + size).min(list.len()));
                }
                if !self.accept(&plan, self.seeds(seeds))? {
                    at += size;
                }
            }
            size /= 2;
        }
        Ok(())
    }

    fn remove_faults(&mut self) -> Result<(), HuntError> {
        self.remove(SEEDS, |plan| Some(&mut plan.faults))
    }

    /// Moves the faults to the beginning of the run, and shortens the run as much.
    fn start_earlier(&mut self) -> Result<(), HuntError> {
        if self.plan().until.is_none() {
            return Ok(());
        }
        for part in [16, 8, 4, 2] {
            let seeds = self.seeds(MORE_SEEDS * u64::from(part) / 2);
            let end = self.plan().end();
            let first = |fault: &Fault| fault.span().map_or(0, |span| span.start as u32);
            // All faults keep their distances, or the distances become shorter with the run.
            let moved = self.with_faults(|fault| fault.earlier(end - end / part));
            let nearer =
                self.with_faults(|fault| fault.earlier(first(fault) - first(fault) / part));
            for mut plan in [moved, nearer] {
                plan.shorten(end / part);
                if self.accept(&plan, seeds)? {
                    return self.shorten();
                }
            }
        }
        Ok(())
    }

    /// Places the faults at random times of a shorter run, with other seeds. A run in which all faults begin earlier by the
    /// same time keeps distances between faults that the violation does not need.
    fn place_again(&mut self) -> Result<(), HuntError> {
        if self.plan().until.is_none() || self.plan().only.is_some() {
            return Ok(());
        }
        let mut failed = 0;
        while failed < PLACEMENTS && !self.is_over() {
            let end = self.plan().end();
            let until = end - end / [8, 4, 2][self.random.below(3) as usize];
            if until == 0 || until == end {
                return Ok(());
            }
            let mut plan = self.placed(until, self.plan().time);
            plan.until = Some(until);
            let seed = self.random.bits() >> 12;
            failed += 1;
            if let Some(result) = self.fails(seed, &plan)?
                && size(&plan, result.events) < size(self.plan(), self.failure.events)
            {
                self.keep(seed, plan, result.events);
                self.shorten()?;
                failed = 0;
            }
        }
        Ok(())
    }

    /// Returns the plan with its faults at random times before `until`. They stop before `stop`.
    fn placed(&mut self, until: u32, stop: u32) -> FaultPlan {
        let mut plan = self.plan().clone();
        plan.absent.clear();
        for fault in &mut plan.faults {
            let Some(span) = fault.span() else { continue };
            let length = (span.end - span.start) as u32;
            let from = self.random.below(until);
            let most = match self.random.below(2) {
                0 => length,
                _ => 1 + self.random.below(length.max(1)),
            };
            fault.set_span(from..(from + most.max(1)).min(stop));
        }
        plan
    }

    /// Replaces a run whose violation is found by a check at the end by a shorter one, with the faults at random times. A
    /// correct program must have the time to finish and to recover, so the new length must be [long
    /// enough](Shrinker::is_long_enough), and the same faults in a run of the whole length must still violate the
    /// property. Returns true if the run became shorter.
    fn compress(&mut self) -> Result<bool, HuntError> {
        let FaultPlan { until, only, .. } = self.plan();
        if until.is_some() || only.is_some() || self.plan().faults.is_empty() {
            return Ok(false);
        }
        let mut times = Vec::new();
        for (share, of) in LENGTHS {
            let time = self.plan().time / of * share;
            // If a length is too short, shorter ones are, whatever their runs show.
            if time == 0 || !self.suffices(&FaultPlan::calm(time))? {
                break;
            }
            times.push(time);
        }
        for time in times.into_iter().rev() {
            let stop = FaultPlan::calm(time).faults_until();
            for _ in 0..PLACEMENTS {
                if self.is_over() {
                    return Ok(false);
                }
                let mut plan = self.placed(stop, stop);
                plan.time = time;
                plan.faults.iter_mut().for_each(|fault| fault.limit(time));
                let seed = self.random.bits() >> 12;
                let Some(result) = self.fails(seed, &plan)? else {
                    continue;
                };
                if size(&plan, result.events) < size(self.plan(), self.failure.events)
                    && self.persists(seed, &plan)?
                {
                    self.keep(seed, plan, result.events);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// True if the faults of a shorter run violate the property in a run of the whole length, too.
    fn persists(&mut self, seed: u64, plan: &FaultPlan) -> Result<bool, HuntError> {
        let longer = FaultPlan {
            time: self.whole,
            ..plan.clone()
        };
        Ok(plan.time == self.whole || self.fails(seed, &longer)?.is_some())
    }

    /// True if the length and the absences of this plan leave a program the time to finish and to recover: almost all
    /// random plans that pass at the whole length, with all nodes, pass with them.
    fn suffices(&mut self, calm: &FaultPlan) -> Result<bool, HuntError> {
        let (mut passes, mut failures) = (0, 0);
        for seed in 0..TRIED {
            if passes == PASSES || failures > MAY_FAIL || self.is_over() {
                break;
            }
            if self.passes_at_whole_length(seed)? {
                let mut short = self.subject.draw(&mut Random::new(seed), calm.time);
                short.absent = calm.absent.clone();
                match self.fails(seed, &short)? {
                    None => passes += 1,
                    Some(_) => failures += 1,
                }
            }
        }
        Ok(passes == PASSES && failures <= MAY_FAIL)
    }

    fn passes_at_whole_length(&mut self, seed: u64) -> Result<bool, HuntError> {
        if let Some(passes) = self.passes.get(seed as usize) {
            return Ok(*passes);
        }
        let plan = self.subject.draw(&mut Random::new(seed), self.whole);
        let passes = self.fails(seed, &plan)?.is_none();
        self.passes.push(passes);
        Ok(passes)
    }

    fn with_faults(&self, change: impl Fn(&Fault) -> Fault) -> FaultPlan {
        FaultPlan {
            faults: self.plan().faults.iter().map(change).collect(),
            ..self.plan().clone()
        }
    }

    /// Removes nodes, and load: a node that is necessary may be necessary only for a part of the run.
    fn remove_nodes(&mut self) -> Result<(), HuntError> {
        // For a check at the end of the run, all nodes take part as soon as faults have stopped.
        let until = self.plan().until;
        let end = until.unwrap_or_else(|| self.plan().faults_until());
        let step = end / 256 + 1;
        for node in 0..self.subject.nodes() {
            if self.remove_node(node, 0, end)? {
                continue;
            }
            let (mut necessary, mut leaves) = (until.map_or(end, |_| 0), end);
            while leaves - necessary > step {
                let middle = necessary.midpoint(leaves);
                match self.remove_node(node, middle, end)? {
                    true => leaves = middle,
                    false => necessary = middle,
                }
            }
            let (mut joins, mut necessary) = (0, leaves);
            while necessary - joins > step {
                let middle = joins.midpoint(necessary);
                match self.remove_node(node, 0, middle)? {
                    true => joins = middle,
                    false => necessary = middle,
                }
            }
        }
        Ok(())
    }

    /// Removes a node from an interval of the run. Returns true if the failure remains.
    fn remove_node(&mut self, node: u32, from: u32, until: u32) -> Result<bool, HuntError> {
        let is_inside = |absence: &Absence| absence.from >= from && absence.until <= until;
        let mut plan = self.plan().clone();
        plan.absent
            .retain(|absence| absence.node != node || !is_inside(absence));
        plan.absent.push(Absence { node, from, until });
        self.accept(&plan, 0)
    }

    /// True if the property does not fail merely because nodes are absent. A check at the end of a run may count on the
    /// load of all nodes.
    fn may_be_absent(&mut self, plan: &FaultPlan) -> Result<bool, HuntError> {
        Ok(self.is_harmless(plan)? && (plan.until.is_some() || self.suffices(plan)?))
    }

    /// True if the property holds with most seeds without faults. A failure that needs no fault may have absent nodes,
    /// because then an absent node is like a slow one.
    fn is_harmless(&mut self, plan: &FaultPlan) -> Result<bool, HuntError> {
        if plan.faults.is_empty() {
            return Ok(true);
        }
        let calm = FaultPlan {
            faults: Vec::new(),
            only: None,
            ..plan.clone()
        };
        let (mut holds, mut fails) = (0u64, 0u64);
        for seed in std::iter::once(self.failure.seed).chain(0..SEEDS) {
            match self.fails(seed, &calm)? {
                None => holds += 1,
                Some(_) => fails += 1,
            }
            if holds.max(fails) * 2 > SEEDS + 1 {
                break;
            }
        }
        Ok(holds > fails)
    }

    fn weaken(&mut self) -> Result<(), HuntError> {
        let mut index = 0;
        while index < self.plan().faults.len() {
            let fault = self.plan().faults[index].clone();
            let early = [1, 2, 4].map(|part| {
                let start = fault.span().map_or(0, |span| span.start as u32);
                fault.earlier(start / part)
            });
            for other in fault.weaker().into_iter().chain(early) {
                let mut plan = self.plan().clone();
                if let Some(place) = plan.faults.get_mut(index) {
                    *place = other;
                }
                if self.accept(&plan, 0)? {
                    break;
                }
            }
            // A fault that became weaker is tried again.
            if self.plan().faults.get(index) == Some(&fault) {
                index += 1;
            }
        }
        Ok(())
    }

    /// Replaces the random choices by a list of those that the violation needs. Returns true if the plan changed.
    fn list_choices(&mut self) -> Result<bool, HuntError> {
        if !is_random(self.plan()) {
            return Ok(false);
        }
        self.list_what_happened()?;
        self.remove(0, |plan| plan.only.as_mut())?;
        // With fewer faults, some of the listed messages may no longer be sent.
        self.list_what_happened()?;
        Ok(true)
    }

    fn list_what_happened(&mut self) -> Result<(), HuntError> {
        self.runs += 1;
        let trace = self.subject.trace(self.failure.seed, self.plan())?;
        self.failure.plan.only = Some(trace.chosen().collect());
        Ok(())
    }
}
