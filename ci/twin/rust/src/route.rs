//! The instances of a called service, and the policies for calls to it. They mean what they mean in definitions.

use serde::Deserialize;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct Policy {
    balance: String,
    connections: usize,
    pub timeout: f64,
    pub retries: u32,
    budget: Option<Budget>,
    breaker: Option<Rules>,
}

#[derive(Clone, Copy, Deserialize)]
struct Budget {
    share: f64,
    burst: f64,
}

/// The breaker opens for `open` milliseconds when this share of a full window has failed. One probe closes it.
#[derive(Clone, Copy, Deserialize)]
struct Rules {
    failures: f64,
    window: usize,
    open: f64,
}

pub struct Route {
    pub urls: Vec<String>,
    pub policy: Policy,
    pub connections: Option<Semaphore>,
    state: Mutex<RouteState>,
}

pub struct RouteState {
    next: usize,
    busy: Vec<usize>,
    /// The times until which instances are left out.
    pub down: Vec<Option<Instant>>,
    saved: f64,
    pub breaker: Breaker,
}

/// A request in flight to an instance.
pub struct Busy<'a>(&'a Route, pub usize);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.state().busy[self.1] -= 1;
    }
}

impl Route {
    pub fn new(urls: &[String], policy: &Policy) -> Route {
        let state = RouteState {
            next: 0,
            busy: vec![0; urls.len()],
            down: vec![None; urls.len()],
            saved: policy.budget.map_or(0.0, |budget| budget.burst),
            breaker: Breaker::default(),
        };
        Route {
            urls: urls.to_vec(),
            policy: policy.clone(),
            connections: (policy.connections > 0).then(|| Semaphore::new(policy.connections)),
            state: Mutex::new(state),
        }
    }

    pub fn state(&self) -> MutexGuard<'_, RouteState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Chooses an instance: the next one, or the next one of those with the fewest requests.
    pub fn pick(&self) -> Busy<'_> {
        let mut state = self.state();
        let now = Instant::now();
        let places = (0..self.urls.len()).map(|place| (state.next + place) % self.urls.len());
        let fewest = |place: usize| if self.policy.balance == "least_requests" { state.busy[place] } else { 0 };
        let chosen = places.min_by_key(|&place| (state.down[place].is_some_and(|until| now < until), fewest(place)));
        let chosen = chosen.unwrap_or(0);
        state.next = chosen + 1;
        state.busy[chosen] += 1;
        Busy(self, chosen)
    }

    /// Adds the share of a call to the budget of retries.
    pub fn earn(&self) {
        if let Some(budget) = self.policy.budget {
            let mut state = self.state();
            state.saved = (state.saved + budget.share).min(budget.burst);
        }
    }

    /// Takes a retry from the budget.
    pub fn spend(&self) -> bool {
        let mut state = self.state();
        if self.policy.budget.is_some() && state.saved < 1.0 - 1e-9 {
            return false;
        }
        state.saved -= 1.0;
        true
    }
}

#[derive(Default)]
pub struct Breaker {
    open_until: Option<Instant>,
    is_probing: bool,
    /// The last attempts; true for failures.
    last: std::collections::VecDeque<bool>,
}

impl Breaker {
    pub fn allows(&mut self, policy: &Policy) -> bool {
        let Some(until) = self.open_until.filter(|_| policy.breaker.is_some()) else {
            return true;
        };
        let allows = !self.is_probing && Instant::now() >= until;
        self.is_probing |= allows;
        allows
    }

    pub fn record(&mut self, policy: &Policy, failed: bool) {
        let Some(rules) = policy.breaker else { return };
        if self.open_until.is_some() && !self.is_probing {
            return; // The attempt was made before the breaker opened.
        }
        self.last.push_back(failed);
        if self.last.len() > rules.window {
            self.last.pop_front();
        }
        let failures = self.last.iter().filter(|&&failed| failed).count() as f64;
        let is_full = self.last.len() == rules.window && failures >= rules.failures * rules.window as f64 - 1e-6;
        if self.is_probing && !failed {
            self.open_until = None;
            self.last.clear();
        } else if self.is_probing || is_full {
            self.open_until = Some(Instant::now() + Duration::from_secs_f64(rules.open / 1e3));
            self.last.clear();
        }
        self.is_probing = false;
    }
}
