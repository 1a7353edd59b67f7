//! Tests of sessions: commands, queries, and bit-identical replays.

use corsair::fsm::Fsm;
use corsair::{CancelToken, Config};
use corsair_arch::{Plan, Scale, Topology, read, read_text};
use corsair_view::{
    Control, ExtraCapacity, Handle, Level, Pirates, Recording, Services, Session, SessionRequest,
    StepBy, World, replay,
};
use serde_json::{Map, Value, json};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

fn config(workers: usize) -> Config {
    Config {
        workers: NonZeroUsize::new(workers).unwrap(),
        ..Config::default()
    }
}

fn plan() -> Plan {
    Plan {
        duration: Duration::from_secs(4),
        ..Plan::default()
    }
}

fn netflix(workers: usize) -> Services {
    netflix_with_room(workers, &ExtraCapacity::new()).unwrap()
}

fn netflix_with_room(workers: usize, room: &ExtraCapacity) -> Result<Services, String> {
    let checked = read("netflixoss", Path::new("nowhere")).unwrap();
    let mut topology = Topology::new(&checked, Scale::default()).unwrap();
    topology
        .add_extra_capacity(room)
        .map_err(|error| error.to_string())?;
    Ok(Services::new(&config(workers), topology, &plan()).unwrap())
}

/// An entry point with 200 requests a second, and two instances with a slot each.
fn two() -> Services {
    two_for(4)
}

fn two_for(seconds: u64) -> Services {
    let text = r#"{"arch": "x", "load": {"www": {"rate": 200}}, "services": [
        {"name": "www", "package": "denominator", "regions": 0, "count": 0, "dependencies": ["web"]},
        {"name": "web", "package": "store", "regions": 1, "count": 2, "concurrency": 1,
         "service_time": "2ms"}]}"#;
    let topology = Topology::new(&read_text(text, "x").unwrap(), Scale::default()).unwrap();
    let plan = Plan {
        duration: Duration::from_secs(seconds),
        ..Plan::default()
    };
    Services::new(&config(1), topology, &plan).unwrap()
}

fn pirates(workers: usize) -> Pirates<()> {
    let scenario = Fsm {
        population: 3_000,
        talk: Duration::from_secs(4),
        ..Fsm::default()
    };
    Pirates::new(&config(workers), scenario).unwrap()
}

/// Drives a session from another thread, and returns the result of that thread and the world.
fn session<W: World, T: Send>(
    (session, handle): (Session<W>, Handle),
    drive: impl FnOnce(&mut Handle) -> T + Send,
) -> (T, W) {
    std::thread::scope(|scope| {
        let mut handle = handle;
        let driver = scope.spawn(move || drive(&mut handle));
        let world = session.run(&CancelToken::default());
        (driver.join().unwrap(), world)
    })
}

fn held<W: World>(world: W) -> (Session<W>, Handle) {
    Session::new(world, Map::new(), None)
}

fn try_tell(handle: &Handle, control: Value) -> Result<Value, String> {
    let control: Control = serde_json::from_value(control).expect("a control");
    handle.ask_blocking(SessionRequest::Control(control))
}

fn tell(handle: &Handle, control: Value) {
    try_tell(handle, control).unwrap();
}

fn look(handle: &Handle, query: Value) -> Value {
    handle.ask_blocking(SessionRequest::Look(query)).unwrap()
}

fn until_it_stops(handle: &mut Handle) -> String {
    for _ in 0..6_000 {
        let status = handle.statuses().borrow_and_update().clone();
        if !status.is_playing {
            return status.stopped;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never stops");
}

/// Runs at maximum speed until a time in milliseconds.
fn run_until(handle: &mut Handle, millis: u64) {
    tell(handle, json!({ "speed": null }));
    tell(handle, json!({ "until": { "time": millis * 1_000_000 } }));
    until_it_stops(handle);
}

fn save(handle: &Handle) -> Recording {
    serde_json::from_value(handle.ask_blocking(SessionRequest::Save).unwrap()).unwrap()
}

// Guarantee: arch-12.
#[test]
fn the_replay_has_the_digest_of_the_session_for_any_number_of_workers() {
    let (recording, world) = session(held(netflix(2)), |handle| {
        let _watching = handle.watch();
        run_until(handle, 700);
        for (action, who) in [
            ("kill", "login00"),
            ("pause", "subscriber"),
            ("partition", "us-east-1.zoneB"),
        ] {
            tell(
                handle,
                json!({ "do": { "what": { "do": action, "who": who } } }),
            );
        }
        tell(handle, json!({ "step": "window" }));
        tell(handle, json!({ "step": { "actor": "homepage01" } }));
        let slow = json!({ "do": "slow", "who": "homepage", "percent": 700 });
        tell(handle, json!({ "do": { "what": slow } }));
        run_until(handle, 1_500);
        // The command that is given second is scheduled for the earlier time.
        let load = json!({ "do": "load", "percent": 250 });
        tell(
            handle,
            json!({ "do": { "what": load, "at": 2_200_000_000u64 } }),
        );
        for (action, who) in [
            ("revive", "login00"),
            ("resume", "subscriber"),
            ("rejoin", "us-east-1.zoneB"),
        ] {
            tell(
                handle,
                json!({ "do": { "what": { "do": action, "who": who } } }),
            );
        }
        let scale = json!({ "do": "scale", "service": "login", "count": 2 });
        tell(handle, json!({ "do": { "what": scale } }));
        let send = json!({ "do": "send", "who": "login03", "message": "request" });
        tell(handle, json!({ "do": { "what": send } }));
        tell(handle, json!({ "speed": 50.0 }));
        tell(handle, json!({ "until": { "time": 2_500_000_000u64 } }));
        until_it_stops(handle);
        tell(handle, json!({ "step": { "actor": "login04" } }));
        save(handle)
    });
    let digest = world.finish().unwrap().0.digest;
    assert_eq!(recording.commands.len(), 10);
    for workers in [1, 2, 3] {
        let mut again = netflix(workers);
        replay(&mut again, &recording).unwrap();
        assert_eq!(again.finish().unwrap().0.digest, digest, "{workers}");
    }
    // A replay with a different result is reported.
    let mut wrong = recording.clone();
    wrong.commands.pop();
    let error = replay(&mut netflix(1), &wrong).unwrap_err().to_string();
    assert!(error.contains("the session had"), "{error}");
    assert_ne!(netflix(1).finish().unwrap().0.digest, digest);
}

// Guarantee: arch-12.
#[test]
fn the_same_for_pirates() {
    let (recording, world) = session(held(pirates(1)), |handle| {
        let _watching = handle.watch();
        run_until(handle, 1_000);
        let name = "fsm.atlantic.bermuda.blackbeard7.pirate";
        for message in ["gold 500", "chat 10", "namedrop 12"] {
            let send = json!({ "do": "send", "who": name, "message": message });
            tell(handle, json!({ "do": { "what": send } }));
        }
        run_until(handle, 1_200);
        let seen = look(handle, json!({ "actor": name }));
        assert!(seen["gold"].as_u64() >= Some(500), "{seen}");
        let sent = (0..100).map(|number| {
            let seen = look(handle, json!({ "actor": number.to_string() }));
            seen["sent"].as_u64().unwrap()
        });
        assert!(sent.sum::<u64>() > 10);
        tell(
            handle,
            json!({ "do": { "what": { "do": "kill", "who": "9" } } }),
        );
        run_until(handle, 2_000);
        let density = look(handle, json!({ "density": true }));
        assert_eq!(
            (&density["counted"], &density["of"]),
            (&json!(2_999), &json!(3_000))
        );
        save(handle)
    });
    let (report, tally) = world.finish().unwrap();
    assert_eq!(tally.unwrap().goodbyes, 2_999);
    for workers in [1, 3] {
        let mut again = pirates(workers);
        replay(&mut again, &recording).unwrap();
        assert_eq!(again.finish().unwrap().0.digest, report.digest, "{workers}");
    }
    // Without viewers and commands, the session equals an ordinary run.
    let scenario = Fsm {
        population: 3_000,
        talk: Duration::from_secs(4),
        ..Fsm::default()
    };
    let (plain, _) = corsair::fsm::run(corsair::Executor::Virtual, &config(1), scenario).unwrap();
    assert_eq!(pirates(2).finish().unwrap().0.digest, plain.digest);
}

// Guarantee: arch-12.
#[test]
fn one_goes_back_and_forward_to_the_same_bits() {
    let make = |_: &ExtraCapacity| Ok(netflix(1));
    let with_make = Session::new(netflix(1), Map::new(), Some(Box::new(make)));
    let (digests, _) = session(with_make, |handle| {
        let _watching = handle.watch();
        let mut digests = Vec::new();
        run_until(handle, 500);
        tell(
            handle,
            json!({ "do": { "what": { "do": "kill", "who": "www-elb00" } } }),
        );
        run_until(handle, 900);
        digests.push(save(handle).digest);
        run_until(handle, 1_400);
        tell(handle, json!({ "goto": 900_000_000u64 }));
        let status = handle.statuses().borrow_and_update().clone();
        assert_eq!((status.epoch, status.commands.len()), (1, 1));
        digests.push(save(handle).digest);
        digests
    });
    assert_eq!(digests[0], digests[1]);
    let (refused, _) = session(held(two()), |handle| {
        run_until(handle, 100);
        try_tell(handle, json!({ "goto": 1 })).unwrap_err()
    });
    assert!(refused.contains("cannot go back"), "{refused}");
}

/// Saves a checkpoint, applies a command that is given up, returns to the checkpoint, and continues
/// with other commands.
fn one_branch_is_given_up<W: World>(
    world: W,
    make: impl FnMut(&ExtraCapacity) -> Result<W, String> + Send + 'static,
    (kept, given_up): (Value, Value),
) -> (Recording, W) {
    let held = Session::new(world, Map::new(), Some(Box::new(make)));
    let act = |handle: &Handle, what: &Value| {
        tell(handle, json!({ "do": { "what": what } }));
    };
    session(held, |handle| {
        let _watching = handle.watch();
        run_until(handle, 500);
        act(handle, &kept);
        // This command is still pending when the checkpoint is saved.
        let later = json!({ "do": { "what": kept, "at": 1_500_000_000u64 } });
        tell(handle, later);
        run_until(handle, 900);
        tell(handle, json!("checkpoint"));
        let status = handle.statuses().borrow_and_update().clone();
        let [saved] = &status.checkpoints[..] else {
            panic!("{status:?}");
        };
        assert_eq!((saved.at, saved.commands, saved.number), (0.9, 2, 1));
        assert!(saved.bytes > 1_000, "{saved:?}");
        assert_eq!(Some(&saved.digest), status.digest.as_ref());
        act(handle, &given_up);
        run_until(handle, 1_300);
        tell(handle, json!({ "back": 1 }));
        let status = handle.statuses().borrow_and_update().clone();
        assert_eq!((status.commands.len(), status.epoch), (2, 1));
        assert_eq!(status.digest.as_ref(), Some(&saved.digest));
        // Seeking to a time after the checkpoint restores the checkpoint.
        let mut digests = Vec::new();
        for millis in [1_200, 1_600] {
            run_until(handle, millis);
            digests.push(save(handle).digest);
        }
        run_until(handle, 1_700);
        for (millis, digest) in [1_600u64, 1_200].into_iter().zip(digests.into_iter().rev()) {
            tell(handle, json!({ "goto": millis * 1_000_000 }));
            assert_eq!(save(handle).digest, digest);
        }
        act(handle, &kept);
        run_until(handle, 1_800);
        let recording = save(handle);
        tell(handle, json!({ "forget": 1 }));
        let gone = try_tell(handle, json!({ "back": 1 })).unwrap_err();
        assert_eq!(gone, "there is no checkpoint 1");
        recording
    })
}

// Guarantee: arch-13.
#[test]
fn a_session_that_went_back_to_a_checkpoint_is_the_branch_that_is_kept() {
    let kill = |who: &str| json!({ "do": "kill", "who": who });
    let make = |room: &ExtraCapacity| netflix_with_room(2, room);
    let branches = (kill("login00"), kill("homepage"));
    let (recording, world) = one_branch_is_given_up(netflix(2), make, branches);
    // Seeking to 1.2 s discards the command at 1.5 s.
    assert_eq!(recording.commands.len(), 2, "{:?}", recording.commands);
    let digest = world.finish().unwrap().0.digest;
    for workers in [1, 2, 3] {
        let mut again = netflix(workers);
        replay(&mut again, &recording).unwrap();
        assert_eq!(again.finish().unwrap().0.digest, digest, "{workers}");
    }
    let gold = |message: &str| json!({ "do": "send", "who": "7", "message": message });
    let branches = (gold("gold 500"), kill("7"));
    let make = |_: &ExtraCapacity| Ok(pirates(1));
    let (recording, world) = one_branch_is_given_up(pirates(1), make, branches);
    let (report, tally) = world.finish().unwrap();
    assert_eq!(
        tally.unwrap().goodbyes,
        3_000,
        "the branch in which one was killed is gone"
    );
    for workers in [1, 3] {
        let mut again = pirates(workers);
        replay(&mut again, &recording).unwrap();
        assert_eq!(again.finish().unwrap().0.digest, report.digest, "{workers}");
    }
}

#[test]
fn checkpoints_are_refused_where_one_cannot_go_back_and_beyond_their_number() {
    let (refused, _) = session(held(two()), |handle| {
        try_tell(handle, json!("checkpoint")).unwrap_err()
    });
    assert!(refused.contains("cannot go back"), "{refused}");
    let with_make = Session::new(
        two(),
        Map::new(),
        Some(Box::new(|_: &ExtraCapacity| Ok(two()))),
    );
    let (refused, _) = session(with_make, |handle| {
        run_until(handle, 100);
        for _ in 0..32 {
            tell(handle, json!("checkpoint"));
        }
        let refused = try_tell(handle, json!("checkpoint")).unwrap_err();
        tell(handle, json!({ "forget": 3 }));
        tell(handle, json!("checkpoint"));
        refused
    });
    assert!(refused.contains("delete one first"), "{refused}");
}

// Guarantee: arch-14.
#[test]
fn a_service_is_scaled_beyond_its_definition_and_the_replay_has_room_for_it() {
    let make = |room: &ExtraCapacity| netflix_with_room(2, room);
    let held = Session::new(netflix(2), Map::new(), Some(Box::new(make)));
    let before = held.1.scene().nodes.len();
    let scale = |count: u32| json!({ "do": "scale", "service": "login", "count": count });
    let (recording, world) = session(held, |handle| {
        let _watching = handle.watch();
        run_until(handle, 500);
        let kill = json!({ "do": { "what": { "do": "kill", "who": "login03" } } });
        tell(handle, kill);
        run_until(handle, 700);
        tell(handle, json!("checkpoint"));
        tell(handle, json!({ "do": { "what": scale(23) } }));
        assert_eq!(handle.frames().borrow().now, 0.7, "it is where it was");
        assert_eq!(handle.scene().nodes.len(), before + 5);
        assert!(look(handle, json!({ "actor": "login03" }))["state"]["is_down"] == json!(true));
        assert!(look(handle, json!({ "actor": "login22" }))["state"]["is_away"] == json!(true));
        run_until(handle, 3_000);
        let new = look(handle, json!({ "actor": "login22" }));
        assert_eq!(
            new["state"]["is_away"],
            json!(false),
            "it is in the registries"
        );
        assert!(new["totals"]["requests"].as_u64() > Some(0), "{new}");
        let recording = save(handle);
        // The state that was saved with less capacity cannot be restored, but the commands can be
        // replayed.
        tell(handle, json!({ "back": 1 }));
        assert_eq!(handle.frames().borrow_and_update().now, 0.7);
        run_until(handle, 900);
        tell(handle, json!({ "do": { "what": scale(5) } }));
        recording
    });
    drop(world);
    assert_eq!(
        recording.room,
        ExtraCapacity::from([("login".to_owned(), 23)])
    );
    for workers in [1, 2, 3] {
        let mut again = netflix_with_room(workers, &recording.room).unwrap();
        replay(&mut again, &recording).unwrap();
    }
    // A replay needs the additional capacity, and a session that writes files cannot add capacity.
    assert!(replay(&mut netflix(1), &recording).is_err());
    let (refused, _) = session(self::held(netflix(1)), |handle| {
        try_tell(handle, json!({ "do": { "what": scale(23) } })).unwrap_err()
    });
    assert!(refused.contains("writes files"), "{refused}");
}

#[test]
fn an_actor_shows_all_its_fields() {
    let ((), _) = session(held(netflix(1)), |handle| {
        let _watching = handle.watch();
        run_until(handle, 1_500);
        for node in handle.scene().nodes.clone() {
            let seen = look(handle, json!({ "actor": node.name }));
            let all = &seen["all"];
            assert!(
                all["host"]["queue"].is_object() || all["host"]["queue"].is_array(),
                "{all}"
            );
            assert!(!all["role"].is_null(), "{all}");
            assert!(all.get("unwritten").is_none(), "{}: {all}", node.name);
        }
    });
}

#[test]
fn it_runs_until_what_was_asked_for() {
    let ((), _) = session(held(two()), |handle| {
        tell(handle, json!({ "speed": null }));
        let until = |condition: Value| json!({ "until": { "condition": condition } });
        let ask = |measure: &str, of: &str, above: f64| {
            until(json!({ "measure": measure, "of": of, "above": above }))
        };
        run_until(handle, 500);
        tell(
            handle,
            json!({ "do": { "what": { "do": "slow", "who": "web", "percent": 500 } } }),
        );
        tell(handle, ask("p99", "web", 0.012));
        assert_eq!(until_it_stops(handle), "p99 of web is above 0.012 s");
        let state = until(json!({
            "measure": "state", "who": "web00", "pointer": "/state/queue", "above": 3
        }));
        tell(handle, state);
        until_it_stops(handle);
        let queue = look(handle, json!({ "actor": "web00" }))["state"]["queue"].clone();
        assert_eq!(queue, json!(4), "it stops as soon as it is so");
        tell(handle, ask("queue", "all", 10.0));
        until_it_stops(handle);
        tell(
            handle,
            json!({ "do": { "what": { "do": "kill", "who": "web00" } } }),
        );
        tell(handle, ask("errors", "all", 0.0));
        assert_eq!(until_it_stops(handle), "all has more than 0 errors");
        assert!(handle.frames().borrow().now < 2.0);
        tell(handle, until(json!({ "measure": "dead", "above": 0 })));
        assert_eq!(until_it_stops(handle), "the run is over");
        let wrong = try_tell(handle, json!("play")).unwrap_err();
        assert_eq!(wrong, "the run is over");
    });
}

#[test]
fn steps_are_as_long_as_they_say() {
    let ((), _) = session(held(two()), |handle| {
        let now = |handle: &mut Handle| handle.frames().borrow_and_update().now;
        let settle = || std::thread::sleep(Duration::from_millis(150));
        run_until(handle, 300);
        settle();
        assert_eq!(now(handle), 0.3);
        tell(handle, json!({ "step": { "nanos": 1_000_000 } }));
        settle();
        assert_eq!(now(handle), 0.301);
        let _watching = handle.watch();
        settle();
        let newest = |handle: &Handle| {
            let state = look(handle, json!({ "actor": "web01" }));
            state["messages"][0]["at"].as_u64()
        };
        let before = newest(handle);
        for _ in 0..6 {
            tell(handle, json!({ "step": { "actor": "web01" } }));
        }
        assert!(newest(handle) > before);
        let wrong = try_tell(handle, json!({ "step": { "actor": "web0l" } })).unwrap_err();
        assert!(wrong.contains("did you mean web0"), "{wrong}");
        let long = json!({ "step": { "nanos": u64::MAX } });
        assert!(try_tell(handle, long).unwrap_err().contains("at most 10 s"));
    });
}

#[test]
fn what_was_watched_is_in_frames_series_edges_and_traces() {
    let ((), _) = session(held(netflix(1)), |handle| {
        let empty = handle.frames().borrow().encode(0, Level::Each).len();
        let _watching = handle.watch();
        run_until(handle, 2_000);
        std::thread::sleep(Duration::from_millis(150));
        let frame = handle.frames().borrow_and_update().clone();
        let scene = handle.scene().clone();
        assert!(frame.encode(0, Level::Each).len() > empty + 24 * scene.nodes.len());
        assert!(frame.encode(0, Level::Folded).len() < frame.encode(0, Level::Each).len());
        let series = handle
            .ask_blocking(SessionRequest::Series("all".to_owned()))
            .unwrap();
        let points = series["points"].as_array().unwrap();
        let mean = |of: &str| {
            let values = points.iter().filter_map(|point| point[of].as_f64());
            values.clone().sum::<f64>() / values.count().max(1) as f64
        };
        assert!(mean("rate") > 50.0, "{points:?}");
        assert!(mean("p50") < mean("p99"), "{points:?}");
        let entry = scene
            .nodes
            .iter()
            .find(|n| n.package == "denominator")
            .unwrap();
        let requests = look(handle, json!({ "requests": entry.name }));
        let trace = requests[5]["trace"].as_str().unwrap();
        let spans = look(handle, json!({ "trace": trace }));
        let spans = spans.as_array().unwrap();
        assert!(spans.len() > 3, "{spans:?}");
        for span in &spans[1..] {
            let parent = spans.iter().find(|other| other["span"] == span["parent"]);
            let parent = parent.expect("its parent is there");
            assert_eq!(parent["server"], span["client"]);
            assert!(parent["sent"].as_f64() <= span["sent"].as_f64());
        }
        let (from, to) = (spans[0]["client"].clone(), spans[0]["server"].clone());
        let edge = look(handle, json!({ "from": from, "to": to }));
        assert!(edge["answered"].as_u64().unwrap() > 10, "{edge}");
        assert!(!edge["histogram"].as_array().unwrap().is_empty());
        let found = look(handle, json!({ "find": "login0" }));
        assert!(found.as_array().unwrap().len() > 3);
    });
}

// A run that is too fast to be looked at records messages only at the end of each slice.
#[test]
fn after_a_fast_run_the_last_requests_and_messages_are_known() {
    session(held(two_for(10_000)), |handle| {
        let _watching = handle.watch();
        run_until(handle, 9_000_000);
        let nodes = handle.scene().nodes.clone();
        let [www, web] = ["denominator", "store"].map(|package| {
            let found = nodes.iter().find(|node| node.package == package);
            found.unwrap().name.clone()
        });
        let requests = look(handle, json!({ "requests": www }));
        let requests = requests.as_array().unwrap();
        assert_eq!(requests.len(), 32, "{requests:?}");
        for request in requests {
            assert!(request["received"].as_f64() > Some(8_999.0), "{request}");
            let spans = look(handle, json!({ "trace": request["trace"] }));
            assert_eq!(spans[0]["span"], request["span"]);
        }
        let details = look(handle, json!({ "actor": web }));
        let messages = details["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 16, "{details}");
        let of_load = (messages.iter()).filter(|message| message["at"].as_f64() > Some(8_999e9));
        assert!(of_load.count() > 8, "{details}");
    });
}

#[test]
fn what_makes_no_sense_is_refused_in_a_sentence_and_changes_nothing() {
    let (recording, _) = session(held(netflix(1)), |handle| {
        let refuse = |what: Value, says: &str| {
            let refused = try_tell(handle, json!({ "do": { "what": what } })).unwrap_err();
            assert!(refused.contains(says), "{refused}");
        };
        refuse(json!({"do": "kill", "who": "logn"}), "did you mean login");
        refuse(json!({"do": "kill", "who": ""}), "there is no");
        refuse(
            json!({"do": "slow", "who": "login", "percent": 0}),
            "cannot slow down",
        );
        refuse(json!({"do": "load", "percent": 4_000_000}), "not possible");
        refuse(
            json!({"do": "load", "percent": 50, "who": "login00"}),
            "is not an entry point",
        );
        refuse(
            json!({"do": "scale", "service": "login", "count": 1_000}),
            "writes files",
        );
        refuse(
            json!({"do": "send", "who": "login", "message": "sing"}),
            "is not a message",
        );
        refuse(
            json!({"do": "send", "who": "login", "message": "put x"}),
            "lacks a number",
        );
        refuse(
            json!({"do": "send", "who": "login", "message": ""}),
            "is not a message",
        );
        let late = json!({ "do": { "what": {"do": "kill", "who": "login"}, "at": 0 } });
        assert!(try_tell(handle, late).unwrap_err().contains("has passed"));
        for speed in [0.0, -1.0, 1e300] {
            let refused = try_tell(handle, json!({ "speed": speed })).unwrap_err();
            assert!(refused.contains("not possible"));
        }
        let nobody = json!({ "measure": "queue", "of": "nobody", "above": 1 });
        let refused = try_tell(handle, json!({ "until": { "condition": nobody } }));
        assert!(refused.unwrap_err().contains("no group"));
        save(handle)
    });
    assert_eq!(recording.commands, []);
    replay(&mut netflix(1), &recording).unwrap();
}

#[test]
fn commands_are_listed_in_the_order_of_time() {
    let (listed, _) = session(held(two()), |handle| {
        for (at, who) in [(3, "web01"), (1, "web00"), (2, "web01")] {
            let what = json!({ "do": "pause", "who": who });
            tell(
                handle,
                json!({ "do": { "what": what, "at": at * 1_000_000_000u64 } }),
            );
        }
        handle.statuses().borrow_and_update().commands.clone()
    });
    let times: Vec<f64> = listed.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [1.0, 2.0, 3.0]);
}

#[test]
fn after_the_end_the_last_state_stays() {
    fn states<W: World>(world: W, count: usize) -> Vec<u8> {
        let (bits, _) = session(held(world), |handle| {
            let _watching = handle.watch();
            run_until(handle, 3_000);
            tell(
                handle,
                json!({ "do": { "what": { "do": "kill", "who": handle.scene().nodes[1].name } } }),
            );
            tell(handle, json!({ "step": { "nanos": 1_000_000 } }));
            run_until(handle, 60_000);
            assert!(handle.statuses().borrow_and_update().is_over);
            let frame = handle.frames().borrow_and_update().encode(0, Level::Each);
            (0..count)
                .map(|node| frame[40 + 28 * node + 4])
                .collect::<Vec<u8>>()
        });
        bits
    }
    // Bit 1 means killed, bit 32 means ended.
    let services = states(two(), 3);
    assert_eq!(
        services.iter().filter(|&&bits| bits == 1).count(),
        1,
        "{services:?}"
    );
    assert!(services.iter().all(|bits| bits & 32 == 0), "{services:?}");
    let pirates = states(pirates(1), 100);
    assert_eq!(
        pirates.iter().filter(|&&bits| bits & 32 != 0).count(),
        1,
        "{pirates:?}"
    );
}

#[test]
fn what_was_done_is_turned_into_faults_and_load_of_a_definition() {
    let (parts, _) = session(held(netflix(1)), |handle| {
        let act = |at: u64, what: Value| {
            let at = at * 1_000_000;
            tell(handle, json!({ "do": { "what": what, "at": at } }));
        };
        act(1_000, json!({"do": "kill", "who": "login"}));
        act(1_500, json!({"do": "revive", "who": "login"}));
        act(
            2_000,
            json!({"do": "slow", "who": "homepage00", "percent": 500}),
        );
        act(2_000, json!({"do": "partition", "who": "us-east-1.zoneB"}));
        act(3_000, json!({"do": "load", "percent": 200}));
        act(
            3_100,
            json!({"do": "send", "who": "login00", "message": "request"}),
        );
        handle.ask_blocking(SessionRequest::Definition).unwrap()
    });
    let mut definition: Value = serde_json::from_str(
        &std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../arch/json_arch/netflixoss_arch.json"
        ))
        .unwrap(),
    )
    .unwrap();
    for key in ["faults", "load", "x-notes"] {
        definition[key] = parts[key].clone();
    }
    let faults = parts["faults"].as_array().unwrap();
    assert_eq!(faults.len(), 3, "{parts}");
    assert_eq!(
        (&faults[0]["for"], &faults[1]["factor"]),
        (&json!("500ms"), &json!(5.0))
    );
    assert_eq!(parts["x-notes"].as_array().unwrap().len(), 2, "{parts}");
    let checked = read_text(&definition.to_string(), "netflixoss").unwrap();
    let topology = Topology::new(&checked, Scale::default()).unwrap();
    let mut world = Services::new(&config(1), topology, &plan()).unwrap();
    let down = |world: &mut Services, millis: u64| {
        world.run_until(corsair::Time::from_nanos(millis * 1_000_000));
        let state = world.look(&json!({ "actor": "login05" })).unwrap()["state"].clone();
        state["is_down"].as_bool().unwrap()
    };
    assert_eq!(
        [900, 1_200, 1_600].map(|at| down(&mut world, at)),
        [false, true, false]
    );
}

#[test]
fn controls_are_read_as_the_page_writes_them() {
    for (text, control) in [
        (json!("play"), Control::Play),
        (
            json!({"step": {"nanos": 5}}),
            Control::Step(StepBy::Nanos(5)),
        ),
        (json!({"speed": 0.5}), Control::Speed(Some(0.5))),
    ] {
        assert_eq!(serde_json::from_value::<Control>(text).unwrap(), control);
    }
}

#[test]
fn files_that_are_no_sessions_are_refused_in_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session.json");
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        Recording::read(&path).unwrap_err().to_string()
    };
    let whole = |version: &str, digest: &str, more: &str| {
        format!(
            r#"{{"version": "{version}", "flags": {{}}, "commands": [], "until": 1, "digest": "{digest}"{more}}}"#
        )
    };
    let good = "0123456789abcdef";
    assert!(read("").contains("not a session"));
    assert!(read("[1, 2").contains("not a session"));
    assert!(read(&whole("2", good, "")).contains("version '2'"));
    assert!(read(&whole("corsair-session-1", "xyz", "")).contains("not 16 hexadecimal"));
    assert!(read(&whole("corsair-session-1", good, r#", "x": 1"#)).contains("unknown field"));
    let missing = Recording::read(&directory.path().join("none")).unwrap_err();
    assert!(missing.to_string().starts_with("cannot read"));
    std::fs::write(&path, whole("corsair-session-1", good, "")).unwrap();
    assert!(Recording::read(&path).is_ok());
}

/// Returns the number of nodes that are down at a time in seconds; an error if no state is known.
fn down_at(handle: &Handle, seconds: f64) -> Result<usize, String> {
    let level = serde_json::from_value(json!("each")).unwrap();
    let bytes = handle.ask_blocking(SessionRequest::At(seconds, level))?;
    let bytes: Vec<u8> = serde_json::from_value(bytes).unwrap();
    let nodes = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    let bits = bytes[40..].chunks(28).take(nodes).map(|node| node[4]);
    Ok(bits.filter(|bits| bits & 1 != 0).count())
}

#[test]
fn one_looks_back_at_recorded_states_while_the_run_stays_where_it_is() {
    session(held(netflix(1)), |handle| {
        let unknown = down_at(handle, 0.1).unwrap_err();
        assert!(unknown.contains("while a page is open"), "{unknown}");
        let _watching = handle.watch();
        run_until(handle, 700);
        tell(
            handle,
            json!({ "do": { "what": { "do": "kill", "who": "login" }, "at": 800_000_000 } }),
        );
        run_until(handle, 1_500);
        let digest = save(handle).digest;
        assert_eq!(down_at(handle, 0.6), Ok(0));
        assert_eq!(down_at(handle, 1.4), Ok(18));
        // Times before the first state have the first state, and times after the last state have
        // the last state.
        assert_eq!(down_at(handle, -1.0), Ok(0));
        assert_eq!(down_at(handle, 99.0), Ok(18));
        assert_eq!(save(handle).digest, digest);
    });
}
