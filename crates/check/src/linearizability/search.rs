//! The search of one object.

use super::Bound;
use super::configurations::{Configurations, Linearized};
use crate::{Model, Operation};
use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use std::ops::ControlFlow;

/// The outcome of a search.
#[derive(Debug)]
pub(crate) enum SearchResult {
    Linearizable,
    Violation {
        longest: Vec<usize>,
        blocked: usize,
    },
    /// The search stopped at a bound, or because its result is no longer needed.
    Stopped(Option<Bound>),
}

/// The number of steps between two checks of the bounds.
const STEPS: u64 = 1024;

/// The number of next returns for which the search checks that the recorded result is still possible.
const AHEAD: usize = 4;

/// The index that stands for no entry.
const NONE: u32 = u32::MAX;

/// An operation, in the form that the search uses.
#[derive(Debug)]
struct Item {
    /// The operation's number among the operations with a return, or among those without.
    number: u32,
    /// The index of its return in the list of events; `NONE` if it has no return.
    returned: u32,
    /// For an operation without a return: the previous equal call without a return, as an index of items.
    twin: u32,
    is_read: bool,
}

/// A call or a return in the list of events that have not been linearized.
#[derive(Clone, Copy, Debug)]
struct Event {
    previous: u32,
    next: u32,
    item: u32,
    is_call: bool,
}

/// A linearized operation, with the data to undo it.
#[derive(Clone, Copy, Debug)]
struct Step {
    event: u32,
    /// The state before the operation.
    state: u32,
    /// True if no alternative to this step has to be tried.
    forced: bool,
}

/// The search for an order that the model allows.
pub(super) struct Searcher<'a, M: Model> {
    model: &'a M,
    history: &'a [Operation<M::Input, M::Output>],
    operations: &'a [usize],
    items: Vec<Item>,
    /// The linked list of events; event 0 is its head.
    events: Vec<Event>,
    states: States<M::State>,
    linearized: Linearized,
    seen: Configurations,
    steps: Vec<Step>,
    /// Operations with a return that have not been linearized.
    open: usize,
    longest: Vec<u32>,
    blocked: u32,
    state: u32,
    /// The next event to try; at the head, the search looks for reads first.
    at: u32,
}

impl<'a, M: Model> Searcher<'a, M> {
    pub(super) fn new(
        model: &'a M,
        history: &'a [Operation<M::Input, M::Output>],
        operations: &'a [usize],
    ) -> Searcher<'a, M> {
        let mut items: Vec<Item> = Vec::with_capacity(operations.len());
        let (mut returned, mut unknown) = (0, 0);
        let mut latest: FxHashMap<&M::Input, u32> = FxHashMap::default();
        // (time, is a return, item): at one time, calls come before returns.
        let mut order = Vec::with_capacity(2 * operations.len());
        for (index, operation) in operations.iter().map(|index| &history[*index]).enumerate() {
            let item = index as u32;
            order.push((operation.call, false, item));
            let mut twin = NONE;
            let number = if let Some((time, _)) = &operation.completion {
                order.push(((*time).max(operation.call), true, item));
                returned += 1;
                returned - 1
            } else {
                twin = latest.insert(&operation.input, item).unwrap_or(NONE);
                unknown += 1;
                unknown - 1
            };
            items.push(Item {
                number,
                returned: NONE,
                twin,
                is_read: model.is_read(&operation.input, operation.output()),
            });
        }
        order.sort_unstable();
        let mut events = Vec::with_capacity(order.len() + 1);
        let link = |place: usize, item: u32, is_call: bool| Event {
            previous: (place as u32).wrapping_sub(1),
            next: if place < order.len() {
                place as u32 + 1
            } else {
                NONE
            },
            item,
            is_call,
        };
        events.push(link(0, NONE, true));
        for (place, (_, is_return, item)) in order.iter().enumerate() {
            events.push(link(place + 1, *item, !is_return));
            if *is_return {
                items[*item as usize].returned = place as u32 + 1;
            }
        }
        Searcher {
            model,
            history,
            operations,
            items,
            events,
            states: States::new(model.initial()),
            linearized: Linearized::new(returned as usize, unknown as usize),
            seen: Configurations::default(),
            steps: Vec::new(),
            open: returned as usize,
            longest: Vec::new(),
            blocked: NONE,
            state: 0,
            at: 0,
        }
    }

    /// Returns the number of configurations that the search has visited.
    pub(super) fn configurations(&self) -> u64 {
        self.seen.len() as u64
    }

    /// Continues the search for a limited number of steps, and returns `None` if it is still undecided. Calls `go_on`
    /// from time to time with the number of bytes in use.
    pub(super) fn run(
        &mut self,
        steps: u64,
        go_on: &mut dyn FnMut(usize) -> ControlFlow<Option<Bound>>,
    ) -> Option<SearchResult> {
        for step in 0..steps {
            if self.open == 0 {
                return Some(SearchResult::Linearizable);
            }
            if step % STEPS == 0
                && let ControlFlow::Break(bound) = go_on(self.seen.bytes() + self.states.bytes)
            {
                return Some(SearchResult::Stopped(bound));
            }
            if self.at == 0 {
                if let Some(read) = self.read_now() {
                    self.take(read, true);
                    continue;
                }
                if let Some(lost) = self.unreachable() {
                    self.note_longest(lost);
                    if !self.take_back() {
                        return Some(self.violation());
                    }
                    continue;
                }
                self.at = self.events[0].next;
            }
            // An operation with a return is open, so its return ends the list of candidates.
            let event = self.events[self.at as usize];
            if event.is_call {
                match self.try_next(self.at) {
                    Some(after) => {
                        self.take(self.at, false);
                        (self.state, self.at) = (after, 0);
                    }
                    None => self.at = event.next,
                }
                continue;
            }
            self.note_longest(event.item);
            if !self.take_back() {
                return Some(self.violation());
            }
        }
        None
    }

    /// Returns an operation whose result is impossible in every order of the calls before it.
    fn unreachable(&self) -> Option<u32> {
        let state = self.states.get(self.state);
        let (mut at, mut returns) = (self.events[0].next, 0);
        while at != NONE && returns < AHEAD {
            let event = self.events[at as usize];
            if !event.is_call {
                returns += 1;
                let operation = self.operation(event.item);
                let output = operation.output()?;
                let mut others = self.calls_before(at);
                let input = &operation.input;
                if !self.model.is_reachable(state, input, output, &mut others) {
                    return Some(event.item);
                }
            }
            at = event.next;
        }
        None
    }

    /// Returns the inputs of the calls before an event that are not yet linearized.
    fn calls_before(&self, end: u32) -> impl Iterator<Item = &'a M::Input> {
        let mut at = self.events[0].next;
        std::iter::from_fn(move || {
            loop {
                if at == end {
                    return None;
                }
                let event = self.events[at as usize];
                at = event.next;
                if event.is_call {
                    return Some(&self.operation(event.item).input);
                }
            }
        })
    }

    /// Returns a read that can be linearized in this state.
    fn read_now(&self) -> Option<u32> {
        let mut at = self.events[0].next;
        loop {
            let event = self.events[at as usize];
            if !event.is_call {
                return None;
            }
            let item = &self.items[event.item as usize];
            if item.is_read && item.returned != NONE {
                let operation = self.operation(event.item);
                let state = self.states.get(self.state);
                let (input, output) = (&operation.input, operation.output());
                if self.model.step(state, input, output).is_some() {
                    return Some(at);
                }
            }
            at = event.next;
        }
    }

    /// Returns the state after the call, if linearizing the call next is worth trying.
    fn try_next(&mut self, at: u32) -> Option<u32> {
        let index = self.events[at as usize].item;
        let item = &self.items[index as usize];
        let unknown = item.returned == NONE;
        if item.is_read || unknown && item.twin != NONE && !self.has_twin(item.twin) {
            return None;
        }
        let number = item.number as usize;
        let operation = &self.history[self.operations[index as usize]];
        let (input, output) = (&operation.input, operation.output());
        let after = self
            .model
            .step(self.states.get(self.state), input, output)?;
        let after = self
            .states
            .intern(after, |state| self.model.state_bytes(state));
        // It may take effect later, or never.
        if unknown && after == self.state {
            return None;
        }
        if unknown {
            self.linearized.insert_unknown(number);
        } else {
            self.linearized.insert_returned(number);
        }
        let new = self.seen.insert(&self.linearized, after);
        if unknown {
            self.linearized.remove_unknown(number);
        } else {
            self.linearized.remove_returned(number);
        }
        new.then_some(after)
    }

    fn has_twin(&self, twin: u32) -> bool {
        let number = self.items[twin as usize].number;
        self.linearized.has_unknown(number as usize)
    }

    fn operation(&self, item: u32) -> &'a Operation<M::Input, M::Output> {
        &self.history[self.operations[item as usize]]
    }

    /// Linearizes the operation that is called at this event.
    fn take(&mut self, event: u32, forced: bool) {
        let index = self.events[event as usize].item;
        let item = &self.items[index as usize];
        let (number, returned) = (item.number as usize, item.returned);
        unlink(&mut self.events, event);
        if returned == NONE {
            self.linearized.insert_unknown(number);
        } else {
            unlink(&mut self.events, returned);
            self.linearized.insert_returned(number);
            self.open -= 1;
        }
        self.steps.push(Step {
            event,
            state: self.state,
            forced,
        });
    }

    /// Undoes steps back to the last one that has an alternative, and continues with that alternative. False if no step
    /// has one.
    fn take_back(&mut self) -> bool {
        while let Some(step) = self.steps.pop() {
            let index = self.events[step.event as usize].item;
            let item = &self.items[index as usize];
            let (number, returned) = (item.number as usize, item.returned);
            if returned == NONE {
                self.linearized.remove_unknown(number);
            } else {
                self.linearized.remove_returned(number);
                self.open += 1;
                relink(&mut self.events, returned);
            }
            relink(&mut self.events, step.event);
            if !step.forced {
                self.state = step.state;
                self.at = self.events[step.event as usize].next;
                return true;
            }
        }
        false
    }

    fn note_longest(&mut self, blocked: u32) {
        if self.steps.len() > self.longest.len() || self.blocked == NONE {
            self.blocked = blocked;
            self.longest.clear();
            let events = self.steps.iter().map(|step| step.event as usize);
            self.longest
                .extend(events.map(|event| self.events[event].item));
        }
    }

    fn violation(&self) -> SearchResult {
        let index = |item: &u32| self.operations[*item as usize];
        SearchResult::Violation {
            longest: self.longest.iter().map(index).collect(),
            blocked: index(&self.blocked),
        }
    }
}

fn unlink(events: &mut [Event], at: u32) {
    let Event { previous, next, .. } = events[at as usize];
    events[previous as usize].next = next;
    if next != NONE {
        events[next as usize].previous = previous;
    }
}

/// Undoes `unlink`. Events must be relinked in the reverse order.
fn relink(events: &mut [Event], at: u32) {
    let Event { previous, next, .. } = events[at as usize];
    events[previous as usize].next = at;
    if next != NONE {
        events[next as usize].previous = at;
    }
}

/// The distinct states of a search, each with a number.
struct States<S> {
    states: Vec<S>,
    table: HashTable<u32>,
    bytes: usize,
}

impl<S: Eq + std::hash::Hash> States<S> {
    fn new(initial: S) -> States<S> {
        let mut states = States {
            states: Vec::new(),
            table: HashTable::new(),
            bytes: 0,
        };
        states.intern(initial, |_| 0);
        states
    }

    fn get(&self, state: u32) -> &S {
        &self.states[state as usize]
    }

    fn intern(&mut self, state: S, heap_bytes: impl Fn(&S) -> usize) -> u32 {
        let States {
            states,
            table,
            bytes,
        } = self;
        let hash = FxBuildHasher.hash_one(&state);
        if let Some(index) = table.find(hash, |index| states[*index as usize] == state) {
            return *index;
        }
        let index = states.len() as u32;
        *bytes += heap_bytes(&state) + size_of::<S>() + 8;
        states.push(state);
        table.insert_unique(hash, index, |index| {
            FxBuildHasher.hash_one(&states[*index as usize])
        });
        index
    }
}
