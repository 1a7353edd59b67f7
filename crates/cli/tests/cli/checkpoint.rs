//! Runs that are saved, killed and resumed.

use crate::terminal::{Terminal, refuse, signal};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

/// Returns the fields of a summary that do not depend on the machine.
fn essence(said: &Value) -> Value {
    let mut essence = said.as_object().unwrap().clone();
    essence.retain(|key, _| {
        ![
            "wall",
            "workers",
            "peak",
            "delivered",
            "per_second",
            "files",
        ]
        .iter()
        .any(|part| key.contains(part))
    });
    Value::Object(essence)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the names of the checkpoints in `c`, in order; empty if `c` does not exist.
fn saved(terminal: &Terminal) -> Vec<String> {
    let Ok(entries) = fs::read_dir(terminal.path("c")) else {
        return Vec::new();
    };
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

/// Starts a run in the background, without reading its output.
fn begin(terminal: &Terminal, run: &str) -> Child {
    let mut command = terminal.command(run);
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A run that saves itself to `c` periodically. It takes longer than several checkpoints on any machine.
struct Saving<'a> {
    terminal: &'a Terminal,
    child: Child,
}

impl Saving<'_> {
    fn begin(terminal: &Terminal) -> Saving<'_> {
        let run =
            "-a fsm -p 3000 -d 1000000 --workers 1 --checkpoint-every 50ms --checkpoint-dir c";
        let child = begin(terminal, run);
        Saving { terminal, child }
    }

    /// Waits until there are enough checkpoints, and returns their names.
    fn wait_for(&mut self, enough: impl Fn(&[String]) -> bool) -> Vec<String> {
        loop {
            assert!(self.child.try_wait().unwrap().is_none(), "it has ended");
            let names = saved(self.terminal);
            if enough(&names) {
                return names;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

// Guarantee: core-73.
#[test]
fn a_run_goes_on_with_any_number_of_workers_and_ends_as_it_would_have() {
    let terminal = Terminal::new();
    let expected = essence(&terminal.json("-a fsm -p 3000 -d 4 --seed 5 --workers 2"));
    for (from, to) in [(1, 2), (2, 1), (2, 3)] {
        let run = format!(
            "-a fsm -p 3000 -d 4 --seed 5 --workers {from} --checkpoint-at 1s,2500ms --checkpoint-dir c"
        );
        assert_eq!(essence(&terminal.json(&run)), expected, "saved with {from}");
        let names = saved(&terminal);
        assert!(
            names.iter().all(|name| name.ends_with("-asked")),
            "{names:?}"
        );
        for name in &names[names.len() - 2..] {
            let resumed = terminal.json(&format!("resume c/{name} --workers {to}"));
            assert_eq!(essence(&resumed), expected, "{name} by {to}");
        }
    }
}

// Guarantee: core-73.
#[test]
fn what_was_killed_at_any_moment_goes_on_from_a_whole_checkpoint() {
    let terminal = Terminal::new();
    let run = "-a fsm -p 5000 -d 100 --seed 8 --workers 1 -j --format json";
    let expected = essence(&json(&terminal.succeed(run)));
    let graph = terminal.read("json/fsm.json");
    let mut resumed = 0;
    // The later moments are needed only on machines on which the first checkpoint takes longer.
    for moment in [120, 310, 470, 700, 1_500, 3_000] {
        if moment > 700 && resumed > 0 {
            break;
        }
        let _ = fs::remove_dir_all(terminal.path("c"));
        let _ = fs::remove_dir_all(terminal.path("json"));
        let saving = format!("{run} --checkpoint-every 20ms --checkpoint-dir c");
        let child = begin(&terminal, &saving);
        std::thread::sleep(Duration::from_millis(moment));
        kill(child);
        // Either there is no complete checkpoint yet, or the run resumes.
        let said = terminal.run("resume c --workers 2");
        if said.stdout.is_empty() {
            let none = ["no complete checkpoint", "cannot read c"];
            assert!(
                none.iter().any(|none| said.stderr.contains(none)),
                "{}",
                said.stderr
            );
            continue;
        }
        assert_eq!(
            essence(&json(&said.stdout)),
            expected,
            "killed after {moment} ms"
        );
        assert!(
            terminal.read("json/fsm.json") == graph,
            "killed after {moment} ms"
        );
        resumed += 1;
    }
    assert!(resumed > 0, "no run was killed late enough");
}

#[test]
fn a_signal_saves_the_run_at_once_and_what_was_asked_for_is_kept() {
    let terminal = Terminal::new();
    let mut run = Saving::begin(&terminal);
    let is_asked = |name: &String| name.ends_with("-asked");
    // The run listens for signals before it saves its first checkpoint.
    run.wait_for(|names| !names.is_empty());
    signal("-USR1", &run.child);
    let first = run.wait_for(|names| names.iter().any(is_asked));
    let first = first.into_iter().find(is_asked).unwrap();
    // Later automatic checkpoints replace each other.
    let later = run.wait_for(|names| names.iter().filter(|name| **name > first).count() >= 2);
    kill(run.child);
    assert!(later.contains(&first), "{later:?}");
    assert!(saved(&terminal).contains(&first));
}

// Guarantee: cluster-6.
#[test]
fn two_runs_do_not_save_to_one_directory() {
    let terminal = Terminal::new();
    let mut run = Saving::begin(&terminal);
    run.wait_for(|names| !names.is_empty());
    for second in [
        "-a fsm -p 100 --checkpoint-dir c",
        "resume c --until 900000s",
    ] {
        let refused = terminal.refuse(second);
        assert!(
            refused.contains("another run saves its checkpoints in "),
            "{refused}"
        );
    }
    kill(run.child);
    let refused = terminal.refuse("-a fsm -p 100 --checkpoint-dir c");
    assert!(
        refused.contains("c has checkpoints of another run"),
        "{refused}"
    );
    terminal.succeed("-a fsm -p 100 --checkpoint-dir d");
}

/// Returns all files below a directory with their contents, by path.
fn tree(terminal: &Terminal, directory: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut directories = vec![terminal.path(directory)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => directories.push(path),
                false => found.push((path.clone(), fs::read(path).unwrap())),
            }
        }
    }
    found.sort();
    found
}

/// Returns the path of the only branch below `c`.
fn branch(terminal: &Terminal) -> String {
    let mut names = saved(terminal);
    names.retain(|name| name.starts_with("branch-"));
    assert_eq!(names.len(), 1, "{names:?}");
    format!("c/{}", names[0])
}

#[test]
fn a_branch_is_saved_in_a_directory_of_its_own_and_its_run_stays_as_it_is() {
    for change in ["--set load=300%", "--seed-from-here 7"] {
        let terminal = Terminal::new();
        let run = "-a lamp -d 4 --seed 5 --load 100/s --checkpoint-at 1s,2s --checkpoint-dir c";
        let trunk = essence(&terminal.json(run));
        let before = tree(&terminal, "c");
        let branched = essence(&terminal.json(&format!("resume c/000001-asked {change}")));
        assert_ne!(branched, trunk);
        let branch = branch(&terminal);
        let ours = |(path, _): &(PathBuf, _)| !path.starts_with(terminal.path(&branch));
        let after: Vec<_> = tree(&terminal, "c").into_iter().filter(ours).collect();
        assert!(
            after == before,
            "{change} has changed the run's checkpoints"
        );
        assert_eq!(essence(&terminal.json("resume c")), trunk, "{change}");
        // The branch was saved at 2 s, and resumes from there.
        assert_eq!(
            essence(&terminal.json(&format!("resume {branch}"))),
            branched
        );
        let refused = terminal.refuse(&format!("resume c {change} --checkpoint-dir c"));
        assert!(refused.contains("checkpoints of another run"), "{refused}");
    }
}

#[test]
fn checkpoints_that_a_branch_makes_by_the_clock_do_not_push_out_those_of_its_run() {
    let terminal = Terminal::new();
    let mut run = Saving::begin(&terminal);
    run.wait_for(|names| names.len() >= 2);
    kill(run.child);
    let before = saved(&terminal);
    let newest = before.last().unwrap();
    let resume = format!("resume c/{newest} --seed-from-here 7 --workers 1");
    let mut run = Saving {
        child: begin(&terminal, &resume),
        terminal: &terminal,
    };
    let names = run.wait_for(|names| names.iter().any(|name| name.starts_with("branch-")));
    let branch = names.iter().find(|name| name.starts_with("branch-"));
    let place = terminal.path("c").join(branch.unwrap());
    while fs::read_dir(&place).map_or(0, Iterator::count) < 3 {
        assert!(run.child.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    kill(run.child);
    let mut after = saved(&terminal);
    after.retain(|name| !name.starts_with("branch-"));
    assert_eq!(after, before);
}

#[test]
fn a_branch_leaves_the_files_of_its_run_as_they_are() {
    let terminal = Terminal::new();
    let run = "-a lamp -d 4 --seed 5 --load 100/s -j -g -c --timeline t.csv --per-actor p.csv \
               --out o --checkpoint-at 1s --checkpoint-dir c";
    terminal.succeed(run);
    let before = [
        tree(&terminal, "o"),
        files_of(&terminal, ["t.csv", "p.csv"]),
    ];
    terminal.succeed("resume c --set load=300%");
    let after = [
        tree(&terminal, "o"),
        files_of(&terminal, ["t.csv", "p.csv"]),
    ];
    assert!(
        after == before,
        "the branch has changed the files of the run"
    );
    let own = tree(&terminal, &branch(&terminal));
    let written = own.len();
    assert_eq!(
        written,
        before.iter().map(Vec::len).sum::<usize>(),
        "{own:?}"
    );
    let table = |files: &[(PathBuf, Vec<u8>)]| {
        let table = files.iter().find(|(path, _)| path.ends_with("t.csv"));
        table.unwrap().1.clone()
    };
    assert_ne!(table(&own), table(&before[1]));
    terminal.succeed("resume c --set load=300% --out elsewhere");
    assert_eq!(tree(&terminal, "elsewhere").len(), written);
    assert_eq!(tree(&terminal, "o"), before[0]);
}

fn files_of<const N: usize>(terminal: &Terminal, names: [&str; N]) -> Vec<(PathBuf, Vec<u8>)> {
    let file = |name: &str| (terminal.path(name), fs::read(terminal.path(name)).unwrap());
    names.map(file).into()
}

#[test]
fn another_build_is_refused_with_both() {
    let terminal = Terminal::new();
    let path = checkpoint(&terminal).join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let start = text.find("{\"format\"").unwrap();
    let end = text.rfind(",\"crc32\"").unwrap();
    let build = text.find("\"build\":\"").unwrap() + 9;
    let manifest = format!(
        "{}00000000deadbeef{}",
        &text[start..build],
        &text[build + 16..end]
    );
    let crc32 = crc32fast::hash(manifest.as_bytes());
    fs::write(
        &path,
        format!("{{\"manifest\":{manifest},\"crc32\":{crc32}}}"),
    )
    .unwrap();
    let said = terminal.refuse("resume c");
    let both = said.contains("build 00000000deadbeef") && said.contains(&text[build..build + 16]);
    assert!(both, "{said}");
}

#[test]
fn a_time_to_save_at_that_the_run_does_not_reach_is_reported() {
    let terminal = Terminal::new();
    for run in ["-a lamp -d 1", "-a fsm -p 200 -d 1"] {
        let run = format!(
            "{run} --checkpoint-at 500ms,100s --checkpoint-dir c-{}",
            &run[3..6]
        );
        let said = terminal.run(&run).stderr;
        assert!(
            said.contains("--checkpoint-at 1m40s: nothing was saved then"),
            "{said}"
        );
        assert!(!said.contains("500ms"), "{said}");
    }
}

#[test]
fn a_run_that_is_to_stop_tells_what_has_happened_until_then() {
    let terminal = Terminal::new();
    terminal.succeed("-a fsm -p 200 -d 4 --checkpoint-at 1s --checkpoint-dir c");
    let until = terminal.json("resume c --until 2s");
    let later = terminal.json("resume c --until 3s");
    assert_ne!(until["digest"], later["digest"]);
    let said = terminal.refuse("resume c --until 500ms");
    assert!(
        said.contains("--until") && said.contains("does not go back"),
        "{said}"
    );
}

#[test]
fn another_seed_from_here_is_another_run_that_repeats_itself() {
    let terminal = Terminal::new();
    let trunk = terminal.json("-a fsm -p 300 -d 4 --checkpoint-at 1s --checkpoint-dir c");
    let branch =
        |seed: u32| terminal.json(&format!("resume c --seed-from-here {seed}"))["digest"].clone();
    assert_eq!(branch(7), branch(7));
    assert_ne!(branch(7), branch(8));
    assert_eq!(branch(0), trunk["digest"]);
}

/// Returns the path of the only checkpoint.
fn checkpoint(terminal: &Terminal) -> PathBuf {
    terminal.succeed("-a fsm -p 200 -d 2 --workers 2 --checkpoint-at 1s --checkpoint-dir c");
    terminal.path("c").join("000001-asked")
}

#[test]
fn a_file_that_was_cut_or_changed_is_refused_by_its_name() {
    let terminal = Terminal::new();
    let place = checkpoint(&terminal);
    for name in ["head", "part-0001", "part-0002", "manifest.json"] {
        let path = place.join(name);
        let good = fs::read(&path).unwrap();
        let middle = good.len() / 2;
        fs::write(&path, &good[..middle]).unwrap();
        assert!(terminal.refuse("resume c").contains(name), "{name} cut");
        let mut bad = good.clone();
        bad[middle] ^= 4;
        fs::write(&path, &bad).unwrap();
        assert!(terminal.refuse("resume c").contains(name), "{name} changed");
        fs::remove_file(&path).unwrap();
        let said = terminal.refuse("resume c");
        assert!(
            said.contains(name) || said.contains("no complete checkpoint"),
            "{said}"
        );
        fs::write(&path, &good).unwrap();
    }
    terminal.succeed("resume c");
}

#[test]
fn another_version_is_refused_with_both() {
    let terminal = Terminal::new();
    let path = checkpoint(&terminal).join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let ours = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    let start = text.find("{\"format\"").unwrap();
    let end = text.rfind(",\"crc32\"").unwrap();
    let manifest = text[start..end].replacen(&ours, "\"version\":\"99.0.0\"", 1);
    let crc32 = crc32fast::hash(manifest.as_bytes());
    fs::write(
        &path,
        format!("{{\"manifest\":{manifest},\"crc32\":{crc32}}}"),
    )
    .unwrap();
    let said = terminal.refuse("resume c");
    let both = said.contains("corsair 99.0.0") && said.contains(env!("CARGO_PKG_VERSION"));
    assert!(both, "{said}");
}

#[test]
fn what_cannot_be_saved_is_refused_with_what_to_leave_out() {
    for (flags, said) in [
        ("-a lamp --checkpoint-every 1s -n", "-n"),
        (
            "-a lamp --checkpoint-every 1s --zipkin localhost:1",
            "--zipkin",
        ),
        ("-a fsm --checkpoint-at 1s --form async", "--form async"),
        (
            "-a fsm --checkpoint-dir c --executor tokio -d 0",
            "--executor",
        ),
        ("-a fsm --checkpoint-every 0s", "--checkpoint-every"),
        ("-a fsm --checkpoint-every 1GB", "this run writes none"),
        ("-a fsm --checkpoint-at soon", "--checkpoint-at"),
        ("resume nowhere", "nowhere"),
    ] {
        let refused = refuse(flags);
        assert!(refused.contains(said), "{flags}: {refused}");
    }
}

#[test]
fn where_it_cannot_be_written_the_run_goes_on_and_says_so() {
    let terminal = Terminal::new();
    terminal.write("c", "in the way");
    let said = terminal.run("-a fsm -p 200 -d 2 --checkpoint-at 1s --checkpoint-dir c");
    assert!(
        said.stderr.contains("--checkpoint-dir: cannot write"),
        "{}",
        said.stderr
    );
    assert!(said.stdout.contains("digest"), "{}", said.stdout);
}

/// Returns all files below these directories, by name.
fn files(terminal: &Terminal, below: &[&str]) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for directory in below {
        let entries = fs::read_dir(terminal.path(directory)).unwrap();
        for entry in entries.map(|entry| entry.unwrap()) {
            let name = entry.file_name().into_string().unwrap();
            let is_hidden = name.starts_with('.');
            assert!(!is_hidden, "{directory}/{name} was left behind");
            files.push((
                format!("{directory}/{name}"),
                fs::read(entry.path()).unwrap(),
            ));
        }
    }
    files.sort();
    files
}

// Guarantee: core-73.
#[test]
fn all_files_of_an_architecture_go_on_without_a_gap_or_a_duplicate() {
    let terminal = Terminal::new();
    let below = ["json", "gml", "json_metrics", "csv_metrics", "times"];
    fs::create_dir(terminal.path("times")).unwrap();
    let run = "-a netflixoss -w 2 -d 2 --seed 4 -j -g -c --flow-format all \
               --timeline times/t.csv,times/t.svg --interval 100ms --per-actor times/p.csv";
    let expected = essence(&terminal.json(&format!("{run} --workers 1")));
    let written = files(&terminal, &below);
    assert!(written.len() > 12, "{:?}", written.len());
    terminal.json(&format!(
        "{run} --workers 2 --checkpoint-at 100ms,700ms,1300ms,2500ms,2900ms --checkpoint-dir c"
    ));
    assert!(files(&terminal, &below) == written, "saving changes files");
    let names = saved(&terminal);
    assert!(names.len() > 3, "{names:?}");
    for (place, name) in names.iter().enumerate() {
        for directory in &below[..4] {
            fs::remove_dir_all(terminal.path(directory)).unwrap();
        }
        let workers = 1 + place % 3;
        let resumed = terminal.json(&format!("resume c/{name} --workers {workers}"));
        assert_eq!(essence(&resumed), expected, "{name} by {workers}");
        for ((file, now), (_, before)) in files(&terminal, &below).iter().zip(&written) {
            assert!(now == before, "{file} of {name} by {workers}");
        }
        assert_eq!(files(&terminal, &below).len(), written.len(), "{name}");
    }
}

// Guarantee: core-73.
#[test]
fn a_log_of_messages_goes_on_behind_the_line_that_is_named() {
    let terminal = Terminal::new();
    for run in ["-a fsm -p 50 -d 2 --seed 4 -m", "-a lamp -d 1 --seed 4 -m"] {
        let _ = fs::remove_dir_all(terminal.path("c"));
        let stages = ["fsm: Delivered", "fsm: Shutdown", "fsm: Exit"];
        let is_logged = |line: &&str| {
            line.starts_with(|c: char| c.is_ascii_digit())
                || stages.iter().any(|stage| line.starts_with(stage))
        };
        let all = terminal.succeed(run);
        let all: Vec<&str> = all.lines().filter(is_logged).collect();
        terminal.succeed(&format!("{run} --checkpoint-at 500ms --checkpoint-dir c"));
        let said = terminal.run("resume c --workers 2");
        let line = said.stdout.lines().find_map(|line| {
            let (_, rest) = line.split_once("continues after its line ")?;
            rest.split_whitespace().next()?.parse::<usize>().ok()
        });
        let line = line.unwrap_or_else(|| panic!("{}{}", said.stdout, said.stderr));
        let rest: Vec<&str> = said.stdout.lines().filter(is_logged).collect();
        assert!(line > 0 && !rest.is_empty());
        assert_eq!(rest, all[line..], "{run}");
    }
}

// Guarantee: core-74.
#[test]
fn an_architecture_that_has_changed_since_it_was_saved_is_refused() {
    let terminal = Terminal::new();
    let definition = |work: &str| {
        format!(
            r#"{{"arch": "x", "services": [
            {{"name": "www", "package": "denominator", "count": 1, "regions": 0, "dependencies": ["db"]}},
            {{"name": "db", "package": "store", "count": 3, "regions": 1, "service_time": "{work}"}}]}}"#
        )
    };
    terminal.write("x_arch.json", &definition("2ms"));
    terminal.succeed("-a ./x_arch.json -d 1 --checkpoint-at 500ms --checkpoint-dir c");
    terminal.write("x_arch.json", &definition("3ms"));
    let said = terminal.run("resume c");
    assert!(
        said.stderr.contains("has changed since the run was saved"),
        "{}",
        said.stderr
    );
    terminal.write("x_arch.json", &definition("2ms"));
    terminal.succeed("resume c");
}

/// Saves a run at 1 s of 2, with a load, an entry point, and a service with work.
fn saved_service() -> Terminal {
    let terminal = Terminal::new();
    let definition = r#"{"arch": "x",
        "load": { "www": { "rate": 200, "arrivals": "poisson", "requests": { "web.get": 1 } } },
        "services": [
        {"name": "www", "package": "denominator", "count": 1, "regions": 0, "dependencies": ["web"]},
        {"name": "web", "package": "service", "count": 3, "regions": 1, "concurrency": 2,
         "endpoints": [{"name": "get", "steps": [{"work": "2ms"}]}]}]}"#;
    terminal.write("x_arch.json", definition);
    terminal.succeed("-a ./x_arch.json -d 4 --seed 3 --checkpoint-at 1s --checkpoint-dir c");
    terminal
}

// Guarantee: core-75.
#[test]
fn what_is_set_counts_from_there_on() {
    let terminal = saved_service();
    let requests = |flags: &str| {
        let said = terminal.json(&format!("resume c {flags}"));
        said["requests"]
            .as_u64()
            .unwrap_or_else(|| panic!("{said}"))
    };
    let as_saved = requests("");
    // The load is doubled in three of four seconds.
    for set in ["load=200%", "load.www.rate=400"] {
        let more = requests(&format!("--set {set}"));
        let factor = more as f64 / as_saved as f64;
        assert!((factor - 1.75).abs() < 0.15, "{set}: {factor}");
        assert_eq!(requests(&format!("--set {set} --workers 3")), more, "{set}");
    }
    let slower = terminal.json("resume c --set services.web.endpoints.get.steps.0.work=9ms");
    assert_eq!(slower["requests"].as_u64(), Some(as_saved));
    let killed = r#"resume c --set services.web.faults=[{"kind":"kill","at":"2s","for":"1s"}]"#;
    let killed = terminal.json(killed);
    assert!(killed["errors"].as_u64() > Some(100), "{killed}");
    for (set, said) in [
        ("services.wbe.concurrency=3", "did you mean web?"),
        ("services.web.concurency=3", "concurrency"),
        ("services.web.count=6", "cannot be changed in a resumed run"),
        ("load=many%", "many"),
        (
            r#"services.web.faults=[{"kind":"kill","at":"1ms"}]"#,
            "give a later time",
        ),
    ] {
        let refused = terminal.refuse(&format!("resume c --set {set}"));
        assert!(refused.contains(said), "{set}: {refused}");
    }
}

#[test]
fn a_run_with_changed_fields_is_not_saved_because_its_checkpoint_would_not_have_them() {
    let terminal = saved_service();
    terminal.succeed("-a ./x_arch.json -d 4 --seed 3 --checkpoint-at 1s,3s --checkpoint-dir c");
    let before = saved(&terminal);
    let set = format!("resume c/{} --set services.web.concurrency=3", before[1]);
    terminal.succeed(&set);
    assert_eq!(saved(&terminal), before, "it was to be saved at 3 s again");
    let refused = terminal.refuse(&format!("{set} --checkpoint-at 2s"));
    assert!(refused.contains("--checkpoint-at and --set"), "{refused}");
    // A change of the load by a percentage is part of the state.
    let more = terminal.json(&format!(
        "resume c/{} --set load=200% --checkpoint-at 2s --checkpoint-dir d",
        before[1]
    ));
    assert_eq!(essence(&terminal.json("resume d")), essence(&more));
}

// Guarantee: core-75.
#[test]
fn branches_of_a_saved_run_are_compared_with_it() {
    let terminal = saved_service();
    terminal.write(
        "branches",
        "# what if\nsame: services.web.concurrency=2\nmore: load=200%\nslow: services.web.endpoints.get.steps.0.work=4ms load=100%\n",
    );
    let fork = "fork c --branches branches --seeds 4";
    let said: Value = json(&terminal.succeed(&format!("{fork} --format json")));
    let row = |branch: &str, name: &str| {
        let rows = said[branch].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name);
        row.unwrap().clone()
    };
    assert_eq!(row("same", "mean_seconds")["difference"], 0.0);
    let more = row("more", "requests");
    assert_eq!(more["is_clear"], true, "{more}");
    let factor = more["b"].as_f64().unwrap() / more["a"].as_f64().unwrap();
    assert!((factor - 2.0).abs() < 0.2, "{more}");
    let slow = row("slow", "mean_seconds");
    assert!(slow["difference"].as_f64() > Some(0.0015), "{slow}");
    let table = terminal.succeed(&format!("{fork} --workers 1"));
    assert!(table.contains("as saved") && table.contains('*'), "{table}");
    for (branches, said) in [
        ("", "has no branches"),
        ("more: laod=200%", "--branches: more"),
        ("a: load=1%\na: load=2%", "two branches 'a'"),
        ("nameless", ":1"),
    ] {
        terminal.write("branches", branches);
        let refused = terminal.refuse(fork);
        assert!(refused.contains(said), "{branches}: {refused}");
    }
    let endless = terminal.refuse("fork c --branches /dev/zero");
    assert!(endless.contains("more than 64 MiB"), "{endless}");
}

#[test]
fn loops_caches_pools_and_breakers_that_change_in_a_branch_count_from_there_on() {
    let terminal = Terminal::new();
    let definition = r#"{"arch": "x",
        "load": {"www": {"users": 20, "think": {"exponential": "20ms"}, "requests": {"web.get": 1}}},
        "services": [
        {"name": "www", "package": "denominator", "count": 1, "regions": 0, "dependencies": ["web"]},
        {"name": "web", "package": "service", "count": 2, "regions": 1, "concurrency": 30, "dependencies": ["db"],
         "calls": {"db": {"connections": {"most": 8, "waiting": 50, "connect": "1ms"},
                          "breaker": {"failures": 0.5, "window": 20, "open": "100ms"}}},
         "endpoints": [{"name": "get", "steps": [{"cache": {"hit_rate": 0.5}, "miss": [{"call": "db.query"}]}]}]},
        {"name": "db", "package": "service", "count": 1, "regions": 1, "concurrency": 8, "error_rate": 0.1,
         "endpoints": [{"name": "query", "steps": [{"work": "5ms"}]}]}]}"#;
    terminal.write("x_arch.json", definition);
    terminal.succeed("-a ./x_arch.json -d 4 --seed 3 --checkpoint-at 2s --checkpoint-dir c");
    terminal.write(
        "branches",
        "same: load.www.users=20\nusers: load.www.users=60\nthink: load.www.think=200ms\n\
         cache: services.web.endpoints.get.steps.0.cache.hit_rate=0.95\n\
         pool: services.web.calls.db.connections.most=1\n\
         breaker: services.web.calls.db.breaker.failures=0.05\n",
    );
    let fork = |flags: &str| {
        let fork = format!("fork c --branches branches --seeds 3 --format json {flags}");
        let said = json(&terminal.succeed(&fork));
        move |branch: &str, name: &str| {
            let rows = said[branch].as_array().unwrap();
            let row = rows.iter().find(|row| row["name"] == name).unwrap();
            (row["a"].as_f64().unwrap(), row["b"].as_f64().unwrap())
        }
    };
    for (flags, seconds) in [("", 2.0), ("--until 2500ms", 0.5)] {
        let measured = fork(flags);
        let (requests, same) = measured("same", "requests");
        assert_eq!(requests, same);
        // 20 users, each of whom sends a request every 24 ms.
        assert!(
            (requests / seconds / 830.0 - 1.0).abs() < 0.1,
            "{requests} in {seconds} s"
        );
        let ratio = |branch, name| {
            let (saved, changed) = measured(branch, name);
            changed / saved
        };
        let users = ratio("users", "throughput");
        assert!((2.6..3.3).contains(&users), "{users}");
        let think = ratio("think", "throughput");
        assert!((0.08..0.2).contains(&think), "{think}");
        let cache = ratio("cache", "mean_seconds");
        assert!(cache < 0.6, "{cache}");
        let pool = ratio("pool", "p99_seconds");
        assert!(
            pool > 2.0,
            "connections beyond the new limit are closed: {pool}"
        );
        let breaker = ratio("breaker", "errors");
        assert!(breaker > 2.0, "{breaker}");
    }
}
