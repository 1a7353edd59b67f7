//! The nodes of the cluster: the program as it is, with a supervisor and an operator beside it.

use corsair::Random;
use corsair_courier::{MemberRequest, change_members};
use corsair_host::{Fault, HostId, Sim};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

const DATA: &str = "/var/courier";
/// The mark of a node that has left the cluster.
const LEFT: &str = "/var/left";
/// The mark of the first node that it joins another one from now on, and does not begin a cluster.
const JOINS: &str = "/var/joins";
/// The wall clock of a host when a simulation begins, in seconds since 1970.
const EPOCH: Duration = Duration::from_secs(1_735_689_600);

/// A node that leaves the cluster at a time since the beginning, and joins it again.
#[derive(Clone, Copy, Debug)]
pub struct Leave {
    node: u32,
    at: Duration,
}

impl Leave {
    /// Draws the node and the time.
    pub fn draw(random: &mut Random, nodes: u32, from: Duration, length: u32) -> Leave {
        Leave {
            node: random.below(nodes),
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
        let node = sim.host(format!("node-{index}"), move || run(index, leaves));
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
fn run(index: u32, leaves: Option<Duration>) {
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
    let mut line: Vec<_> = std::env::args_os().collect();
    if index == 0 && Path::new(JOINS).exists() {
        line.extend(["--join".into(), address(1).into()]);
    }
    // The supervisor starts the program again, whatever its status is.
    let _ = courier_program::execute(line);
}

/// Does what `corsair-courier leave` does, and ends the program.
fn leave() {
    // The mark must survive a loss of power, as a line in the unit of a service does: with an empty directory the first
    // node would begin another cluster. It changes nothing as long as the directory has data.
    let mark = File::create(JOINS).and_then(|mark| mark.sync_all());
    let directory = File::open("/var").and_then(|directory| directory.sync_all());
    if mark.and(directory).is_err() {
        return;
    }
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
