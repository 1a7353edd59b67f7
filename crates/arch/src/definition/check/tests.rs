//! The error message for each possible fault of a definition.

use crate::{BUILT_IN, Package, read_text};

/// Returns a definition with these services, each on its own line from line 3 on.
fn with(services: &[&str]) -> String {
    format!(
        "{{\"arch\": \"shop\",\n\"services\": [\n{}\n]}}",
        services.join(",\n")
    )
}

fn refusal(text: &str) -> String {
    read_text(text, "shop.json").unwrap_err().to_string()
}

const STORE: &str = r#"{"name": "db", "package": "store", "count": 2, "regions": 1}"#;

#[test]
fn every_built_in_is_a_definition_with_a_description() {
    for (name, text) in BUILT_IN {
        let checked = read_text(text, name).unwrap();
        assert_eq!(checked.definition().arch, name);
        assert!(checked.definition().description.len() > 40, "{name}");
        let drives = checked
            .services()
            .any(|(_, package)| package == Package::Denominator);
        assert!(drives, "{name} has no denominator");
    }
}

// Guarantee: arch-1.
#[test]
fn an_unknown_package_is_reported_with_its_line_and_the_nearest_right_name() {
    let text = with(&[STORE, r#"{"name": "web", "package": "karyom"}"#]);
    assert_eq!(
        refusal(&text),
        "shop.json:4: service 'web' has the unknown package 'karyom'; did you mean karyon?"
    );
    let text = with(&[r#"{"name": "web", "package": "unknown"}"#]);
    assert_eq!(
        refusal(&text),
        "shop.json:3: service 'web' has the unknown package 'unknown'; expected one of pirate, \
         denominator, elb, zuul, karyon, monolith, staash, store, cache, volume, priamCassandra, \
         riak, service"
    );
}

#[test]
fn a_duplicate_service_is_reported_with_where_its_first_is() {
    assert_eq!(
        refusal(&with(&[STORE, STORE])),
        "shop.json:4: service 'db' is defined twice; the first is number 1 of \"services\""
    );
}

#[test]
fn an_unknown_dependency_is_reported_with_the_nearest_service() {
    let web = r#"{"name": "web", "package": "karyon",
        "dependencies": ["db",
        "dbb"]}"#;
    assert_eq!(
        refusal(&with(&[STORE, web])),
        "shop.json:6: service 'web' depends on 'dbb', which is not a service; did you mean db?"
    );
}

#[test]
fn numbers_out_of_range_are_reported_with_the_range() {
    let one = |fields: &str| {
        let text = with(&[&format!(
            r#"{{"name": "db", "package": "store", {fields}}}"#
        )]);
        let said = refusal(&text);
        said.strip_prefix("shop.json:3: ").unwrap().to_owned()
    };
    assert_eq!(
        one(r#""count": -1"#),
        "service 'db' has a count of -1; give 0 to 1000000"
    );
    assert_eq!(
        one(r#""count": 1000001"#),
        "service 'db' has a count of 1000001; give 0 to 1000000"
    );
    assert_eq!(
        one(r#""regions": 7"#),
        "service 'db' is in 7 regions; give 0 to 6"
    );
    assert_eq!(
        one(r#""concurrency": 0"#),
        "service 'db' has a concurrency of 0; give 1 or more"
    );
    assert_eq!(
        one(r#""error_rate": 1.5"#),
        "service 'db' has an error rate of 1.5; give a number from 0 to 1"
    );
    assert_eq!(
        one(r#""faults": [{"kind": "kill", "at": "1s", "share": 0}]"#),
        "a fault of service 'db' hits a share of 0; give a number above 0, up to 1"
    );
    assert_eq!(
        one(r#""faults": [{"kind": "slow", "at": "1s", "factor": 0.5}]"#),
        "a fault of service 'db' makes it 0.5 times as slow; give 1 or more"
    );
    assert_eq!(
        one(r#""faults": [{"kind": "kill", "at": "1s", "factor": 2}]"#),
        "a fault of service 'db' has a factor, but only slow has one; remove it"
    );
}

#[test]
fn services_may_call_each_other_in_a_circle() {
    let a = r#"{"name": "a", "package": "karyon", "dependencies": ["db", "b"]}"#;
    let b = r#"{"name": "b", "package": "staash", "dependencies": ["c"]}"#;
    let c = r#"{"name": "c", "package": "zuul", "dependencies": ["a"]}"#;
    assert!(read_text(&with(&[STORE, a, b, c]), "").is_ok());
    let ring = r#"{"name": "ring", "package": "riak", "dependencies": ["ring", "eureka"]}"#;
    assert!(read_text(&with(&[ring]), "").is_ok());
}

#[test]
fn victims_names_and_pairs_of_regions_are_checked() {
    let text = with(&[STORE]).replacen("{", "{\"victim\": \"dp\", ", 1);
    assert_eq!(
        refusal(&text),
        "shop.json:1: the victim 'dp' is not a service; did you mean db?"
    );
    assert_eq!(
        refusal(&with(&[r#"{"name": "a.b", "package": "store"}"#])),
        "shop.json:3: 'a.b' is not a valid name; leave out dots, slashes, stars, spaces and line breaks"
    );
    assert_eq!(
        refusal(&with(&[r#"{"name": "eureka", "package": "store"}"#])),
        "shop.json:3: 'eureka' is a reserved name; call the service something else"
    );
    let text = with(&[STORE]).replacen(
        "{",
        "{\"network\": {\"regions\": {\"us-east-1..us-west-1\": \"9ms\"}}, ",
        1,
    );
    assert_eq!(
        refusal(&text),
        "shop.json:1: 'us-east-1..us-west-1' is not a pair of regions; write one as \
         us-east-1..us-west-2; did you mean us-west-2?"
    );
    assert_eq!(
        refusal(r#"{"arch": "shop", "services": []}"#),
        "shop.json:1: there are no services; add at least one, and a denominator that drives load to it"
    );
    assert_eq!(
        refusal(r#"{"arch": "", "services": []}"#),
        "shop.json:1: the architecture has no name; give it one under \"arch\""
    );
}

#[test]
fn no_service_asks_a_denominator() {
    let www = r#"{"name": "www", "package": "denominator"}"#;
    let web = r#"{"name": "web", "package": "karyon", "dependencies": ["www"]}"#;
    assert_eq!(
        refusal(&with(&[www, web])),
        "shop.json:4: service 'web' depends on 'www', a denominator: it drives load and answers no requests"
    );
}

#[test]
fn broken_and_cut_off_text_is_reported_with_its_line() {
    assert_eq!(
        refusal("{\"arch\": \"shop\",\n\"services\": ["),
        "shop.json:2: the text is incomplete; the file is cut off"
    );
    assert_eq!(
        refusal("{\"arch\": \"shop\",\nservices: []}"),
        "shop.json:2: this is not valid JSON: key must be a string"
    );
    assert_eq!(
        refusal("{\"arch\": \"shop\",\n\"services\": 5}"),
        "shop.json:2: this is not a definition: invalid type: integer `5`, expected a sequence"
    );
    let slip = with(&[r#"{"name": "db", "package": "store", "dependancies": []}"#]);
    assert_eq!(
        refusal(&slip),
        "shop.json:3: there is no key \"dependancies\"; did you mean dependencies?"
    );
}

// Guarantee: arch-1.
#[test]
fn unknown_keys_are_refused_but_for_those_that_begin_with_x() {
    let text = with(&[r#"{"name": "db", "package": "store", "x-owner": "ops"}"#]);
    assert!(read_text(&text, "").is_ok());
    let text = with(&[STORE]).replacen('{', r#"{"$schema": "definition.schema.json", "#, 1);
    assert!(read_text(&text, "").is_ok());
    let said = refusal(&with(&[
        r#"{"name": "db", "package": "store", "$schema": 1}"#,
    ]));
    assert!(said.contains("there is no key \"$schema\""), "{said}");
    let said = refusal(&with(&[r#"{"name": "db", "package": "store", "zzz": 1}"#]));
    assert!(
        said.starts_with("shop.json:3: there is no key \"zzz\"; expected one of name, machine, "),
        "{said}"
    );
    let said = refusal(&with(&[STORE]).replacen("{", "{\"qqq\": 1, ", 1));
    assert!(
        said.starts_with("shop.json:1: there is no key \"qqq\"; expected one of arch, version, "),
        "{said}"
    );
}

#[test]
fn unknown_versions_long_names_and_line_breaks_are_refused_in_a_line() {
    let said = refusal(&with(&[STORE]).replacen("{", "{\"version\": \"arch-9.9\", ", 1));
    assert_eq!(
        said,
        "shop.json:1: the version 'arch-9.9' is unknown; write arch-0.0 or arch-0.1; \
         did you mean arch-0.0?"
    );
    let long = format!(r#"{{"name": "{}", "package": "store"}}"#, "x".repeat(400));
    assert_eq!(
        refusal(&with(&[&long])),
        "shop.json:3: the name 'xxxxxxxxxxxxxxxxxxxx…' has 400 bytes; give at most 100, \
         because files are named by it"
    );
    assert_eq!(
        refusal(&with(&[r#"{"name": "a\nb", "package": "store"}"#])),
        "shop.json:3: 'a\\nb' is not a valid name; leave out dots, slashes, stars, spaces and line breaks"
    );
    let text = with(&[STORE]).replace("shop", "sh\\nop");
    assert_eq!(
        refusal(&text),
        "shop.json:1: 'sh\\nop' is not a valid name; leave out dots, slashes, stars, spaces and line breaks"
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    let text = format!("\u{feff}{}", with(&[STORE]));
    assert!(read_text(&text, "shop.json").is_ok());
    let wrong = text.replace("store", "stare");
    assert!(refusal(&wrong).starts_with("shop.json:3: "));
}

#[test]
fn a_fault_lasts_some_time() {
    let text = with(&[r#"{"name": "db", "package": "store",
        "faults": [{"kind": "kill", "at": "1s", "for": "0s"}]}"#]);
    assert_eq!(
        refusal(&text),
        "shop.json:4: a fault of service 'db' has a duration of 0s; give \"for\" a longer time, or \
         leave it out"
    );
}

#[test]
fn what_stands_for_measured_times_needs_a_type_and_a_value() {
    let db = |keys: &str| {
        with(&[&format!(
            r#"{{"name": "db", "package": "store", "useCustomGuesstimate": true{keys}}}"#
        )])
    };
    assert_eq!(
        refusal(&db("")),
        "shop.json:3: service 'db' has useCustomGuesstimate and no guesstimateType; give it one, \
         such as NORMAL"
    );
    assert_eq!(
        refusal(&db(r#", "guesstimateType": "NORMAL""#)),
        "shop.json:3: service 'db' has useCustomGuesstimate and no guesstimateValue; give it one, \
         such as [100,200]"
    );
    let both = db(r#", "guesstimateType": "NORMAL", "guesstimateValue": "[100,200]""#);
    assert!(read_text(&both, "shop.json").is_ok());
}

/// Returns a definition of a service with these endpoints and other fields, and a store.
fn scripted(fields: &str) -> String {
    with(&[
        STORE,
        &format!(r#"{{"name": "api", "package": "service", {fields}}}"#),
    ])
}

#[test]
fn what_is_wrong_with_scripts_and_policies_is_reported_with_its_line_and_the_nearest_right_name() {
    let endpoint = |steps: &str| {
        scripted(&format!(
            r#""endpoints": [{{"name": "get", "steps": [{steps}]}}]"#
        ))
    };
    let shop = |what: &str| format!("shop.json:4: service 'api': {what}");
    let deep = format!(
        "{}{{\"work\": \"1ms\"}}{}",
        r#"{"parallel": [["#.repeat(20),
        "]]}".repeat(20)
    );
    for (steps, what) in [
        (
            r#"{"call": "bd"}"#,
            "endpoint 'get': 'bd' is not a service; did you mean db?",
        ),
        (
            r#"{"call": "api.gte"}"#,
            "endpoint 'get': service 'api' has no endpoint 'gte'; did you mean get?",
        ),
        (
            r#"{"call": {"db": -1}}"#,
            "endpoint 'get': db has a weight of -1; give 0 or more",
        ),
        (
            r#"{"call": {"db": 0}}"#,
            "endpoint 'get': no target has a weight; give one of them 1",
        ),
        (
            "{}",
            "endpoint 'get': a step does nothing; give it work, call, send, parallel or cache",
        ),
        (
            r#"{"work": "1ms", "call": "db"}"#,
            "endpoint 'get': a step does several things; give each a separate step",
        ),
        (
            r#"{"work": "1ms", "times": 2}"#,
            "endpoint 'get': only call, send and parallel have times; remove it",
        ),
        (
            r#"{"call": "db", "times": 0}"#,
            "endpoint 'get': 0 times are not possible; give 1 to 1000",
        ),
        (
            r#"{"call": "db", "probability": 1.5}"#,
            "endpoint 'get': a probability of 1.5 is not possible; give 0 to 1",
        ),
        (
            r#"{"parallel": [[], []], "wait": 3}"#,
            "endpoint 'get': it waits for 3 of 2 lists; give 1 to 2",
        ),
        (
            r#"{"parallel": []}"#,
            "endpoint 'get': parallel has no lists of steps; give at least one",
        ),
        (
            r#"{"cache": {"hit_rate": 0.5, "size": 3}}"#,
            "endpoint 'get': a cache has either a hit_rate, or keys, a size and a ttl; remove one",
        ),
        (
            &deep,
            "endpoint 'get': its steps are nested more than 16 deep",
        ),
    ] {
        assert_eq!(refusal(&endpoint(steps)), shop(what), "{steps}");
    }
    for (fields, what) in [
        (
            r#""endpoints": [{"name": "a.b"}]"#,
            "'a.b' is not a name of an endpoint; leave out dots, spaces and line breaks",
        ),
        (
            r#""endpoints": [{"name": "a"}, {"name": "a"}]"#,
            "endpoint 'a' is defined twice",
        ),
        (
            r#""endpoints": [{"name": "a", "priority": 9}]"#,
            "endpoint 'a' has a priority of 9; give 0 to 7",
        ),
        (
            r#""endpoints": [{"name": "a", "steps": [{"call": "db"}]}], "calls": {"bd": {}}"#,
            "no endpoint calls 'bd'; did you mean db?",
        ),
        (
            r#""endpoints": [{"name": "a", "steps": [{"call": "db"}]}],
            "calls": {"db": {"timeout": "0s"}}"#,
            "calls of 'db': a timeout of 0s is not possible; give more, or leave it out",
        ),
        (
            r#""queue": {"size": 3}"#,
            "without a limit of concurrency no request waits; give concurrency, or remove queue",
        ),
        (
            r#""processors": 0"#,
            "0.0 processors are not possible; give more than 0, up to a million",
        ),
        (
            r#""time_slice": "10ms""#,
            "without processors requests take no turns; give processors, or remove time_slice",
        ),
        (
            r#""processors": 1, "time_slice": "0s""#,
            "a time slice of 0s, which is too short; give 10us or more, or remove it to share evenly",
        ),
    ] {
        let said = refusal(&scripted(fields));
        let line = if said.starts_with("shop.json:5") {
            5
        } else {
            4
        };
        assert_eq!(
            said,
            format!("shop.json:{line}: service 'api': {what}"),
            "{fields}"
        );
    }
    let said = refusal(&with(&[
        r#"{"name": "db", "package": "store", "endpoints": [{"name": "x"}]}"#,
    ]));
    assert_eq!(
        said,
        "shop.json:3: service 'db': only the package service has endpoints; remove them"
    );
}

#[test]
fn misspelt_keys_of_steps_and_policies_are_reported_with_those_that_there_are() {
    let said = refusal(&scripted(
        r#""calls": {"*": {"retry": {"most": 1}}}, "endpoints": []"#,
    ));
    assert!(
        said.starts_with(
            "shop.json:4: this is not a definition: unknown field `retry`, expected one of"
        ),
        "{said}"
    );
    assert!(said.contains("`retries`"), "{said}");
}

/// Returns a definition with these keys at its top, and a service with these fields.
fn at_top(top: &str, fields: &str) -> String {
    let services = format!(r#"{{"name": "db", "package": "service", "count": 3 {fields}}}"#);
    with(&[&services]).replacen("\"services\"", &format!("{top} \"services\""), 1)
}

#[test]
fn faults_of_places_and_links_that_make_no_sense_are_reported() {
    for (top, what) in [
        (
            r#""faults": [{"kind": "kill", "at": "1s", "zone": "zoneD"}],"#,
            "fault 1 is in 'zoneD', which is not a zone; did you mean zoneA?",
        ),
        (
            r#""faults": [{"kind": "kill", "at": "1s", "services": ["bd"]}],"#,
            "fault 1 is for 'bd', which is not a service; did you mean db?",
        ),
        (
            r#""links": [{"at": "1s", "from": {"region": "us-east-2"}, "loss": 1}],"#,
            "link 1 is in 'us-east-2', which is not a region; did you mean us-east-1?",
        ),
        (
            r#""links": [{"at": "1s"}],"#,
            "link 1 does nothing; give it loss, delay or duplicate",
        ),
        (
            r#""links": [{"at": "1s", "loss": 2}],"#,
            "link 1 has a loss of 2; give 0 to 1",
        ),
        (
            r#""links": [{"at": "1s", "loss": 1, "every": "2s"}],"#,
            "link 1 repeats every 2s and never ends; give \"for\"",
        ),
        (
            r#""links": [{"at": "1s", "loss": 1, "every": "2s", "for": "2s"}],"#,
            "link 1 repeats every 2s and lasts 2s; let it end before it repeats",
        ),
    ] {
        let said = refusal(&at_top(top, ""));
        assert!(said.ends_with(&format!(": {what}")), "{said}");
        assert!(said.starts_with("shop.json:"), "{said}");
    }
    for (fields, what) in [
        (
            r#", "faults": [{"kind": "restart", "at": "1s"}]"#,
            "a fault restarts instances for 0s; give \"for\", the downtime of each instance",
        ),
        (
            r#", "faults": [{"kind": "kill", "at": "1s", "gap": "1s"}]"#,
            "a fault has a gap or a drain, but only restart has one; remove it",
        ),
        (
            r#", "faults": [{"kind": "kill", "at": "1s", "probability": 7}]"#,
            "a fault has a probability of 7; give 0 to 1",
        ),
        (
            r#", "autoscaler": {"target": 0.5, "most": 9}"#,
            "utilisation is measured in slots or processors; give concurrency or processors",
        ),
        (
            r#", "concurrency": 1, "autoscaler": {"target": 0.5, "most": 2}"#,
            "a minimum of 1, a count of 3 and a maximum of 2 instances are not possible; give numbers of 1 or more, in ascending order",
        ),
        (
            r#", "concurrency": 1, "autoscaler": {"target": 2, "most": 9}"#,
            "a target of 2 is not possible; give a number above 0, up to 1",
        ),
        (
            r#", "health_check": {"every": "0s"}"#,
            "an interval below 1ms is not possible; give a longer one",
        ),
    ] {
        let said = refusal(&at_top("", fields));
        assert_eq!(
            said,
            format!("shop.json:3: service 'db': {what}"),
            "{fields}"
        );
    }
}

#[test]
fn machines_have_processors_that_their_services_share() {
    let text = |machines: &str, fields: &str| {
        let api = format!(
            r#"{{"name": "api", "package": "service", "machine": "box", {fields}
            "endpoints": [{{"name": "get", "steps": [{{"work": "1ms"}}]}}]}}"#
        );
        let www = r#"{"name": "www", "package": "denominator", "dependencies": ["api"]}"#;
        with(&[&api, www]).replacen('{', &format!("{{\"machines\": {machines}, "), 1)
    };
    let one = r#"{"box": {"processors": 2}}"#;
    let checked = read_text(&text(one, ""), "shop.json").unwrap();
    assert!(checked.index_of("box").is_some());
    // In spigo's files the machine of a service is only a name.
    let checked = read_text(&text("{}", ""), "shop.json").unwrap();
    assert!(checked.index_of("box").is_none());
    for (machines, fields, what) in [
        (
            r#"{"box": {"processors": 0}}"#,
            "",
            "machine 'box' has 0.0 processors; give more than 0, up to a million",
        ),
        (
            r#"{"box": {"processors": 2, "time_slice": "1us"}}"#,
            "",
            "machine 'box' has a time slice of 1us, which is too short; give 10us or more, or remove it to share evenly",
        ),
        (
            r#"{"": {"processors": 2}}"#,
            "",
            "'' is not a valid name; leave out dots, slashes, stars, spaces and line breaks",
        ),
        (
            r#"{"api": {"processors": 2}}"#,
            "",
            "machine 'api' has the name of a service; rename one of them",
        ),
        (
            r#"{"rack": {"processors": 2}}"#,
            "",
            "machine 'rack' has no services; name it as the machine of one, or remove it",
        ),
        (
            r#"{"box": {"processors": 2, "faults": [{"kind": "slow", "at": "1s", "factor": 0.5}]}}"#,
            "",
            "a fault of service 'box' makes it 0.5 times as slow; give 1 or more",
        ),
        (
            one,
            r#""processors": 1,"#,
            "service 'api': shares the processors of machine 'box'; remove processors",
        ),
        (
            one,
            r#""faults": [{"kind": "slow", "at": "1s"}],"#,
            "service 'api': shares the processors of machine 'box'; make the machine slow instead",
        ),
    ] {
        let said = refusal(&text(machines, fields));
        assert!(said.ends_with(what), "{said}");
        let line = if fields.is_empty() { 1 } else { 3 };
        assert!(said.starts_with(&format!("shop.json:{line}: ")), "{said}");
    }
}

#[test]
fn a_definition_with_machines_is_as_written_after_its_check_and_with_other_places() {
    // The name is as long as names may be, so names that are made from it would be too long.
    let long = "a".repeat(100);
    let text = format!(
        r#"{{"arch": "x", "machines": {{"box": {{"processors": 2.0}}}}, "services": [
        {{"name": "{long}", "package": "service", "machine": "box", "service_time": "1ms"
        , "endpoints": [{{"name": "get", "steps": [{{"work": "1ms"}}]}}]}}]}}"#
    );
    let checked = read_text(&text, "").unwrap();
    let written: crate::Definition = serde_json::from_str(&text).unwrap();
    assert_eq!(*checked.written(), written);
    let places = crate::PlacesDefinition::default();
    let other = checked.with_places(&places).unwrap();
    assert_eq!(*other.written(), written);
    assert_eq!(other.services().count(), 2);
}

/// Returns the line of a service of the package service with these endpoints, which are names and steps.
fn with_endpoints(name: &str, endpoints: &[(&str, &str)]) -> String {
    let endpoints = endpoints
        .iter()
        .map(|(name, steps)| format!(r#"{{"name": "{name}", "steps": [{steps}]}}"#));
    let endpoints = endpoints.collect::<Vec<_>>().join(", ");
    format!(r#"{{"name": "{name}", "package": "service", "endpoints": [{endpoints}]}}"#)
}

// Guarantee: arch-1.
#[test]
fn calls_that_certainly_return_to_their_caller_without_end_are_refused() {
    let b = with_endpoints("b", &[("get", r#"{"call": "a.get"}"#)]);
    let cycle = [
        (r#"{"call": "a"}"#, ""),
        (
            r#"{"work": "1ms"}, {"call": "b.get", "fallback": []}"#,
            " by way of b.get",
        ),
        (r#"{"send": "a.get"}"#, ""),
        (r#"{"call": {"a.get": 2, "b.get": 0}, "times": 3}"#, ""),
        (
            r#"{"parallel": [[{"work": "1ms"}], [{"call": "b", "probability": 1}]]}"#,
            " by way of b.get",
        ),
        (
            r#"{"cache": {"hit_rate": 0}, "miss": [{"call": "a.get"}]}"#,
            "",
        ),
    ];
    for (steps, by) in cycle {
        let a = with_endpoints("a", &[("get", steps)]);
        assert_eq!(
            refusal(&with(&[&a, &b])),
            format!(
                "shop.json:3: service 'a': each request of 'a.get' calls 'a.get' again{by}, without end; remove a call, \
                 or give it a probability below 1"
            ),
            "{steps}"
        );
    }
    for steps in [
        r#"{"call": "a.get", "probability": 0.9}"#,
        r#"{"call": {"a.get": 2, "a.end": 1}}"#,
        r#"{"cache": {"hit_rate": 0.1}, "miss": [{"call": "b.get"}]}"#,
        r#"{"cache": {"size": 1}, "miss": [{"call": "a.get"}]}"#,
        r#"{"call": "a.end", "fallback": [{"call": "a.get"}]}"#,
        r#"{"call": "a.end"}, {"call": "a.end"}"#,
        r#"{"call": "a.get", "probability": 0}"#,
    ] {
        let a = with_endpoints("a", &[("get", steps), ("end", "")]);
        assert!(read_text(&with(&[&a, &b]), "").is_ok(), "{steps}");
    }
}

#[test]
fn a_long_chain_of_calls_is_checked_and_a_long_cycle_is_refused_shortly() {
    let chain = |last: &str| {
        let next = |n: usize| match n {
            3_000 => last.to_owned(),
            n => format!(r#"{{"call": "a.e{}"}}"#, n + 1),
        };
        let endpoints: Vec<(String, String)> =
            (0..=3_000).map(|n| (format!("e{n}"), next(n))).collect();
        let endpoints: Vec<(&str, &str)> = endpoints.iter().map(|(a, b)| (&**a, &**b)).collect();
        with(&[&with_endpoints("a", &endpoints)])
    };
    assert!(read_text(&chain(""), "").is_ok());
    let said = refusal(&chain(r#"{"call": "a.e0"}"#));
    assert!(
        said.contains("again by way of a.e1, a.e2, a.e3") && said.contains("a.e8, …, without end"),
        "{said}"
    );
}
