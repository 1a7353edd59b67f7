//! Small architectures, and runs of them.

use corsair::{Config, Executor, Report};
use corsair_arch::{
    EntryTotals, Plan, Scale, ServiceTotals, Topology, Totals, read_text, simulate,
};
use corsair_observe::{Clock, FlowFormat, GraphFormat, Observer, OutputSummary, Settings, graph};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns a topology of these services, with a latency of exactly a millisecond everywhere.
pub fn topology(services: &str, scale: Scale) -> Topology {
    let text = format!(
        r#"{{"arch": "x", "network": {{"same_zone": "1ms", "same_region": "1ms",
        "other_region": "10ms"}}, "services": [{services}]}}"#
    );
    Topology::new(&read_text(&text, "x").unwrap(), scale).unwrap()
}

/// The results of a run.
pub struct Ran {
    pub report: Report,
    pub totals: Totals,
    names: Vec<String>,
}

impl Ran {
    /// Returns the only entry point.
    pub fn entry(&self) -> &EntryTotals {
        assert_eq!(self.totals.entries.len(), 1);
        self.totals.entries.values().next().unwrap()
    }

    /// Returns the totals of a service.
    pub fn service(&self, name: &str) -> ServiceTotals {
        let index = self.names.iter().position(|known| known == name).unwrap();
        self.totals.services[&(index as u32)]
    }

    /// Returns the totals of a service, if the run has the service.
    pub fn try_service(&self, name: &str) -> Option<ServiceTotals> {
        let index = self.names.iter().position(|known| known == name)?;
        self.totals.services.get(&(index as u32)).copied()
    }

    /// Returns the number of messages of a kind.
    pub fn messages(&self, kind: &str) -> u64 {
        let counts = self.report.messages.iter();
        counts
            .filter(|count| count.kind == kind)
            .map(|count| count.count)
            .sum()
    }

    /// Returns the shortest and the longest response time in microseconds, to three digits.
    pub fn micros(&self) -> (u64, u64) {
        let times = &self.entry().times;
        (
            times.least().unwrap() / 1000,
            times.greatest().unwrap() / 1000,
        )
    }
}

/// Returns a plan of two virtual seconds with a request every ten milliseconds.
pub fn plan() -> Plan {
    Plan {
        duration: Duration::from_secs(2),
        poll: Duration::from_millis(100),
        patience: Duration::from_millis(300),
        ..Plan::default()
    }
}

pub fn run(topology: Topology, plan: &Plan) -> Ran {
    let names = topology.services.iter().map(|s| s.name.clone()).collect();
    let config = Config::default();
    let (report, totals) = simulate(Executor::Virtual, &config, topology, plan).unwrap();
    Ran {
        report,
        totals,
        names,
    }
}

/// Runs the definition with this text for some seconds.
pub fn simulated(text: &str, seconds: u64) -> Ran {
    let topology = Topology::new(&read_text(text, "x").unwrap(), Scale::default()).unwrap();
    let plan = Plan {
        duration: Duration::from_secs(seconds),
        drain: Duration::from_secs(5),
        ..Plan::default()
    };
    run(topology, &plan)
}

/// Returns the 99th percentile of the response times of a definition in seconds.
pub fn p99(text: &str) -> f64 {
    let ran = simulated(text, 300);
    ran.entry().percentile(0.99).time.as_secs_f64()
}

/// Runs services in one region, with the number of instances in the definition.
pub fn run_services(services: &str, plan: &Plan) -> Ran {
    run(topology(services, Scale::default()), plan)
}

/// Runs a topology and records its graph. Returns the results, the text of the graph file, and the parsed graph.
pub fn run_with_graph(topology: Topology, plan: &Plan) -> (Ran, String, graph::GraphFile) {
    let directory = tempfile::tempdir().unwrap();
    let config = Config::default();
    let clock = Clock::Virtual(config.progress.clone());
    let mut settings = Settings::new(topology.arch.clone(), clock);
    settings.kinds = corsair_arch::KINDS;
    settings.operations = topology.operations();
    settings.out = directory.path().to_owned();
    settings.graphs = vec![GraphFormat::Json];
    let observer = Observer::start(settings).unwrap();
    let plan = Plan {
        recorder: observer.recorder(),
        ..plan.clone()
    };
    let names = topology.services.iter().map(|s| s.name.clone()).collect();
    let (report, totals) = simulate(Executor::Virtual, &config, topology, &plan).unwrap();
    let OutputSummary { files, .. } = observer.finish().unwrap();
    let path = &files[0].path;
    let text = std::fs::read_to_string(path).unwrap();
    let graph = graph::read(path).unwrap();
    let ran = Ran {
        report,
        totals,
        names,
    };
    (ran, text, graph)
}

/// Returns the number of lines in a graph file that have this key and contain `part`.
pub fn lines(text: &str, key: &str, part: &str) -> usize {
    let key = format!("{{\"{key}\":");
    let matching = text.lines().map(str::trim);
    matching
        .filter(|line| line.starts_with(&key) && line.contains(part))
        .count()
}

/// Runs a definition for a number of seconds, and returns the path of its flows.
pub fn write_flows(
    checked: &corsair_arch::CheckedDefinition,
    directory: &Path,
    format: FlowFormat,
    seconds: u64,
) -> PathBuf {
    write_flows_of(checked, directory, format, seconds, 0)
}

/// The same with a seed.
pub fn write_flows_of(
    checked: &corsair_arch::CheckedDefinition,
    directory: &Path,
    format: FlowFormat,
    seconds: u64,
    seed: u64,
) -> PathBuf {
    let topology = Topology::new(checked, Scale::default()).unwrap();
    let config = Config {
        seed,
        ..Config::default()
    };
    let clock = Clock::Virtual(config.progress.clone());
    let mut settings = Settings::new(topology.arch.clone(), clock);
    settings.kinds = corsair_arch::KINDS;
    settings.operations = topology.operations();
    settings.out = directory.to_owned();
    settings.flows = vec![format];
    let observer = Observer::start(settings).unwrap();
    let plan = Plan {
        duration: Duration::from_secs(seconds),
        recorder: observer.recorder(),
        ..Plan::default()
    };
    simulate(Executor::Virtual, &config, topology, &plan).unwrap();
    let observed = observer.finish().unwrap();
    observed.files[0].path.clone()
}
