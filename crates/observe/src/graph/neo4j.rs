//! The graph in Neo4j, written through the database's HTTP API. Each statement has parameters with many rows.
//!
//! A node has the label `Corsair`, the label of its service, and spigo's properties; an edge is a relationship of type
//! `CONN`. With flows, each exchange is a relationship from the client to the server. The type of the relationship is
//! the kind of the message. The graph of an earlier run of the same architecture is replaced.

use crate::directory::NodeRecord;
use crate::flows::span::{Names, Span};
use crate::{Exit, Loss, Neo4j, ObserveError};
use jiff::Timestamp;

#[cfg(feature = "http")]
pub(crate) use sending::Neo4jGraph;

#[cfg(not(feature = "http"))]
#[derive(Debug)]
pub(crate) enum Neo4jGraph {}

#[cfg(not(feature = "http"))]
impl Neo4jGraph {
    pub(crate) fn connect(_: &Neo4j, _: &str) -> Result<Neo4jGraph, ObserveError> {
        Err(ObserveError::LeftOut {
            what: "Neo4j",
            feature: "http",
        })
    }

    pub(crate) fn node(&mut self, _: Timestamp, _: &NodeRecord<'_>) {
        match *self {}
    }

    pub(crate) fn edge(&mut self, _: Timestamp, _: u32, _: &str, _: &str) {
        match *self {}
    }

    pub(crate) fn forget(&mut self, _: u32, _: &str, _: &str) {
        match *self {}
    }

    pub(crate) fn done(&mut self, _: Timestamp, _: Exit, _: &str) {
        match *self {}
    }

    pub(crate) fn flows(&mut self, _: &Names<'_>, _: &[Span]) {
        match *self {}
    }

    pub(crate) fn end(&mut self) {
        match *self {}
    }

    pub(crate) fn finish(self) -> Option<Loss> {
        match self {}
    }
}

#[cfg(feature = "http")]
mod sending {
    use super::{Exit, Loss, Names, Neo4j, NodeRecord, ObserveError, Span, Timestamp};
    use crate::flows::span::{Hex, NEVER};
    use crate::remote::Remote;
    use crate::remote::http::{DATABASE, Post, url};
    use serde::Deserialize;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    /// The number of events in one transaction.
    const BATCH: u64 = 2_000;

    const WHAT: &str = "Neo4j";

    /// A graph that is being written to a database.
    #[derive(Debug)]
    pub(crate) struct Neo4jGraph {
        remote: Remote,
        arch: String,
        /// The rows that have not been sent, by the label of the service.
        nodes: BTreeMap<String, Vec<Value>>,
        edges: Vec<Value>,
        forgotten: Vec<Value>,
        done: Vec<Value>,
        /// The exchanges that have not been sent, by operation; `None` if the database gets no flows.
        flows: Option<BTreeMap<String, Vec<Value>>>,
        kept: u64,
        events: u64,
    }

    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        errors: Vec<AnswerError>,
    }

    #[derive(Deserialize)]
    struct AnswerError {
        code: String,
        message: String,
    }

    /// The error that the database returns if another run has just created the index. This error is ignored.
    const INDEX_IS_THERE: &str = "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists";

    /// Returns the first error in an answer. The API answers with status 200 even if a statement has failed.
    fn complaint(said: &str) -> Option<String> {
        match serde_json::from_str::<Answer>(said) {
            Ok(answer) => {
                let mut errors = answer.errors.into_iter();
                let first = errors.find(|error| error.code != INDEX_IS_THERE)?;
                Some(format!("{}: {}", first.code, first.message))
            }
            Err(_) => Some("it does not answer as a Neo4j database does".to_owned()),
        }
    }

    /// Quotes a label or a type, which cannot be a parameter. Any text is valid between backticks.
    fn quoted(name: &str) -> String {
        format!("`{}`", name.replace('`', "``"))
    }

    fn statement(text: &str, parameters: Value) -> Value {
        json!({"statement": text, "parameters": parameters})
    }

    fn transaction(statements: &[Value]) -> Vec<u8> {
        json!({ "statements": statements }).to_string().into_bytes()
    }

    impl Neo4jGraph {
        /// Logs in, and removes the graph of this architecture.
        pub(crate) fn connect(database: &Neo4j, arch: &str) -> Result<Neo4jGraph, ObserveError> {
            let url = url(
                WHAT,
                &database.url,
                "/db/neo4j/tx/commit",
                "http://localhost:7474",
            )?;
            let mut post = Post::new(url.clone(), DATABASE).complaint(complaint);
            if let Some(password) = &database.password {
                post = post.login(&database.user, password);
            }
            // Neo4j does not allow the creation of an index in a transaction that changes data.
            let index =
                "CREATE INDEX corsair_node IF NOT EXISTS FOR (n:Corsair) ON (n.arch, n.node)";
            post.check(WHAT, &transaction(&[statement(index, json!({}))]))?;
            let clear = "MATCH (n:Corsair {arch: $arch}) DETACH DELETE n";
            let clear = statement(clear, json!({ "arch": arch }));
            post.check(WHAT, &transaction(&[clear]))?;
            Ok(Neo4jGraph {
                remote: Remote::start(format!("{WHAT} at {}", database.url), "events", post)?,
                arch: arch.to_owned(),
                nodes: BTreeMap::new(),
                edges: Vec::new(),
                forgotten: Vec::new(),
                done: Vec::new(),
                flows: database.flows.then(BTreeMap::new),
                kept: 0,
                events: 0,
            })
        }

        pub(crate) fn node(&mut self, at: Timestamp, shown: &NodeRecord<'_>) {
            let instance = shown.name.rsplit('.').next().unwrap_or(shown.name);
            let row = json!({
                "arch": self.arch, "node": shown.name, "name": instance,
                "package": shown.package, "service": shown.service, "timestamp": at,
                "ip": shown.address, "region": shown.region, "zone": shown.zone,
            });
            let service = shown.service.to_owned();
            self.nodes.entry(service).or_default().push(row);
            self.kept();
        }

        pub(crate) fn edge(&mut self, at: Timestamp, number: u32, source: &str, target: &str) {
            self.edges.push(json!({
                "edge": format!("e{number}"), "source": source, "target": target, "timestamp": at,
            }));
            self.kept();
        }

        pub(crate) fn forget(&mut self, number: u32, source: &str, target: &str) {
            self.forgotten.push(json!({
                "edge": format!("e{number}"), "source": source, "target": target,
            }));
            self.kept();
        }

        pub(crate) fn done(&mut self, at: Timestamp, exit: Exit, node: &str) {
            self.done
                .push(json!({"node": node, "done": at, "exit": exit.word()}));
            self.kept();
        }

        pub(crate) fn flows(&mut self, names: &Names<'_>, spans: &[Span]) {
            for span in spans {
                let ends = (names.placed(span.client), names.placed(span.server));
                let (Some(flows), (Some(source), Some(target))) = (&mut self.flows, ends) else {
                    continue;
                };
                let lasted = span.client_receive.checked_sub(span.client_send);
                let lasted = lasted.filter(|_| span.client_receive != NEVER);
                let row = json!({
                    "source": *source.name, "target": *target.name,
                    "trace": Hex(span.context.trace().get()),
                    "span": Hex(span.context.span().get()),
                    "parent": span.context.parent().map(|parent| Hex(parent.get())),
                    "timenano": span.client_send.min(span.server_receive),
                    "lasted": lasted, "failed": span.failed,
                });
                let kind = names.kind(span.kind).to_owned();
                flows.entry(kind).or_default().push(row);
                self.kept();
            }
        }

        fn kept(&mut self) {
            self.kept += 1;
            if self.kept == BATCH {
                self.end();
            }
        }

        /// Sends the rows that have not been sent: nodes first, because edges and flows need them, and new edges before
        /// forgotten edges.
        pub(crate) fn end(&mut self) {
            if self.kept == 0 {
                return;
            }
            let arch = &self.arch;
            let rows = |text: &str, rows: Vec<Value>| {
                (!rows.is_empty()).then(|| statement(text, json!({"arch": arch, "rows": rows})))
            };
            let nodes = std::mem::take(&mut self.nodes);
            let mut statements: Vec<Value> = nodes
                .into_iter()
                .filter_map(|(service, nodes)| {
                    let label = quoted(&service);
                    let text = format!(
                        "UNWIND $rows AS row MERGE (n:Corsair {{arch: row.arch, node: row.node}}) \
                         SET n += row, n:{label}"
                    );
                    rows(&text, nodes)
                })
                .collect();
            let ends = "UNWIND $rows AS row \
                        MATCH (a:Corsair {arch: $arch, node: row.source}), \
                        (b:Corsair {arch: $arch, node: row.target})";
            let edges = format!(
                "{ends} MERGE (a)-[e:CONN {{edge: row.edge}}]->(b) SET e.timestamp = row.timestamp"
            );
            let forgotten = format!("{ends} MATCH (a)-[e:CONN {{edge: row.edge}}]->(b) DELETE e");
            let done = "UNWIND $rows AS row MATCH (n:Corsair {arch: $arch, node: row.node}) \
                        SET n.done = row.done, n.exit = row.exit";
            statements.extend(rows(&edges, std::mem::take(&mut self.edges)));
            statements.extend(rows(&forgotten, std::mem::take(&mut self.forgotten)));
            statements.extend(rows(done, std::mem::take(&mut self.done)));
            let flows = self.flows.iter_mut().flat_map(std::mem::take);
            statements.extend(flows.filter_map(|(kind, flows)| {
                let kind = quoted(&kind);
                let text = format!(
                    "{ends} CREATE (a)-[f:{kind} {{arch: $arch}}]->(b) SET f.trace = row.trace, \
                     f.span = row.span, f.parent = row.parent, f.timenano = row.timenano, \
                     f.lasted = row.lasted, f.failed = row.failed"
                );
                rows(&text, flows)
            }));
            self.remote.send(transaction(&statements), self.kept);
            self.events += std::mem::take(&mut self.kept);
        }

        /// Waits until the database has received all data. Returns the losses.
        pub(crate) fn finish(self) -> Option<Loss> {
            self.remote.finish(self.events)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn an_index_that_another_run_has_just_made_is_no_error() {
            let said = format!(
                r#"{{"results":[],"errors":[{{"code":"{INDEX_IS_THERE}","message":"exists"}}]}}"#
            );
            assert_eq!(complaint(&said), None);
        }

        #[test]
        fn an_error_within_an_answer_is_one() {
            assert_eq!(complaint(r#"{"results":[],"errors":[]}"#), None);
            let wrong = r#"{"errors":[{"code":"Neo.ClientError","message":"no"}]}"#;
            assert_eq!(complaint(wrong).unwrap(), "Neo.ClientError: no");
            assert!(complaint("<html>").unwrap().contains("does not answer"));
        }

        #[test]
        fn a_wrong_address_is_reported_before_the_run() {
            // A port that was free a moment ago, so that connections are refused.
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap();
            drop(listener);
            let database = Neo4j {
                url: port.to_string(),
                user: "neo4j".into(),
                password: None,
                flows: false,
            };
            let said = Neo4jGraph::connect(&database, "test").unwrap_err();
            assert!(matches!(said, ObserveError::Unreachable { .. }), "{said}");
            assert!(
                said.to_string().contains("Neo4j at http://127.0.0.1"),
                "{said}"
            );
        }
    }
}
