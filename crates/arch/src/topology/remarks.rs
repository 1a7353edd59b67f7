//! Sentences about a topology that a user may not expect: faults without effect, and requests that cannot succeed.

use super::{Service, Topology};
use crate::duration_text::TimeSpan;
use crate::script::CertainCalls;
use std::time::Duration;

impl Topology {
    /// Returns a sentence for each fault that begins after the end of a load of this length, and for each service whose
    /// requests cannot succeed, because its only instance waits for its own slots or connections.
    pub fn remarks(&self, load: Duration) -> impl Iterator<Item = String> + '_ {
        self.faults_after(load).chain(self.deadlocks())
    }

    /// Returns the sentences of [`Topology::remarks`] about faults.
    fn faults_after(&self, load: Duration) -> impl Iterator<Item = String> + '_ {
        let load = u64::try_from(load.as_nanos()).unwrap_or(u64::MAX);
        let services = self.services.iter();
        let faults = services.flat_map(|service| {
            let what = format!("service '{}' has a fault", service.name);
            service
                .faults
                .iter()
                .map(move |fault| (what.clone(), fault.at))
        });
        let places = (1..).zip(&self.faults);
        let places = places.map(|(n, (.., fault))| (format!("there is fault {n}"), fault.at));
        let links = (1..).zip(&self.links);
        let links = links.map(|(n, link)| {
            (
                format!("there is link fault {n}"),
                link.schedule.first.as_nanos(),
            )
        });
        let all = faults.chain(places).chain(links);
        all.filter(move |&(_, at)| at >= load).map(move |(what, at)| {
            let [at, load] = [at, load].map(|nanos| TimeSpan(Duration::from_nanos(nanos)));
            format!(
                "{what} at {at} that has no effect, because the load ends at {load}; increase -d, or give the fault an earlier time"
            )
        })
    }

    /// Returns a sentence for each service with a single instance whose requests certainly need more slots of the
    /// instance at once than there are, or more calls to a service than its policy permits.
    fn deadlocks(&self) -> Vec<String> {
        let scripts = self.services.iter().filter_map(|one| one.script.as_deref());
        let calls = CertainCalls::new(scripts);
        let services = self.services.iter();
        let single = services.filter(|one| one.instances.len() == 1 && !one.may_change());
        single
            .flat_map(|one| self.deadlocks_of(one, &calls))
            .collect()
    }

    fn deadlocks_of(&self, service: &Service, calls: &CertainCalls) -> Vec<String> {
        let Some(script) = &service.script else {
            return Vec::new();
        };
        let own = script.numbers();
        let mut said = Vec::new();
        let mut say = |(endpoint, needed): (u16, u32), limit: u32, what: &str, change: &str| {
            if needed > limit {
                let endpoint = self.endpoints.name(endpoint).unwrap_or_default();
                said.push(format!(
                    "no request of '{endpoint}' can succeed: with the calls that it waits for, it needs {needed} \
                     {what} at once, and the only instance of '{}' allows {limit}; increase {change}, or add instances",
                    service.name
                ));
            }
        };
        // A path contains each endpoint at most once.
        if let Some(limit) = service
            .costs
            .concurrency
            .filter(|&limit| limit < own.len() as u32)
            && let Some((endpoint, again)) = calls.deepest(own.clone(), |_, to| own.contains(&to))
        {
            say((endpoint, again + 1), limit, "slots", "concurrency");
        }
        for (&called, policy) in script.routes.iter().zip(&service.policies) {
            let called = &self.services[called as usize];
            let pool = policy.connections.map(|pool| pool.most);
            let limits = [(pool, "connections"), (policy.bulkhead, "bulkhead")];
            let limits = limits
                .into_iter()
                .filter_map(|(limit, change)| Some((limit?, change)));
            let limit = limits.min().filter(|&(limit, _)| limit < own.len() as u32);
            let (Some((limit, change)), Some(of)) = (limit, &called.script) else {
                continue;
            };
            let of = of.numbers();
            let deepest = calls.deepest(own.clone(), |from, to| {
                own.contains(&from) && of.contains(&to)
            });
            let what = format!("calls to '{}'", called.name);
            if let Some(deepest) = deepest {
                say(deepest, limit, &what, change);
            }
        }
        said
    }
}
