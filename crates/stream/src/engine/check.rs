//! Checks of a task before it is started.

use super::error::TaskError;
use crate::node::endpoint::Endpoints;
use crate::pipeline::Pipeline;
use std::collections::BTreeMap;

/// Refuses a pipeline that posts to an https URL.
pub(super) fn refuse_tls(pipeline: &Pipeline) -> Result<(), TaskError> {
    let secure = |url: &str| {
        url.get(..8)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
    };
    for node in pipeline.nodes() {
        let mut posts = node.what.definition().posts().into_iter();
        if let Some(post) = posts.find(|post| secure(&post.url)) {
            let (node, url) = (node.name.clone(), post.url.clone());
            return Err(TaskError::Tls { node, url });
        }
    }
    Ok(())
}

/// Refuses a pipeline that posts to an endpoint that the server does not have.
pub(super) fn known_endpoints(pipeline: &Pipeline, endpoints: &Endpoints) -> Result<(), TaskError> {
    for node in pipeline.nodes() {
        let posts = node.what.definition().posts().into_iter();
        for name in posts.filter_map(|post| post.endpoint.as_ref()) {
            if endpoints.get(name).is_none() {
                let (node, endpoint) = (node.name.clone(), name.clone());
                return Err(TaskError::Endpoint { node, endpoint });
            }
        }
    }
    Ok(())
}

/// Returns the lengths of the files to which a pipeline appends.
pub(super) fn file_lengths(pipeline: &Pipeline) -> BTreeMap<String, u64> {
    let nodes = pipeline.nodes().iter();
    let files = nodes.flat_map(|node| node.what.definition().files());
    let length = |path: &str| std::fs::metadata(path).map_or(0, |data| data.len());
    files.map(|path| (path.to_string(), length(path))).collect()
}

/// Refuses a name that no task can have.
pub(crate) fn check_name(name: &str) -> Result<(), TaskError> {
    match is_name(name) {
        true => Ok(()),
        false => Err(TaskError::Name(name.into())),
    }
}

/// True if a name needs no escaping in a URL.
fn is_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=128).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(inner)
}
