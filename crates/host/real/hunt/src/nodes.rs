//! The nodes of the cluster: the program as it is, with a supervisor and an operator beside it.

use corsair::Random;
use corsair_courier::{MemberRequest, change_members};
use corsair_host::{Fault, HostId, Sim};
use std::path::Path;
use std::time::{Duration, SystemTime};

const DATA: &str = "/var/courier";
/// The mark of a node that has left the cluster.
const LEFT: &str = "/var/left";
/// The wall clock of a host when a simulation begins, in seconds since 1970.
const EPOCH: Duration = Duration::from_secs(1_735_689_600);

/// A node that leaves the cluster at a time since the beginning, and joins it again.
#[derive(Clone, Copy, Debug)]
pub struct Leave {
    node: u32,
    at: Duration,
}

impl Leave {
    /// Draws the node and the time. The first node stays, because the others join it.
    pub fn draw(random: &mut Random, nodes: u32, from: Duration, length: u32) -> Leave {
        Leave {
            node: 1 + random.below(nodes - 1),
            at: from + Duration::from_millis(random.below(length).into()),
        }
    }
}

/// Returns the address of a node.
pub fn address(index: u32) -> String {
    format!("node-{index}:8080")
}

/// Adds the nodes: the first begins the cluster, and the others join it.
pub fn add(sim: &mut Sim, count: u32, leave: Option<Leave>) -> Vec<HostId> {
    let mut nodes = Vec::new();
    for index in 0..count {
        let leaves = leave.filter(|leave| leave.node == index);
        let leaves = leaves.map(|leave| leave.at);
        let node = sim.host(format!("node-{index}"), move || run(leaves));
        let mut flags = format!(
            "corsair-courier serve --listen 0.0.0.0:8080 --data {DATA} --password-memory 64 --strangers 1000 --reserve 0 --cluster-key /etc/key --advertise {}",
            address(index)
        );
        if index > 0 {
            flags += &format!(" --join {}", address(0));
            // A node that joins must reach the first one.
            sim.at(Duration::from_nanos(2), Fault::power_loss(&node));
            let start = Duration::from_millis(500 + 200 * u64::from(index));
            sim.at(start, Fault::start(&node));
        }
        sim.args(&node, flags.split(' '));
        sim.file(&node, "/etc/key", "a key that the nodes of a run share");
        nodes.push(node);
    }
    nodes
}

/// Runs the program, and the commands of its operator: a node that has left the cluster joins it again with an empty
/// directory when it is started the next time.
fn run(leaves: Option<Duration>) {
    if Path::new(LEFT).exists() {
        // After a crash in between, the program refuses the old data, and stays out of the cluster.
        let _ = std::fs::remove_dir_all(DATA);
        let _ = std::fs::remove_file(LEFT);
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + EPOCH);
    let left = leaves.and_then(|at| at.checked_sub(now.unwrap_or_default()));
    if let Some(left) = left {
        std::thread::spawn(move || {
            std::thread::sleep(left);
            leave();
        });
    }
    // The supervisor starts the program again, whatever its status is.
    let _ = courier_program::main();
}

/// Does what `corsair-courier leave` does, and ends the program.
fn leave() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let request = change_members(Path::new(DATA), MemberRequest::Leave);
    if runtime.is_ok_and(|runtime| runtime.block_on(request).is_ok()) {
        let _ = std::fs::write(LEFT, "");
        println!("this node has left the cluster");
        std::process::exit(0);
    }
}
