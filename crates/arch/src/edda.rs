//! The actor `edda`, which logs when nodes and edges appear, are removed, or end.

use crate::log;
use crate::message::Msg;
use crate::model::Model;
use crate::saved::state;
use corsair::{Actor, Addr, Context, Event, Flow};
use corsair_observe::Exit;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The log of nodes and edges.
#[derive(Debug)]
pub(crate) struct Edda {
    model: Arc<Model>,
    first: u32,
    /// The registered instances, and whether each is up.
    nodes: FxHashMap<u32, bool>,
    collapse: bool,
}

state!(Edda {
    first,
    nodes,
    collapse
});

impl Edda {
    pub(crate) fn new(model: &Arc<Model>, collapse: bool) -> Edda {
        Edda {
            model: Arc::clone(model),
            first: 0,
            nodes: FxHashMap::default(),
            collapse,
        }
    }

    /// Returns the index of this actor among all actors. Instances have the lowest indices.
    pub(crate) fn index(&self) -> u32 {
        self.model.edda()
    }

    fn address(&self, node: u32) -> Addr {
        Addr::from_u32(self.first + node)
    }
}

impl Actor<Msg> for Edda {
    fn start<C: Context<Msg>>(&mut self, cx: &mut C) {
        self.first = cx.me().as_u32() - self.model.edda();
    }

    fn on<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &mut C) -> Flow {
        let Event::Message { from, body } = event else {
            return Flow::Continue;
        };
        log::received(&self.model, &body, cx);
        let now = cx.now();
        let recorder = &self.model.recorder;
        match body {
            Msg::Register { node } => {
                // The scenario has recorded every instance at its creation, so only instances that left and register
                // again are recorded here.
                let before = self.nodes.insert(node, true);
                if before == Some(false) && recorder.wants_graph() {
                    let about = log::describe(&self.model, node, self.collapse);
                    recorder.node(now, self.address(node), about);
                }
            }
            Msg::Delete { node, killed } => {
                let before = self.nodes.insert(node, false);
                if before != Some(false) {
                    let exit = if killed { Exit::Killed } else { Exit::Normal };
                    recorder.done(now, self.address(node), exit);
                }
            }
            Msg::Edge { source, target } => {
                recorder.edge(now, self.address(source), self.address(target));
            }
            Msg::ForgetEdge { source, target } => {
                recorder.forget(now, self.address(source), self.address(target));
            }
            Msg::Goodbye => {
                cx.send(from, Msg::Goodbye);
                return Flow::Stop;
            }
            _ => {}
        }
        Flow::Continue
    }
}
