//! A saved run: a head, which all shards agree on, and a part for each shard.
//!
//! A part says of everything whose it is, so that its contents can be dealt out to any number of shards.

use super::{Codec, CodecError, Input, Kinds, SnapshotError, get, read_spawn};
use crate::contract::spawn::Names;
use crate::contract::{Config, Message, Spawn, Time};
use crate::virtual_time::addresses::{PAGE_BITS, SavedAddresses};
use crate::virtual_time::places::NamedRange;
use crate::virtual_time::population::SpawnRequest;
use crate::virtual_time::scheduled::Scheduled;
use crate::virtual_time::shard::{Counters, Notes, Shard};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// How parts are written. Another way is another number.
const FORMAT: u32 = 2;

/// A run in virtual time that was saved while it was paused: [`Simulation::snapshot`](crate::Simulation::snapshot).
///
/// It is bytes in memory; whoever keeps them in files says so ([`Snapshot::head`], [`Snapshot::parts`]).
#[derive(Clone, PartialEq, Eq)]
pub struct Snapshot {
    head: Vec<u8>,
    parts: Vec<Vec<u8>>,
}

impl Snapshot {
    pub(in super::super) fn new(head: &Head, parts: Vec<Vec<u8>>) -> Result<Snapshot, CodecError> {
        let head = encoded(head)?;
        Ok(Snapshot { head, parts })
    }

    /// A snapshot from what [`Snapshot::head`] and [`Snapshot::parts`] have returned.
    ///
    /// # Errors
    /// If the head is none, or belongs to another number of parts.
    pub fn from_parts(head: Vec<u8>, parts: Vec<Vec<u8>>) -> Result<Snapshot, SnapshotError> {
        let snapshot = Snapshot { head, parts };
        let saved = snapshot.read_head()?.shards as usize;
        if saved != snapshot.parts.len() {
            return Err(SnapshotError::Differs {
                what: "parts:",
                saved: saved.to_string(),
                given: snapshot.parts.len().to_string(),
            });
        }
        Ok(snapshot)
    }

    /// What all parts have in common.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// A part for each worker with which the run was saved.
    pub fn parts(&self) -> &[Vec<u8>] {
        &self.parts
    }

    /// Its head and its parts.
    pub fn into_parts(self) -> (Vec<u8>, Vec<Vec<u8>>) {
        (self.head, self.parts)
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        let parts = self.parts.iter().map(|part| part.len() as u64);
        self.head.len() as u64 + parts.sum::<u64>()
    }

    /// Where in virtual time the run was paused.
    ///
    /// # Errors
    /// If its head cannot be read.
    pub fn time(&self) -> Result<Time, SnapshotError> {
        Ok(Time::from_nanos(self.read_head()?.now))
    }

    /// From here on, random numbers are those of another seed: a branch. Latencies that belong to pairs of
    /// actors stay, so that no message overtakes another.
    ///
    /// # Errors
    /// If its head cannot be read.
    pub fn reseed(&mut self, seed: u64) -> Result<(), SnapshotError> {
        let mut head = self.read_head()?;
        head.stream_seed = seed;
        self.head.clear();
        super::put(&mut self.head, &head).map_err(|error| SnapshotError::corrupt(0, error))
    }

    pub(in super::super) fn read_head(&self) -> Result<Head, SnapshotError> {
        let input = &mut self.head.as_slice();
        let format: u32 = get(input).map_err(|error| SnapshotError::corrupt(0, error))?;
        if format != FORMAT {
            return Err(SnapshotError::Differs {
                what: "format",
                saved: format.to_string(),
                given: FORMAT.to_string(),
            });
        }
        get(&mut self.head.as_slice()).map_err(|error| SnapshotError::corrupt(0, error))
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("parts", &self.parts.len())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

/// A head as it is in a snapshot.
pub(in super::super) fn encoded(head: &Head) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    super::put(&mut bytes, head)?;
    Ok(bytes)
}

/// What all shards agree on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) struct Head {
    format: u32,
    pub(in super::super) shards: u32,
    pub(in super::super) now: u64,
    pub(in super::super) injected: u32,
    pub(in super::super) stream_seed: u64,
    settings: Vec<(String, String)>,
    pub(in super::super) common: Common,
}

/// The part of a head that any one shard can say, because it is the same on all.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) struct Common {
    pub(in super::super) window: u64,
    pub(in super::super) spawns_wait_from: u64,
    pub(in super::super) spawned: u64,
    pub(in super::super) windows: u64,
    pub(in super::super) counted: bool,
    pub(in super::super) addresses: SavedAddresses,
}

impl Head {
    pub(in super::super) fn new<M: Message>(
        config: &Config,
        now: u64,
        injected: u32,
        stream_seed: u64,
        common: Common,
    ) -> Head {
        let settings = settings::<M>(config).into_iter();
        Head {
            format: FORMAT,
            shards: config.workers.get() as u32,
            now,
            injected,
            stream_seed,
            settings: settings
                .map(|(what, value)| (what.to_owned(), value))
                .collect(),
            common,
        }
    }

    /// Whether a run of this configuration can go on from it.
    pub(in super::super) fn check<M: Message>(&self, config: &Config) -> Result<(), SnapshotError> {
        for (what, given) in settings::<M>(config) {
            let saved = self.settings.iter().find(|(name, _)| name == what);
            let saved = saved.map_or("nothing", |(_, saved)| saved);
            if saved != given {
                let saved = saved.to_owned();
                return Err(SnapshotError::Differs { what, saved, given });
            }
        }
        Ok(())
    }
}

/// What decides the result of a run, beside its scenario: what it is called, and its value.
pub(in super::super) fn settings<M: Message>(config: &Config) -> Vec<(&'static str, String)> {
    let (min, max) = (config.latency.min(), config.latency.max());
    let bits = config.lookahead_nanos().ilog2();
    vec![
        ("the seed", config.seed.to_string()),
        ("latencies", format!("{min:?} to {max:?}")),
        ("windows of", format!("2^{bits} ns")),
        ("the end", format!("{:?}", config.end)),
        ("totals per actor", config.per_actor.to_string()),
        ("traces", config.traces.to_string()),
        ("dead letters", format!("{:?}", config.dead_letters)),
        ("panics", format!("{:?}", config.panics)),
        ("a network", config.network.is_some().to_string()),
        ("messages", M::KINDS.join(", ")),
    ]
}

/// The small things of a part.
#[derive(Serialize, Deserialize)]
pub(in super::super) struct Part {
    pub(in super::super) busy: bool,
    pub(in super::super) counters: Counters,
    pub(in super::super) notes: Notes,
    /// The names of actors that were forgotten.
    pub(in super::super) names: Vec<NamedRange>,
    /// Pages that get no more actors.
    pub(in super::super) closed: Vec<u32>,
    /// In one part of each process: what its actors change together.
    pub(in super::super) state: Vec<u8>,
}

/// What actors that were spawned together are made from.
#[derive(Serialize, Deserialize)]
pub(in super::super) struct SavedOrigin {
    /// The name of their kind.
    pub(in super::super) kind: String,
    /// From when on those are there that have not begun.
    pub(in super::super) born: u64,
    /// Of those, if there are any.
    pub(in super::super) parameters: Option<Vec<u8>>,
}

/// Actors that have pages of their own.
#[derive(Serialize, Deserialize)]
pub(in super::super) struct SavedGroup {
    pub(in super::super) first: u32,
    pub(in super::super) parent: u32,
    pub(in super::super) spawn: Spawn,
    pub(in super::super) origin: SavedOrigin,
}

/// A few actors that share a page with others.
#[derive(Serialize, Deserialize)]
pub(in super::super) struct SavedBatch {
    pub(in super::super) first: u32,
    pub(in super::super) count: u8,
    pub(in super::super) living: u8,
    /// How many of those have begun.
    pub(in super::super) live: u8,
    pub(in super::super) parent: u32,
    pub(in super::super) watched: bool,
    pub(in super::super) names: Names,
    pub(in super::super) origin: SavedOrigin,
}

/// The actors of a page.
pub(in super::super) struct PageShare<'a> {
    /// How many have not ended.
    pub(in super::super) living: u16,
    /// How many of those have begun.
    live: u16,
    pub(in super::super) contents: &'a [u8],
}

/// The pages of a group that a shard gets.
pub(in super::super) struct GroupShare<'a> {
    pub(in super::super) group: Arc<SavedGroup>,
    /// By number.
    pub(in super::super) pages: BTreeMap<u32, PageShare<'a>>,
}

/// What a shard gets of all parts.
pub(in super::super) struct Share<'a, M: Message> {
    pub(in super::super) groups: BTreeMap<u32, GroupShare<'a>>,
    pub(in super::super) batches: Vec<(SavedBatch, &'a [u8])>,
    pub(in super::super) closed: Vec<u32>,
    /// What actors of processes have changed together.
    pub(in super::super) states: Vec<Vec<u8>>,
    pub(in super::super) notes: Notes,
    pub(in super::super) names: Vec<NamedRange>,
    pub(in super::super) spawns: Vec<SpawnRequest<M, Shard<M>>>,
    pub(in super::super) events: Vec<(u64, Scheduled<M>)>,
    pub(in super::super) kept: Vec<(u32, Scheduled<M>)>,
    pub(in super::super) own: Vec<(u32, u32, Scheduled<M>)>,
    pub(in super::super) counters: Option<Counters>,
    pub(in super::super) busy: bool,
    /// How many of its actors have begun and not ended.
    pub(in super::super) live: u64,
}

/// Deals the parts of a saved run out to shards; `owner` says whose an address is.
pub(in super::super) fn shares<'a, M: Message>(
    snapshot: &'a Snapshot,
    kinds: &Kinds<M>,
    shards: usize,
    owner: impl Fn(u32) -> usize,
) -> Result<Vec<Share<'a, M>>, SnapshotError> {
    let mut shares: Vec<Share<'a, M>> = (0..shards).map(|_| Share::new()).collect();
    for (number, part) in (1..).zip(&snapshot.parts) {
        let input = &mut part.as_slice();
        let corrupt = |error| SnapshotError::corrupt(number, error);
        deal(input, kinds, &mut shares, &owner).map_err(corrupt)?;
        if !input.is_empty() {
            let left = CodecError::Number(input.len() as u64, "end of a part");
            return Err(corrupt(left));
        }
    }
    // The first shard has all counters; the others count who lives on them.
    let living = |share: &mut Share<'a, M>| {
        let groups = share.groups.values().flat_map(|group| group.pages.values());
        let groups: u64 = groups.map(|page| u64::from(page.live)).sum();
        let batches = share.batches.iter();
        let batches: u64 = batches.map(|(batch, _)| u64::from(batch.live)).sum();
        share.live = groups + batches;
    };
    shares.iter_mut().for_each(living);
    let live: u64 = shares.iter().map(|share| share.live).sum();
    let others = live - shares[0].live;
    let counters = shares[0].counters.as_mut();
    let counters = counters.filter(|counted| counted.begun + counted.never == live + counted.ended);
    let Some(counters) = counters else {
        let source = CodecError::Number(live, "number of actors that live");
        return Err(SnapshotError::corrupt(1, source));
    };
    counters.begun = counters.begun.saturating_sub(others);
    Ok(shares)
}

impl<M: Message> Share<'_, M> {
    fn new() -> Self {
        Share {
            groups: BTreeMap::new(),
            batches: Vec::new(),
            closed: Vec::new(),
            states: Vec::new(),
            notes: Notes::default(),
            names: Vec::new(),
            spawns: Vec::new(),
            events: Vec::new(),
            kept: Vec::new(),
            own: Vec::new(),
            counters: None,
            busy: false,
            live: 0,
        }
    }
}

/// Takes so many bytes.
fn take<'a>(from: &mut Input<'a>, bytes: u64) -> Result<&'a [u8], CodecError> {
    let split = usize::try_from(bytes)
        .ok()
        .and_then(|bytes| from.split_at_checked(bytes));
    let (taken, rest) = split.ok_or_else(CodecError::short)?;
    *from = rest;
    Ok(taken)
}

fn deal<'a, M: Message>(
    from: &mut Input<'a>,
    kinds: &Kinds<M>,
    shares: &mut [Share<'a, M>],
    owner: &impl Fn(u32) -> usize,
) -> Result<(), CodecError> {
    let part: Part = get(from)?;
    deal_notes(part, shares, owner);
    let groups: u32 = get(from)?;
    for _ in 0..groups {
        let group = Arc::new(get::<SavedGroup>(from)?);
        let pages: u32 = get(from)?;
        for _ in 0..pages {
            let (page, living, live, bytes): (u32, u16, u16, u64) = get(from)?;
            let page_share = PageShare {
                living,
                live,
                contents: take(from, bytes)?,
            };
            let share = &mut shares[owner(page << PAGE_BITS)];
            let entry = share.groups.entry(group.first);
            let entry = entry.or_insert_with(|| GroupShare {
                group: Arc::clone(&group),
                pages: BTreeMap::new(),
            });
            // Only parts in which some have not begun have what those are made from.
            if entry.group.origin.parameters.is_none() {
                entry.group = Arc::clone(&group);
            }
            entry.pages.insert(page, page_share);
        }
    }
    let batches: u32 = get(from)?;
    for _ in 0..batches {
        let (batch, bytes): (SavedBatch, u64) = get(from)?;
        let contents = take(from, bytes)?;
        shares[owner(batch.first)].batches.push((batch, contents));
    }
    let spawns: u32 = get(from)?;
    for _ in 0..spawns {
        let spawn = read_spawn(kinds, from)?;
        shares[owner(spawn.parent)].spawns.push(spawn);
    }
    let codec: Codec<M> = kinds.codec();
    let events: u64 = get(from)?;
    for _ in 0..events {
        let (time, event) = codec.read_event(from)?;
        shares[owner(event.head.to)].events.push((time, event));
    }
    let kept: u64 = get(from)?;
    for _ in 0..kept {
        let actor: u32 = get(from)?;
        let (_, event) = codec.read_event(from)?;
        shares[owner(actor)].kept.push((actor, event));
    }
    let own: u64 = get(from)?;
    for _ in 0..own {
        let (actor, token): (u32, u32) = get(from)?;
        let (_, event) = codec.read_event(from)?;
        shares[owner(actor)].own.push((actor, token, event));
    }
    Ok(())
}

/// Deals out what has the address of an actor beside it; the rest is the first shard's.
fn deal_notes<M: Message>(part: Part, shares: &mut [Share<'_, M>], owner: &impl Fn(u32) -> usize) {
    let Part {
        busy,
        counters,
        notes,
        names,
        closed,
        state,
    } = part;
    let notes = notes.deal(shares.len(), owner);
    for (share, notes) in shares.iter_mut().zip(notes) {
        share.notes.add(notes);
    }
    for page in closed {
        shares[owner(page << PAGE_BITS)].closed.push(page);
    }
    let first = &mut shares[0];
    first.busy |= busy;
    first.names.extend(names);
    first.states.push(state);
    match &mut first.counters {
        None => first.counters = Some(counters),
        Some(sum) => sum.add(counters),
    }
}
