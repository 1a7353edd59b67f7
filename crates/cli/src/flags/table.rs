//! The flags: one entry for each, in the order of the help.

use super::{Flag, Group, ServicesOnly, Value};

/// The base of the entries of [`FLAGS`]. Each entry states only the fields in which it differs.
const PLAIN: Flag = Flag {
    name: "",
    letter: None,
    value: Value::Switch,
    default: "",
    group: Group::Simulation,
    help: "",
    shapes: false,
    services_only: None,
};

/// Every flag, in the order of the help.
pub static FLAGS: &[Flag] = &[
    Flag {
        name: "arch",
        letter: Some('a'),
        value: Value::One("NAME"),
        default: "netflixoss",
        help: "Architecture: fsm, migration, a built-in or one in json_arch/",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "population",
        letter: Some('p'),
        value: Value::One("N"),
        default: "100",
        help: "Number of pirates; for other architectures, percentage of instances",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "duration",
        letter: Some('d'),
        value: Value::One("SECONDS"),
        default: "10",
        help: "Duration of the talk or the load, in seconds or with a unit: 500ms, 1m30s",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "kv",
        value: Value::One("KEY:VALUE"),
        help: "Tuning: chat:10ms lets every pirate or entry point talk with this period",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "load",
        value: Value::One("LOAD|FILE"),
        help: "Load: \"poisson 200/s\", \"users 50 think 1s\", a .json or .csv file",
        shapes: true,
        services_only: Some(ServicesOnly {
            what: "a load",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "sized",
        help: "Give illustrative times and slots to services without any",
        shapes: true,
        services_only: Some(ServicesOnly {
            what: "sizes of services",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "reload",
        letter: Some('r'),
        value: Value::Optional("FILE"),
        help: "Start from the graph in json/<arch><step>.json, or in FILE (--reload FILE)",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "regions",
        letter: Some('w'),
        value: Value::One("N"),
        default: "1",
        help: "Regions to replicate the architecture into; ignored for pirates",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "region-names",
        value: Value::One("NAMES"),
        help: "Names of the regions: here,there [default: six regions of AWS]",
        shapes: true,
        services_only: Some(ServicesOnly {
            what: "regions",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "zone-names",
        value: Value::One("NAMES"),
        help: "Names of each region's zones [default: zoneA,zoneB,zoneC]",
        shapes: true,
        services_only: Some(ServicesOnly {
            what: "zones",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "ip-ranges",
        value: Value::One("RANGES"),
        help: "Address ranges of each region's zones: 10.1,10.2;10.3,10.4",
        shapes: true,
        services_only: Some(ServicesOnly {
            what: "addresses",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "stopstep",
        letter: Some('s'),
        value: Value::One("N"),
        default: "0",
        help: "Step of -a migration, 0 to 9; otherwise a number in file names",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "eurekapoll",
        letter: Some('u'),
        value: Value::One("DURATION"),
        default: "1s",
        help: "Period with which services poll their registry",
        shapes: true,
        services_only: Some(ServicesOnly {
            what: "service registries",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "seed",
        value: Value::One("N"),
        default: "0",
        help: "Seed of all random numbers; the same seed gives the same run",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "executor",
        value: Value::Word(&["virtual", "tokio", "threads", "pool"]),
        default: "virtual",
        group: Group::Execution,
        help: "Virtual time, or the wall clock: tasks, a thread per actor, a thread pool",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "form",
        value: Value::Word(&["async", "handler"]),
        default: "handler",
        group: Group::Execution,
        help: "Run pirates as async bodies or as handlers; the result is the same",
        ..PLAIN
    },
    Flag {
        name: "cpus",
        value: Value::One("N"),
        group: Group::Execution,
        help: "Worker threads [default: one per core; fewer for few actors in virtual time]",
        ..PLAIN
    },
    Flag {
        name: "workers",
        value: Value::One("N"),
        group: Group::Execution,
        help: "Alias of -cpus",
        ..PLAIN
    },
    Flag {
        name: "latency",
        value: Value::One("TIME|MIN..MAX"),
        group: Group::Execution,
        help: "Latency of messages: 2ms, 1ms..5ms [default: 1.05ms..2.1ms; services: by place]",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "lookahead",
        value: Value::One("TIME"),
        group: Group::Execution,
        help: "Width of the windows of virtual time [default: the smallest latency]",
        ..PLAIN
    },
    Flag {
        name: "end",
        value: Value::One("TIME"),
        group: Group::Execution,
        help: "Fail if the run goes past this time",
        ..PLAIN
    },
    Flag {
        name: "mailbox",
        value: Value::One("N"),
        default: "256",
        group: Group::Execution,
        help: "Capacity of a mailbox, in events (tokio, threads, pool)",
        ..PLAIN
    },
    Flag {
        name: "overflow",
        value: Value::Word(&["block", "drop_newest", "drop_oldest", "fail"]),
        default: "block",
        group: Group::Execution,
        help: "Policy for a full mailbox",
        ..PLAIN
    },
    Flag {
        name: "ui",
        value: Value::Optional("ADDRESS"),
        group: Group::Execution,
        help: "Control the run in the browser, at a free port or ADDRESS (--features ui)",
        ..PLAIN
    },
    Flag {
        name: "open",
        group: Group::Execution,
        help: "With --ui: open the browser",
        ..PLAIN
    },
    Flag {
        name: "replay",
        value: Value::One("FILE"),
        group: Group::Execution,
        help: "Replay a session saved with --ui, and compare digests",
        ..PLAIN
    },
    Flag {
        name: "checkpoint-every",
        value: Value::One("TIME|SIZE"),
        group: Group::Execution,
        help: "Save the run periodically: every 10s, or after every 1GB of output",
        ..PLAIN
    },
    Flag {
        name: "checkpoint-at",
        value: Value::One("TIME,…"),
        group: Group::Execution,
        help: "Save the run at these points of virtual time",
        ..PLAIN
    },
    Flag {
        name: "checkpoint-dir",
        value: Value::One("DIR"),
        default: "checkpoints",
        group: Group::Execution,
        help: "Directory of the checkpoints; given alone, SIGUSR1 saves the run",
        ..PLAIN
    },
    Flag {
        name: "processes",
        value: Value::One("N"),
        group: Group::Processes,
        help: "Start N processes on this machine with mpirun (--features mpi)",
        ..PLAIN
    },
    Flag {
        name: "mpi",
        group: Group::Processes,
        help: "Run as one of the processes that mpirun, SLURM or Kubernetes has started (--features mpi)",
        ..PLAIN
    },
    Flag {
        name: "window-within",
        value: Value::One("TIME"),
        group: Group::Processes,
        help: "Maximum wait for other processes at the end of a window [default: 300s]",
        ..PLAIN
    },
    Flag {
        name: "strict",
        group: Group::Execution,
        help: "Treat messages to ended actors, and actors left waiting, as errors",
        ..PLAIN
    },
    Flag {
        name: "graphjson",
        letter: Some('j'),
        group: Group::Output,
        help: "Write nodes and edges to json/<arch><step>.json (GraphJSON 0.4)",
        ..PLAIN
    },
    Flag {
        name: "msglog",
        letter: Some('m'),
        group: Group::Output,
        help: "Print every message in order of time",
        ..PLAIN
    },
    Flag {
        name: "graphml",
        letter: Some('g'),
        group: Group::Output,
        help: "Write nodes and edges to gml/<arch><step>.graphml and .gexf",
        ..PLAIN
    },
    Flag {
        name: "neo4j",
        letter: Some('n'),
        group: Group::Output,
        help: "Write nodes, edges and (with -c) flows to Neo4j, with the password NEO4JPASSWORD",
        ..PLAIN
    },
    Flag {
        name: "neo4jurl",
        value: Value::One("URL"),
        group: Group::Output,
        help: "Address of Neo4j [default: NEO4JURL, or localhost:7474]",
        ..PLAIN
    },
    Flag {
        name: "collect",
        letter: Some('c'),
        group: Group::Output,
        help: "Write histograms of response times (csv_metrics/) and flows (json_metrics/)",
        services_only: Some(ServicesOnly {
            what: "flows and histograms",
            instead: "leave it out, or use --per-actor FILE for the totals of every actor",
        }),
        ..PLAIN
    },
    Flag {
        name: "kafka",
        letter: Some('k'),
        value: Value::One("HOST:PORT,…"),
        group: Group::Output,
        help: "Send flows to Kafka: one or several brokers of a cluster",
        services_only: Some(ServicesOnly {
            what: "Kafka",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "flow-format",
        value: Value::One("FORMATS"),
        group: Group::Output,
        help: "Write flows as zipkin1,zipkin2,otlp or all [with -c: zipkin1]",
        services_only: Some(ServicesOnly {
            what: "flows",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "otlp",
        value: Value::One("URL"),
        group: Group::Output,
        help: "Send flows to a collector by OTLP/JSON, as to http://localhost:4318",
        services_only: Some(ServicesOnly {
            what: "flows",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "zipkin",
        value: Value::One("URL"),
        group: Group::Output,
        help: "Send flows to a Zipkin server, as to http://localhost:9411",
        services_only: Some(ServicesOnly {
            what: "flows",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "metrics",
        value: Value::One("ADDRESS"),
        group: Group::Output,
        help: "Serve response times to Prometheus during the run: 127.0.0.1:9090",
        services_only: Some(ServicesOnly {
            what: "response times of services",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "timeline",
        value: Value::One("FILE,…"),
        group: Group::Output,
        help: "Write a time series by service and zone: a .csv, a .svg, or both",
        services_only: Some(ServicesOnly {
            what: "a time series of services",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "interval",
        value: Value::One("TIME"),
        group: Group::Output,
        help: "Interval of --timeline [default: a hundredth of the run]",
        services_only: Some(ServicesOnly {
            what: "a time series of services",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "filter",
        letter: Some('f'),
        group: Group::Output,
        help: "Collapse instances into services in graphs",
        services_only: Some(ServicesOnly {
            what: "collapsing instances",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "format",
        value: Value::Word(&["text", "json"]),
        default: "text",
        group: Group::Output,
        help: "Output on stdout: text, or one JSON object",
        ..PLAIN
    },
    Flag {
        name: "arch-dir",
        value: Value::One("DIR"),
        default: "json_arch",
        help: "Directory of definitions, NAME_arch.json",
        ..PLAIN
    },
    Flag {
        name: "out",
        value: Value::One("DIR"),
        default: ".",
        group: Group::Output,
        help: "Directory below which json/, gml/, json_metrics/ and csv_metrics/ are written",
        ..PLAIN
    },
    Flag {
        name: "epoch",
        value: Value::One("DATE|now"),
        group: Group::Output,
        help: "Date of time zero in files [default: 1970-01-01T00:00:00Z; wall clock: now]",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "per-actor",
        value: Value::One("FILE"),
        group: Group::Output,
        help: "Write the messages sent and received by every actor, as CSV",
        ..PLAIN
    },
    Flag {
        name: "cpuprofile",
        value: Value::One("FILE"),
        group: Group::Output,
        help: "Write a CPU profile for `go tool pprof`",
        ..PLAIN
    },
    Flag {
        name: "config",
        value: Value::One("NAME"),
        group: Group::Files,
        help: "Read flags from json/NAME_conf.json or json_arch/NAME_conf.json",
        ..PLAIN
    },
    Flag {
        name: "saveconfig",
        value: Value::Optional("NAME"),
        group: Group::Files,
        help: "Write the flags of this run to json/NAME_conf.json [default: the architecture]",
        ..PLAIN
    },
];
