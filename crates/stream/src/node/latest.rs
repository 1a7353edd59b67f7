//! Stores the latest window or point of every group of a node, for readers.

use super::counter::Counters;
use super::retain::RetainedBlocks;
use super::series::{Limits, Series};
use super::state::State;
use crate::batch::{Batch, Flow, Group, Window};
use crate::block::Block;
use crate::json::json;
use parking_lot::Mutex;
use std::sync::Arc;

/// The latest window or point of every group.
#[derive(Clone, Debug)]
pub struct LatestByGroup(Arc<Mutex<LatestFlows>>);

#[derive(Debug)]
struct LatestFlows {
    flows: Series<Flow>,
    retained: RetainedBlocks,
}

impl LatestByGroup {
    pub(crate) fn new(limits: Limits) -> LatestByGroup {
        LatestByGroup(Arc::new(Mutex::new(LatestFlows {
            flows: Series::new(limits),
            retained: RetainedBlocks::new(limits.bytes),
        })))
    }

    pub(crate) fn set(&self, flow: Flow) {
        let mut shown = self.0.lock();
        let LatestFlows { flows, retained } = &mut *shown;
        drop(flows.expired());
        let group = flow.group().clone();
        let beside = flows.bytes();
        let mut room = true;
        for batch in flow.batches() {
            room &= retained.note(&batch.block, beside);
        }
        let points = flow.points();
        let mut new = Some(flow);
        if !room {
            flows.over_memory().add(points);
        } else if let Some(known) =
            flows.entry(&group, points, || new.take().expect("it is set once"))
            && let Some(flow) = new
        {
            *known = flow;
        }
        if retained.is_due() {
            retained.compact(|each| {
                for flow in flows.values_mut() {
                    flow.batches_mut().iter_mut().for_each(&mut *each);
                }
            });
        }
    }

    /// Returns the latest flows as JSON, a series for each group, ordered by the values of the
    /// tags.
    pub fn json(&self) -> Vec<u8> {
        let shown = self.0.lock();
        let mut flows: Vec<Flow> = shown.flows.iter().map(|(_, flow)| flow.clone()).collect();
        drop(shown);
        flows.sort_unstable_by(|a, b| a.group().cmp(b.group()));
        json(&flows).into_bytes()
    }

    /// Returns the state to be saved for the next start.
    pub(crate) fn save(&self) -> State {
        let shown = self.0.lock();
        let saved = |(_, flow): (_, &Flow)| SavedFlow {
            group: (**flow.group()).clone(),
            window: match flow {
                Flow::Points(_) => None,
                Flow::Window(window) => Some((window.end, window.period)),
            },
            blocks: flow.batches().iter().map(Batch::to_block).collect(),
        };
        let mut flows: Vec<SavedFlow> = shown.flows.iter().map(saved).collect();
        drop(shown);
        flows.sort_unstable_by(|a, b| a.group.cmp(&b.group));
        State::new(0, &flows)
    }

    /// Restores the state.
    pub(crate) fn restore(&self, state: &State) {
        for saved in state.read::<Vec<SavedFlow>>().into_iter().flatten() {
            let group = Arc::new(saved.group);
            let batches = saved.blocks.into_iter();
            let mut batches = batches.map(|block| Batch::all(Arc::new(block), group.clone()));
            match saved.window {
                Some((end, period)) => self.set(Flow::Window(Window {
                    end,
                    period,
                    batches: batches.collect(),
                })),
                None => batches
                    .next()
                    .map(Flow::Points)
                    .into_iter()
                    .for_each(|flow| self.set(flow)),
            }
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        self.0.lock().flows.counters()
    }
}

/// The serialized form of a group's latest flow.
#[derive(serde::Serialize, serde::Deserialize)]
struct SavedFlow {
    group: Group,
    /// The end and the length of a window; `None` for points.
    window: Option<(i64, i64)>,
    blocks: Vec<Block>,
}
