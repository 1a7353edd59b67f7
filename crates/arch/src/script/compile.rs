//! Compiles the steps of a definition to operations.

use super::{CacheKind, Endpoints, NOWHERE, Operation, Script, Target, Targets};
use crate::definition::{self, CacheDefinition, EndpointDefinition, StepDefinition};

/// The maximum number of operations of a service.
const MOST_OPERATIONS: usize = 100_000;
/// The maximum nesting depth of steps.
const MOST_DEPTH: usize = 16;
/// The maximum number of repetitions of a step.
const MOST_TIMES: i64 = 1_000;
/// The maximum number of services that a service calls.
const MOST_ROUTES: usize = 1 << 16;

/// Compiles the script of the service with this index.
pub(crate) fn compile(
    known: &Endpoints,
    service: usize,
    endpoints: &[EndpointDefinition],
) -> Result<Script, String> {
    let mut compiler = Compiler {
        known,
        script: Script {
            first: known.first(service),
            ..Script::default()
        },
    };
    for endpoint in endpoints {
        let begins = compiler.here();
        let priority = endpoint.priority.map(|priority| priority as u8);
        compiler.script.endpoints.push((begins, priority));
        let steps = compiler.steps(&endpoint.steps, 0);
        steps.map_err(|what| format!("endpoint '{}': {what}", endpoint.name))?;
        compiler.push(Operation::End)?;
    }
    if endpoints.iter().any(|endpoint| endpoint.latency.is_some()) {
        let latencies = endpoints.iter().map(|endpoint| &endpoint.latency);
        let latencies = latencies.map(|times| times.as_ref().map(|times| times.sampler()));
        compiler.script.latencies = latencies.collect();
    }
    compiler.script.sent = compiler.here();
    compiler.push(Operation::End)?;
    compiler.push(Operation::End)?;
    Ok(compiler.script)
}

struct Compiler<'a> {
    known: &'a Endpoints,
    script: Script,
}

impl Compiler<'_> {
    /// Returns the number of the next operation.
    fn here(&self) -> u32 {
        self.script.operations.len() as u32
    }

    fn push(&mut self, operation: Operation) -> Result<usize, String> {
        if self.script.operations.len() >= MOST_OPERATIONS {
            return Err(format!("there are more than {MOST_OPERATIONS} steps"));
        }
        self.script.operations.push(operation);
        Ok(self.script.operations.len() - 1)
    }

    fn steps(&mut self, steps: &[StepDefinition], depth: usize) -> Result<(), String> {
        if depth > MOST_DEPTH {
            return Err(format!("its steps are nested more than {MOST_DEPTH} deep"));
        }
        steps.iter().try_for_each(|step| self.step(step, depth))
    }

    fn step(&mut self, step: &StepDefinition, depth: usize) -> Result<(), String> {
        check_keys(step)?;
        let times = match step.times {
            None => 1,
            Some(times) if (1..=MOST_TIMES).contains(&times) => times as u32,
            Some(times) => {
                return Err(format!(
                    "{times} times are not possible; give 1 to {MOST_TIMES}"
                ));
            }
        };
        let chance = match step.probability {
            None => None,
            Some(part) => {
                let done = bits(part, "a probability")?;
                Some(self.push(Operation::Chance { done, skip: 0 })?)
            }
        };
        if let Some(work) = &step.work {
            self.push(Operation::Work(work.sampler()))?;
        } else if let Some(call) = &step.call {
            let targets = self.targets(call)?;
            let call = self.push(Operation::Call {
                targets,
                times,
                fallback: NOWHERE,
            })?;
            self.fallback(call, step.fallback.as_deref(), depth)?;
        } else if let Some(send) = &step.send {
            let targets = self.targets(send)?;
            self.push(Operation::Send { targets, times })?;
        } else if let Some(branches) = &step.parallel {
            self.parallel(step, branches, times, depth)?;
        } else if let Some(cache) = &step.cache {
            self.cache(cache, &step.miss, depth)?;
        }
        if let Some(chance) = chance {
            let end = self.here();
            if let Operation::Chance { skip, .. } = &mut self.script.operations[chance] {
                *skip = end;
            }
        }
        Ok(())
    }

    /// Compiles the steps that run when operation `of` fails. After them the script continues as if the
    /// operation had succeeded.
    fn fallback(
        &mut self,
        of: usize,
        steps: Option<&[StepDefinition]>,
        depth: usize,
    ) -> Result<(), String> {
        let Some(steps) = steps else {
            return Ok(());
        };
        let jump = self.push(Operation::Jump(0))?;
        let begins = self.here();
        self.steps(steps, depth + 1)?;
        let end = self.here();
        self.script.operations[jump] = Operation::Jump(end);
        match &mut self.script.operations[of] {
            Operation::Call { fallback, .. } | Operation::Fork { fallback, .. } => {
                *fallback = begins;
            }
            _ => {}
        }
        Ok(())
    }

    fn parallel(
        &mut self,
        step: &StepDefinition,
        branches: &[Vec<StepDefinition>],
        times: u32,
        depth: usize,
    ) -> Result<(), String> {
        let many = branches.len() as i64 * i64::from(times);
        let needed = step.wait.unwrap_or(many);
        if !(1..=many).contains(&needed) {
            return Err(match many {
                0 => "parallel has no lists of steps; give at least one".to_owned(),
                _ => format!("it waits for {needed} of {many} lists; give 1 to {many}"),
            });
        }
        let fork = self.push(Operation::Fork {
            first: 0,
            branches: many as u32,
            needed: needed as u32,
            fallback: NOWHERE,
        })?;
        let jump = self.push(Operation::Jump(0))?;
        let mut begin = Vec::with_capacity(branches.len());
        for steps in branches {
            begin.push(self.here());
            self.steps(steps, depth + 1)?;
            self.push(Operation::End)?;
        }
        let begins = self.script.branches.len() as u32;
        for _ in 0..times {
            self.script.branches.extend(&begin);
        }
        if let Operation::Fork { first, .. } = &mut self.script.operations[fork] {
            *first = begins;
        }
        let end = self.here();
        self.script.operations[jump] = Operation::Jump(end);
        if step.fallback.is_some() {
            // The operations after the branches are reached only by the jump.
            self.fallback(fork, step.fallback.as_deref(), depth)?;
        }
        Ok(())
    }

    fn cache(
        &mut self,
        cache: &CacheDefinition,
        miss: &[StepDefinition],
        depth: usize,
    ) -> Result<(), String> {
        let most = |number: Option<i64>, what: &str| match number {
            None => Ok(u32::MAX),
            Some(number) if (1..=100_000_000).contains(&number) => Ok(number as u32),
            Some(number) => Err(format!(
                "a cache with {number} {what} is not possible; give 1 to 100000000"
            )),
        };
        let place = if let Some(rate) = cache.hit_rate {
            let by_key = [cache.keys.is_some(), cache.skew.is_some()];
            if by_key.contains(&true) || cache.size.is_some() || cache.ttl.is_some() {
                return Err(
                    "a cache has either a hit_rate, or keys, a size and a ttl; remove one"
                        .to_owned(),
                );
            }
            // The steps of a miss run with the complementary probability.
            let hits = bits(rate, "a hit_rate")?;
            let done = u64::MAX - hits;
            self.push(Operation::Chance { done, skip: 0 })?
        } else {
            if cache.ttl.is_some_and(|ttl| ttl.0.is_zero()) {
                return Err("a cache with a ttl of 0s keeps no value; give a longer one".to_owned());
            }
            if cache.skew.is_some() && cache.keys.is_none() {
                return Err("a cache with a skew needs keys; give their number".to_owned());
            }
            if let Some(skew) = cache.skew.filter(|skew| !(0.0..=3.0).contains(skew)) {
                return Err(format!("a skew of {skew} is not possible; give 0 to 3"));
            }
            let number = self.script.caches.len();
            self.script.caches.push(CacheKind {
                keys: cache
                    .keys
                    .map(|keys| most(Some(keys), "keys"))
                    .transpose()?,
                skew: cache.skew.filter(|skew| *skew > 0.0),
                size: most(cache.size, "values")?,
                ttl: cache.ttl.map_or(u64::MAX, |ttl| ttl.nanos()),
            });
            let number = u16::try_from(number).map_err(|_| "there are too many caches")?;
            self.push(Operation::Cache { number, found: 0 })?
        };
        self.steps(miss, depth + 1)?;
        let end = self.here();
        match &mut self.script.operations[place] {
            Operation::Chance { skip, .. } => *skip = end,
            Operation::Cache { found, .. } => *found = end,
            _ => {}
        }
        Ok(())
    }

    fn targets(&mut self, targets: &definition::Targets) -> Result<Targets, String> {
        let weights: Vec<(&str, f64)> = match targets {
            definition::Targets::One(one) => vec![(one, 1.0)],
            definition::Targets::Weighted(many) => many
                .iter()
                .map(|(name, weight)| (&**name, *weight))
                .collect(),
        };
        let wrong = weights.iter().find(|(_, w)| !(*w >= 0.0 && w.is_finite()));
        if let Some((name, weight)) = wrong {
            return Err(format!("{name} has a weight of {weight}; give 0 or more"));
        }
        let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
        if !(total > 0.0 && total.is_finite()) {
            return Err("no target has a weight; give one of them 1".to_owned());
        }
        let mut sum = 0.0;
        let mut shares = Vec::with_capacity(weights.len());
        for (name, weight) in weights {
            let target = self.target(name)?;
            if weight > 0.0 {
                sum += weight;
                // Casts of floats saturate: the last share ends with the highest number.
                shares.push(((sum / total * 2f64.powi(64)) as u64, target));
            }
        }
        Ok(Targets(shares.into()))
    }

    fn target(&mut self, name: &str) -> Result<Target, String> {
        let (service, key) = self.known.target(name)?;
        let routes = &mut self.script.routes;
        let route = routes.iter().position(|&known| known == service);
        let route = route.unwrap_or_else(|| {
            routes.push(service);
            routes.len() - 1
        });
        if route >= MOST_ROUTES {
            return Err(format!("it calls more than {MOST_ROUTES} services"));
        }
        Ok(Target {
            route: route as u16,
            key,
        })
    }
}

/// Checks that a step has exactly one action, and no fields of other actions.
fn check_keys(step: &StepDefinition) -> Result<(), String> {
    let actions = [
        step.work.is_some(),
        step.call.is_some(),
        step.send.is_some(),
        step.parallel.is_some(),
        step.cache.is_some(),
    ];
    let [_, call, send, parallel, cache] = actions;
    match actions.into_iter().filter(|is_there| *is_there).count() {
        0 => {
            return Err(
                "a step does nothing; give it work, call, send, parallel or cache".to_owned(),
            );
        }
        1 => {}
        _ => return Err("a step does several things; give each a separate step".to_owned()),
    }
    for (is_wrong, what) in [
        (
            step.times.is_some() && !(call || send || parallel),
            "only call, send and parallel have times",
        ),
        (step.wait.is_some() && !parallel, "only parallel has wait"),
        (!step.miss.is_empty() && !cache, "only cache has miss"),
        (
            step.fallback.is_some() && !(call || parallel),
            "only call and parallel have a fallback",
        ),
    ] {
        if is_wrong {
            return Err(format!("{what}; remove it"));
        }
    }
    Ok(())
}

/// Converts a probability from 0 to 1 to a multiple of 2^-64.
fn bits(part: f64, what: &str) -> Result<u64, String> {
    if (0.0..=1.0).contains(&part) {
        // Casts of floats saturate, so that 1 is all bits.
        return Ok((part * 2f64.powi(64)) as u64);
    }
    Err(format!("{what} of {part} is not possible; give 0 to 1"))
}
