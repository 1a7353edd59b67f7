//! Tests of imports, with what they share.

mod bounds;
mod fields;
mod forms;
mod public;
mod systems;

use super::*;
use std::fmt::Write as _;

/// Imports texts as files of these names.
fn import_texts(files: &[(&str, &str)]) -> Result<Imported, ImportError> {
    let directory = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (name, text) in files {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        if !name.starts_with('.') {
            paths.push(path);
        }
    }
    import(&paths, &ImportOptions::default())
}

fn shop(files: &[(&str, &str)]) -> Imported {
    import_texts(files).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the calls as `from>to`; assumed calls have a question mark, calls without an answer have a tilde.
fn calls(imported: &Imported) -> Vec<String> {
    let shown = |call: &ImportedCall| {
        let arrow = if call.is_sent { "~" } else { ">" };
        let mark = if call.is_assumed { "?" } else { "" };
        format!("{}{arrow}{}{mark}", call.from, call.to)
    };
    imported.calls.iter().map(shown).collect()
}

fn service<'a>(imported: &'a Imported, name: &str) -> &'a crate::ServiceDefinition {
    let mut services = imported.definition.services.iter();
    services.find(|service| service.name == name).unwrap()
}

/// Returns a Deployment and its Service: name, labels, image, requested and allowed processors, environment.
fn deployment(
    name: &str,
    app: &str,
    version: &str,
    cpu: (&str, &str),
    env: &[(&str, &str)],
) -> String {
    let mut text = format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  selector: {{matchLabels: {{app: {app}}}}}\n  template:\n    metadata: {{labels: {{app: {app}, version: {version}}}}}\n    spec:\n      containers:\n      - name: server\n        image: {name}:1\n"
    );
    if !cpu.0.is_empty() {
        let (request, limit) = cpu;
        let _ = writeln!(
            text,
            "        resources: {{requests: {{cpu: {request}, memory: 64Mi}}, limits: {{cpu: {limit}, memory: 128Mi}}}}"
        );
    }
    if !env.is_empty() {
        text.push_str("        env:\n");
        for (name, value) in env {
            let _ = writeln!(text, "        - {{name: {name}, value: \"{value}\"}}");
        }
    }
    text
}

fn host(name: &str, app: &str, kind: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{type: {kind}, selector: {{app: {app}}}, ports: [{{port: 80}}]}}\n"
    )
}
