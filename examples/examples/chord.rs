//! Chord: a ring of nodes, each of which knows a few other nodes at exponentially growing distances. The published
//! result (Stoica, Morris, Karger, Kaashoek, Balakrishnan 2001) is that a look-up visits ½ log2 n nodes on average.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::{
    Actor, Addr, AsyncContext, Config, Context, Estimate, Event, Experiment, Flow, Message, Random,
    ReplicationError, Spawn, replicate,
};
use std::sync::Arc;

const NODES: u32 = 1_024;
const LOOKUPS: u32 = 2_000;

#[derive(Clone, Copy, Message)]
enum Msg {
    /// Asks for the node that is responsible for this key. The answer goes to `root`.
    Find {
        key: u32,
        hops: u32,
        root: Addr,
    },
    Found {
        key: u32,
        hops: u32,
    },
}

/// A node, which knows its position on the circle of 2^32 keys and the positions of its fingers.
struct Node {
    id: u32,
    /// The first nodes at or after id + 2^k, without repetition: the distance and the index of each.
    fingers: Vec<(u32, u32)>,
    first: u32,
}

impl Node {
    fn new(ids: &[u32], index: u32) -> Node {
        let id = ids[index as usize];
        let after = |key: u32| ids.partition_point(|id| *id < key) as u32 % NODES;
        let mut fingers: Vec<(u32, u32)> = (0..32)
            .map(|bit| after(id.wrapping_add(1 << bit)))
            .map(|finger| (ids[finger as usize].wrapping_sub(id), finger))
            .collect();
        fingers.dedup();
        // A large spawn begins at a page of addresses.
        Node {
            id,
            fingers,
            first: 256,
        }
    }
}

impl Actor<Msg> for Node {
    fn on<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &mut C) -> Flow {
        if let Event::Message {
            body: Msg::Find { key, hops, root },
            ..
        } = event
        {
            let distance = key.wrapping_sub(self.id);
            if distance <= self.fingers[0].0 {
                // The successor is responsible for the key.
                cx.send(
                    root,
                    Msg::Found {
                        key,
                        hops: hops + 1,
                    },
                );
            } else {
                // Selects the farthest finger before the key.
                let before = self.fingers.partition_point(|(far, _)| *far < distance) - 1;
                let next = Addr::from_u32(self.first + self.fingers[before].1);
                cx.send(
                    next,
                    Msg::Find {
                        key,
                        hops: hops + 1,
                        root,
                    },
                );
            }
        }
        Flow::Continue
    }
}

/// The root, whose result is the mean number of nodes visited by a look-up.
struct Chord {
    seed: u64,
}

impl Experiment<Msg> for Chord {
    type Value = f64;

    async fn root<C: AsyncContext<Msg>>(self, mut cx: C) -> f64 {
        let mut random = Random::new(self.seed);
        let mut ids: Vec<u32> = (0..NODES).map(|_| random.bits() as u32).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(
            ids.len(),
            NODES as usize,
            "two nodes have one place; take another seed"
        );
        let ids: Arc<[u32]> = ids.into();
        let node = move |index| Node::new(&ids, index);
        let nodes = cx.spawn_actors(Spawn::many(NODES, "node", ""), node).await;
        let (root, mut sum) = (cx.me(), 0);
        for _ in 0..LOOKUPS {
            let (key, from) = (cx.random() as u32, nodes.get(cx.below(NODES)));
            cx.send(from, Msg::Find { key, hops: 0, root });
            match cx.recv().await {
                Event::Message {
                    body: Msg::Found { key: found, hops },
                    ..
                } if found == key => {
                    sum += hops;
                }
                _ => panic!("a look-up finds its key"),
            }
        }
        f64::from(sum) / f64::from(LOOKUPS)
    }
}

fn main() -> Result<(), ReplicationError> {
    let runs = replicate(4, &Config::default(), |seed| Chord { seed })?;
    let hops = Estimate::of(runs.iter().map(|run| run.value));
    let theory = f64::from(NODES).log2() / 2.0;
    println!("{hops} nodes on the way; published: about {theory}, and one for the last step");
    assert!((hops.mean() - theory - 0.5).abs() <= 0.75, "{hops}");
    Ok(())
}
