//! Manifests that are made to take much memory or time.

use std::fmt::Write as _;

/// The files of an attack.
type Files = Vec<(&'static str, String)>;

/// Returns attacks by name; their size grows with the scale.
pub fn all(scale: usize) -> Vec<(&'static str, Files)> {
    let yaml = |text: String| vec![("a.yaml", text)];
    let json = |text: String| vec![("a.json", text)];
    vec![
        ("billion laughs", yaml(laughs(12))),
        (
            "aliases of aliases",
            yaml(format!("a: &a [x]\nb: [{}]", "*a, ".repeat(3_000 * scale))),
        ),
        (
            "merge keys",
            yaml(format!(
                "a: &a {{k: v}}\nservices:\n{}",
                "  s: {<<: *a, image: x}\n".repeat(300 * scale)
            )),
        ),
        ("deep maps", yaml("{a: ".repeat(10_000 * scale))),
        ("deep lists", yaml("[".repeat(10_000 * scale))),
        ("deep JSON", json("[".repeat(10_000 * scale))),
        ("deep JSON objects", json("{\"a\":".repeat(10_000 * scale))),
        (
            "deep lists of kinds",
            yaml("{kind: List, items: [".repeat(60) + &"]}".repeat(60)),
        ),
        (
            "wide JSON",
            json(format!(
                "{{\"kind\": \"x\", \"items\": [{}0]}}",
                "0,".repeat(300_000 * scale)
            )),
        ),
        (
            "long text",
            yaml(format!(
                "services: {{a: {{image: {}}}}}",
                "x".repeat(500_000 * scale)
            )),
        ),
        ("many documents", yaml("---\na: 1\n".repeat(3_000 * scale))),
        (
            "script without end",
            vec![(
                "a.js",
                format!("export const options = {}", "{a: [".repeat(10_000 * scale)),
            )],
        ),
        (
            "wide script",
            vec![(
                "a.js",
                format!(
                    "export const options = {{vus: 1, a: [{}]}}",
                    "x(),".repeat(50_000 * scale)
                ),
            )],
        ),
        ("variables that grow", variables(scale)),
        ("environment that grows", yaml(environment(scale))),
        ("one map in many workloads", yaml(shared_map(scale))),
        ("selectors of everything", yaml(selectors(scale))),
        ("storage without callers", yaml(orphans(scale))),
        ("many calls", yaml(calls(scale))),
        ("many entry points", yaml(entries(scale))),
        ("many scenarios", json(scenarios(scale))),
        ("many fields", yaml(fields(scale))),
    ]
}

fn laughs(levels: usize) -> String {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..levels {
        let before = format!("*a{}, ", level - 1).repeat(9);
        let _ = writeln!(
            text,
            "a{level}: &a{level} [{}]",
            before.trim_end_matches(", ")
        );
    }
    text
}

fn variables(scale: usize) -> Files {
    let mut env = "V0=xxxxxxxxxxxxxxxx\n".to_owned();
    for number in 1..40 {
        let before = format!("$V{}", number - 1);
        let _ = writeln!(env, "V{number}={before}{before}");
    }
    let values = "'$V39$V39', ".repeat(500 * scale);
    vec![
        (".env", env),
        (
            "compose.yml",
            format!("services: {{a: {{image: x, command: [{values}]}}}}"),
        ),
    ]
}

fn workload(name: &str, container: &str) -> String {
    format!(
        "---\n{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}}}, spec: {{template: {{metadata: {{labels: {{a: b}}}}, \
         spec: {{containers: [{{name: c, image: x, {container}}}], volumes: [{{configMap: {{name: m}}}}]}}}}}}}}\n"
    )
}

fn environment(scale: usize) -> String {
    let mut list = "{name: A, value: xxxxxxxxxxxxxxxx}, ".to_owned();
    for _ in 0..300 * scale {
        list.push_str("{name: A, value: '$(A)$(A)'}, ");
    }
    workload("w", &format!("env: [{list}]"))
}

fn shared_map(scale: usize) -> String {
    let hosts = "w1:80 w2:80 nobody:80 ".repeat(2_000 * scale.min(30));
    let mut text = format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m}}, data: {{f: '{hosts}'}}}}\n"
    );
    for number in 0..40 * scale {
        text += &workload(&format!("w{number}"), "");
    }
    text
}

fn selectors(scale: usize) -> String {
    let mut text = String::new();
    for number in 0..40 * scale {
        text += &workload(
            &format!("w{number}"),
            &format!("env: [{{name: X_ADDR, value: 's{number}:1'}}]"),
        );
        let _ = writeln!(
            text,
            "---\n{{apiVersion: v1, kind: Service, metadata: {{name: s{number}}}, spec: {{selector: {{a: b}}}}}}"
        );
    }
    text
}

fn services(count: usize, of: impl Fn(usize) -> String) -> String {
    let mut text = "services:\n".to_owned();
    for number in 0..count {
        let _ = writeln!(text, "  {}", of(number));
    }
    text
}

fn orphans(scale: usize) -> String {
    services(45 * scale, |number| match number % 2 {
        0 => format!("a-b-c-{number}: {{image: x}}"),
        _ => format!("a-b-c-{number}-db: {{image: redis}}"),
    })
}

fn calls(scale: usize) -> String {
    let count = 45 * scale;
    services(count, |number| {
        let hosts: Vec<String> = (0..40)
            .map(|step| format!("'s{}:80'", (number + step * step) % count))
            .collect();
        format!("s{number}: {{image: x, command: [{}]}}", hosts.join(", "))
    })
}

fn entries(scale: usize) -> String {
    services(45 * scale, |number| {
        format!("{}{number}: {{image: x, ports: ['80:80']}}", "n".repeat(90))
    })
}

fn scenarios(scale: usize) -> String {
    let list: Vec<String> = (0..100 * scale)
        .map(|number| {
            format!("\"s{number}\": {{\"executor\": \"constant-vus\", \"vus\": {number}}}")
        })
        .collect();
    format!("{{\"scenarios\": {{{}}}}}", list.join(","))
}

fn fields(scale: usize) -> String {
    let list: Vec<String> = (0..1_500 * scale)
        .map(|number| format!("key-{number}: {{deep: {{deeper: 1}}}}"))
        .collect();
    format!("services: {{a: {{image: x, {}}}}}", list.join(", "))
}
