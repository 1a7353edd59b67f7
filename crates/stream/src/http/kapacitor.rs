//! `/kapacitor/v1/tasks`: the part of kapacitor's API with which its command line lists, shows, defines, enables and
//! disables tasks.
//!
//! A disabled task is stored and does not run. The databases of a definition become the `database` and the
//! `retentionPolicy` of each `from` that names no database.

use super::refusal::Refusal;
use super::tasks::{MAX_TASK, bad_path, blocking, not_stored, to_its_end};
use super::{Server, body};
use crate::engine::{TaskOptions, TaskState, TaskStatus};
use crate::expression::written_time;
use crate::language;
use crate::pipeline::{Pipeline, Subscription};
use crate::store::{Store, StoredTask};
use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The tasks that are defined but disabled, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Disabled(Arc<Mutex<BTreeMap<String, StoredTask>>>);

impl Disabled {
    /// Reads the disabled tasks of a store.
    pub(super) fn of(store: Option<&Arc<Store>>) -> Disabled {
        let tasks = store.and_then(|store| store.tasks().ok());
        let tasks = tasks.into_iter().flatten();
        let disabled = tasks.filter_map(|(name, task)| Some((name, task.ok()?)));
        let disabled = disabled.filter(|(_, task)| !task.enabled);
        Disabled(Arc::new(Mutex::new(disabled.collect())))
    }

    /// Removes a task. Returns true if the task existed.
    pub(super) fn remove(&self, name: &str) -> bool {
        self.0.lock().remove(name).is_some()
    }
}

/// A database and a retention policy.
#[derive(Clone, Debug, serde::Deserialize)]
pub(super) struct Dbrp {
    db: String,
    rp: String,
}

/// A new task, or changes of a task.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Change {
    id: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    template_id: String,
    dbrps: Vec<Dbrp>,
    script: String,
    status: Option<String>,
    vars: BTreeMap<String, Value>,
}

#[derive(serde::Deserialize)]
pub(super) struct Selection {
    pattern: Option<String>,
    offset: Option<usize>,
    limit: Option<usize>,
}

/// The number of tasks in an answer, unless a request says otherwise.
const PAGE: usize = 100;

pub(super) async fn list(
    State(server): State<Server>,
    selection: Result<Query<Selection>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(selection) = selection
        .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, "query", error.body_text()))?;
    let pattern = selection.pattern.unwrap_or_default();
    let mut names: Vec<String> = {
        let running = server.engine.statuses();
        let disabled = server.disabled.0.lock();
        let running = running.into_iter().map(|status| status.name);
        running.chain(disabled.keys().cloned()).collect()
    };
    names.sort_unstable();
    names.dedup();
    let found = names
        .iter()
        .filter(|name| pattern.is_empty() || matches(&pattern, name));
    let page = found.skip(selection.offset.unwrap_or(0));
    let page = page.take(selection.limit.unwrap_or(PAGE).min(PAGE));
    let tasks: Vec<Value> = page.filter_map(|name| shown(&server, name).ok()).collect();
    Ok(Json(json!({ "tasks": tasks })).into_response())
}

pub(super) async fn show(
    State(server): State<Server>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    let Path(name) = name.map_err(bad_path)?;
    Ok(Json(shown(&server, &name)?).into_response())
}

pub(super) async fn define(
    State(server): State<Server>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let change = read(&server, &headers, body).await?;
    let name = change.id.clone();
    let known = server.engine.status(&name).is_ok() || server.disabled.0.lock().contains_key(&name);
    if known {
        let message = format!("there is a task `{name}` already; change it with PATCH");
        return Err(Refusal::new(StatusCode::CONFLICT, "duplicate", message));
    }
    if change.script.is_empty() {
        return Err(bad("a task needs a `script`"));
    }
    let enabled = change.status.as_deref() == Some("enabled");
    let text = text(&change.script, &change.dbrps)?;
    answer(server, name, text, enabled).await
}

pub(super) async fn change(
    State(server): State<Server>,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let Path(name) = name.map_err(bad_path)?;
    let change = read(&server, &headers, body).await?;
    if !change.id.is_empty() && change.id != name {
        return Err(bad("a task keeps its name; define another one"));
    }
    let disabled = server
        .disabled
        .0
        .lock()
        .get(&name)
        .map(|task| task.text.clone());
    let (before, was_enabled) = match disabled {
        Some(text) => (text, false),
        None => (server.engine.status(&name)?.text, true),
    };
    let script = match change.script.is_empty() {
        true => before,
        false => change.script,
    };
    let enabled = match change.status.as_deref() {
        Some(status) => status == "enabled",
        None => was_enabled,
    };
    let text = text(&script, &change.dbrps)?;
    answer(server, name, text, enabled).await
}

pub(super) async fn delete(
    State(server): State<Server>,
    name: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Refusal> {
    let Path(name) = name.map_err(bad_path)?;
    to_its_end(async move {
        if !server.disabled.remove(&name) {
            // The command line deletes all tasks that a pattern has matched, including tasks that other requests have
            // already deleted.
            match server.engine.delete(&name).await {
                Ok(()) | Err(crate::engine::TaskError::Unknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(store) = server.options.store.clone() {
            let removed = blocking(move || store.remove(&name)).await;
            removed.map_err(|error| not_stored(&error))?;
        }
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

async fn read(server: &Server, headers: &HeaderMap, body: Body) -> Result<Change, Refusal> {
    let (body, _reserved) = body::read(server, headers, body, MAX_TASK).await?;
    let change: Change = serde_json::from_slice(&body)
        .map_err(|error| bad(&format!("the body must be a task in JSON: {error}")))?;
    if let Some(kind) = change
        .kind
        .as_deref()
        .filter(|kind| !matches!(*kind, "stream" | ""))
    {
        return Err(bad(&format!(
            "tasks of the type `{kind}` are not here; there is no database to query, so send the points to /write and define a stream task"
        )));
    }
    if !change.template_id.is_empty() || !change.vars.is_empty() {
        return Err(bad(
            "templates and vars are not here; write the values into the script",
        ));
    }
    Ok(change)
}

/// Returns the canonical text of a script, with the database that the definition names.
fn text(script: &str, dbrps: &[Dbrp]) -> Result<String, Refusal> {
    let mut pipeline = language::parse(script)
        .map_err(|error| Refusal::from(crate::engine::TaskError::from(error)))?;
    let dbrp = match dbrps {
        [] => None,
        [one] => Some(one),
        _ => {
            return Err(bad(
                "a task takes points of one database and retention policy; define it once for each",
            ));
        }
    };
    if let Some(Dbrp { db, rp }) = dbrp {
        for node in &mut pipeline.nodes {
            let Some(from) = node.what.get_mut::<Subscription>() else {
                continue;
            };
            if from.database.is_none() {
                from.database = Some(db.as_str().into());
                from.policy.get_or_insert_with(|| rp.as_str().into());
            }
        }
    }
    Ok(pipeline.to_string())
}

/// Puts a definition into effect, and shows the task.
async fn answer(
    server: Server,
    name: String,
    text: String,
    enabled: bool,
) -> Result<Response, Refusal> {
    let shown = to_its_end(async move {
        put(&server, &name, text, enabled).await?;
        shown(&server, &name)
    });
    Ok(Json(shown.await?).into_response())
}

/// Runs or stops a task, and stores it.
async fn put(server: &Server, name: &str, text: String, enabled: bool) -> Result<(), Refusal> {
    let running = server.engine.status(name).ok();
    let unchanged = running.as_ref().is_some_and(|status| status.text == text);
    if running.is_some() && !(enabled && unchanged) {
        server.engine.delete(name).await?;
    }
    let options = TaskOptions::default();
    if enabled && !unchanged {
        let added = server.engine.add(name, &text, options).await;
        if let (Err(_), Some(before)) = (&added, &running) {
            // The task runs on as it was.
            server.engine.add(name, &before.text, options).await?;
        }
        added?;
    } else if !enabled {
        crate::engine::check_name(name)?;
    }
    let task = StoredTask {
        text,
        options,
        origin: server.engine.origin(name),
        enabled,
    };
    match enabled {
        true => drop(server.disabled.0.lock().remove(name)),
        false => drop(
            server
                .disabled
                .0
                .lock()
                .insert(name.to_owned(), task.clone()),
        ),
    }
    if let Some(store) = server.options.store.clone() {
        let name = name.to_owned();
        let stored = blocking(move || store.put(&name, &task)).await;
        stored.map_err(|error| not_stored(&error))?;
    }
    Ok(())
}

/// Returns a task as kapacitor shows it.
fn shown(server: &Server, name: &str) -> Result<Value, Refusal> {
    let disabled = server.disabled.0.lock().get(name).cloned();
    let (text, status) = match disabled {
        Some(task) => (task.text, None),
        None => {
            let status = server.engine.status(name)?;
            (status.text.clone(), Some(status))
        }
    };
    let created = server.engine.created(name).map(written_time);
    let created = created.unwrap_or_else(|| "0001-01-01T00:00:00Z".into());
    let error = match status.as_ref().map(|status| &status.state) {
        Some(TaskState::Failed { node, reason }) => format!("{node}: {reason}"),
        _ => String::new(),
    };
    let pipeline = language::parse(&text).ok();
    Ok(json!({
        "link": { "rel": "self", "href": format!("/kapacitor/v1/tasks/{name}") },
        "id": name,
        "template-id": "",
        "type": "stream",
        "dbrps": pipeline.as_ref().map(dbrps).unwrap_or_default(),
        "script": text,
        "vars": {},
        "dot": status.as_ref().map(TaskStatus::dot).unwrap_or_default(),
        "status": if status.is_some() { "enabled" } else { "disabled" },
        "executing": status.as_ref().is_some_and(|status| matches!(status.state, TaskState::Running)),
        "error": error,
        "stats": { "task-stats": {}, "node-stats": {} },
        "created": created,
        "modified": created,
        "last-enabled": created,
    }))
}

/// Returns the databases and retention policies from which a pipeline takes points.
fn dbrps(pipeline: &Pipeline) -> Vec<Value> {
    let mut all = Vec::new();
    for node in pipeline.nodes() {
        if let Some(Subscription {
            database: Some(db),
            policy,
            ..
        }) = node.what.get()
        {
            let dbrp = json!({ "db": db, "rp": policy.as_deref().unwrap_or_default() });
            if !all.contains(&dbrp) {
                all.push(dbrp);
            }
        }
    }
    all
}

/// True if a name matches a pattern with `*` and `?`. O(pattern × name).
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut in_name, mut star) = (0, 0, None);
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(&c) if c == b'?' || c == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match &mut star {
                Some((before, taken)) => {
                    *taken += 1;
                    (at, in_name) = (*before + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == b'*')
}

fn bad(message: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "task", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, is) in [
            ("cpu", "cpu", true),
            ("cpu", "cpu1", false),
            ("c*u", "cpppu", true),
            ("*", "", true),
            ("*a*b*", "xaxxbx", true),
            ("*a*b*", "xbxxax", false),
            ("?pu", "cpu", true),
            ("?", "", false),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
    }
}
