//! Queues of external receivers, and the sinks that fill them.

use super::definition::Context;
use super::queue::{Body, Counts, Deliver, Queue, SpillTo, Together};
use super::sink::Sink;
use super::spill::Spill;
use crate::batch::Flow;
use corsair::edge::Overflow;

/// The maximum memory of a queue with a disk buffer. It is small, because a checkpoint contains this memory.
const MEMORY_BESIDE_DISK: usize = 4 << 20;

impl Context<'_> {
    /// Creates the queue of an external receiver, with a disk buffer if the engine has disk buffers. `place` is the
    /// index of the queue within the node.
    pub(crate) fn outlet(
        &self,
        place: usize,
        counts: &Counts,
        together: Option<Together>,
        deliver: Deliver,
    ) -> Queue {
        let node = self.name.rsplit(':').next().unwrap_or_default();
        let spill = self.delivery.disk.map(|disk| {
            let directory = disk
                .directory
                .join(&*self.task)
                .join(format!("{node}-{place}"));
            SpillTo {
                spill: Spill::new(directory, disk.bytes),
                counts: counts.clone(),
            }
        });
        let memory = match spill {
            None => self.delivery.memory,
            Some(_) => self.delivery.memory.min(MEMORY_BESIDE_DISK),
        };
        Queue::spilling(self.name.clone(), memory, spill, together, deliver)
    }
}

impl Sink {
    /// Creates a sink that fills its own queue. `delivered` is the name of its counter, and `text` makes the body for a
    /// flow.
    pub(crate) fn to_receiver(
        context: &Context<'_>,
        delivered: &'static str,
        overflow: Option<Overflow>,
        (together, deliver): (Option<Together>, Deliver),
        text: impl Fn(&Flow) -> String + Send + 'static,
    ) -> Sink {
        let counts = Counts::default();
        let queue = context.outlet(0, &counts, together, deliver);
        Sink {
            counters: counts.named(delivered, &queue),
            queue,
            own: Some(counts.clone()),
            overflow: overflow.unwrap_or(context.delivery.overflow),
            body: Box::new(move |flow| Body {
                number: 0,
                text: text(flow),
                count: 1,
                counts: counts.clone(),
                pending: None,
            }),
            posted: 0,
        }
    }
}
