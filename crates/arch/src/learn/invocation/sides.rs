//! The side of spans that do not state it: client or server.

use crate::learn::read::{Side, Span};
use rustc_hash::{FxHashMap, FxHashSet};

/// Infers the side of spans without one. A span with a parent in another service, or without a parent, is a
/// server. A span with children in another service, and no side yet, is their client. All others are
/// internal.
pub(super) fn infer(trace: &mut [Span]) {
    let is_open = |side: Side| matches!(side, Side::Unknown | Side::Internal);
    if !trace.iter().any(|span| is_open(span.side)) {
        return;
    }
    let mut services: FxHashMap<u64, u32> = FxHashMap::default();
    for span in trace.iter() {
        services.entry(span.id).or_insert(span.service);
    }
    let mut calls: FxHashSet<u64> = FxHashSet::default();
    for span in trace.iter() {
        let Some(&of_parent) = services.get(&span.parent) else {
            continue;
        };
        if of_parent != span.service && !span.side.is_client() {
            calls.insert(span.parent);
        }
    }
    for span in trace.iter_mut().filter(|span| is_open(span.side)) {
        let of_parent = services.get(&span.parent);
        let comes_in = match of_parent {
            Some(&of_parent) => of_parent != span.service,
            None => span.side == Side::Unknown,
        };
        span.side = match (comes_in, span.side) {
            (true, _) => Side::Server,
            (false, Side::Unknown) if calls.contains(&span.id) => Side::Client,
            _ => Side::Internal,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(id: u64, parent: u64, service: u32, side: Side) -> Span {
        Span {
            trace: 1,
            id,
            parent,
            side,
            failed: false,
            refused: false,
            key: 0,
            service,
            instance: service,
            region: 0,
            operation: 0,
            peer: None,
            begin: 0,
            end: 1,
            weight: 1.0,
        }
    }

    #[test]
    fn sides_follow_from_the_services_of_parents_and_children() {
        let unknown = Side::Unknown;
        let mut trace = [
            span(1, 0, 1, unknown),
            span(2, 1, 1, unknown),
            span(3, 2, 2, unknown),
            span(4, 3, 2, unknown),
            span(5, 9, 2, unknown),
            span(6, 3, 3, Side::Internal),
            span(7, 3, 2, Side::Internal),
        ];
        infer(&mut trace);
        let (server, client, internal) = (Side::Server, Side::Client, Side::Internal);
        let sides: Vec<Side> = trace.iter().map(|span| span.side).collect();
        assert_eq!(
            sides,
            [server, client, server, internal, server, server, internal]
        );
    }
}
