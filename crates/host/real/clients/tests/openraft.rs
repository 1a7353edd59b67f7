//! A cluster of openraft: three nodes keep what they acknowledge through a pause, a partition and a kill.

use corsair_host::{Fault, Sim, SimError};
use openraft::error::{InstallSnapshotError, RPCError, RaftError, RemoteError, Unreachable};
use openraft::network::{RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::storage::Adaptor;
use openraft::{Config, Raft};
use openraft_memstore::{ClientRequest, MemStore, TypeConfig};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};

const NODES: u64 = 3;
const LIMIT: Duration = Duration::from_millis(400);

/// A request to a node; one line of JSON.
#[derive(Serialize, Deserialize)]
enum Ask {
    Append(AppendEntriesRequest<TypeConfig>),
    Snapshot(InstallSnapshotRequest<TypeConfig>),
    Vote(VoteRequest<u64>),
    Write(u64),
    /// The keys that a linearizable read finds.
    Read,
}

async fn ask<T: DeserializeOwned>(node: u64, request: &Ask) -> io::Result<T> {
    let exchange = async {
        let mut stream = BufStream::new(TcpStream::connect(format!("node-{node}:80")).await?);
        stream
            .write_all((serde_json::to_string(request)? + "\n").as_bytes())
            .await?;
        stream.flush().await?;
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        Ok(serde_json::from_str(&line)?)
    };
    tokio::time::timeout(LIMIT, exchange).await?
}

/// The network of a node, and its connection to one other node.
struct Peer(u64);

impl RaftNetworkFactory<TypeConfig> for Peer {
    type Network = Peer;

    async fn new_client(&mut self, target: u64, _: &()) -> Peer {
        Peer(target)
    }
}

impl Peer {
    async fn call<T, E>(&self, request: Ask) -> Result<T, RPCError<u64, (), E>>
    where
        T: DeserializeOwned,
        E: DeserializeOwned + std::error::Error,
    {
        match ask::<Result<T, E>>(self.0, &request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(RPCError::RemoteError(RemoteError::new(self.0, error))),
            Err(error) => Err(RPCError::Unreachable(Unreachable::new(&error))),
        }
    }
}

type Remote<E = openraft::error::Infallible> = RPCError<u64, (), RaftError<u64, E>>;

impl RaftNetwork<TypeConfig> for Peer {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<TypeConfig>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, Remote> {
        self.call(Ask::Append(request)).await
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<TypeConfig>,
        _: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, Remote<InstallSnapshotError>> {
        self.call(Ask::Snapshot(request)).await
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        _: RPCOption,
    ) -> Result<VoteResponse<u64>, Remote> {
        self.call(Ask::Vote(request)).await
    }
}

async fn answer(
    raft: &Raft<TypeConfig>,
    store: &MemStore,
    request: Ask,
) -> serde_json::Result<String> {
    match request {
        Ask::Append(request) => serde_json::to_string(&raft.append_entries(request).await),
        Ask::Snapshot(request) => serde_json::to_string(&raft.install_snapshot(request).await),
        Ask::Vote(request) => serde_json::to_string(&raft.vote(request).await),
        Ask::Write(key) => {
            let write = ClientRequest {
                client: key.to_string(),
                serial: 1,
                status: "written".to_owned(),
            };
            serde_json::to_string(&raft.client_write(write).await.is_ok())
        }
        Ask::Read => {
            let is_leader = raft.ensure_linearizable().await.is_ok();
            let keys = store.get_state_machine().await.client_status.into_keys();
            serde_json::to_string(&is_leader.then(|| keys.collect::<Vec<_>>()))
        }
    }
}

/// The program of a node.
#[tokio::main]
async fn node(id: usize) {
    let config = Config {
        heartbeat_interval: 100,
        election_timeout_min: 300,
        election_timeout_max: 600,
        ..Config::default()
    };
    let store = MemStore::new_async().await;
    let (log, machine) = Adaptor::new(Arc::clone(&store));
    let config = Arc::new(config.validate().unwrap());
    let raft = Raft::new(id as u64, config, Peer(0), log, machine)
        .await
        .unwrap();
    if id == 0 {
        raft.initialize((0..NODES).collect::<BTreeSet<_>>())
            .await
            .unwrap();
    }
    let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
    loop {
        let stream = listener.accept().await.unwrap().0;
        let (raft, store) = (raft.clone(), Arc::clone(&store));
        tokio::spawn(async move {
            let mut stream = BufStream::new(stream);
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            let text = answer(&raft, &store, serde_json::from_str(&line)?).await?;
            stream.write_all((text + "\n").as_bytes()).await?;
            stream.flush().await
        });
    }
}

/// Writes key after key to whichever node accepts it, and prints the accepted keys. At the end it prints the keys that a
/// linearizable read finds.
#[tokio::main]
async fn client() {
    let mut leader = 0;
    for key in 0..150 {
        for _ in 0..NODES {
            if ask(leader, &Ask::Write(key)).await.unwrap_or(false) {
                println!("acknowledged {key}");
                break;
            }
            leader = (leader + 1) % NODES;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for attempt in 0..40 {
        if let Ok(Some(keys)) = ask::<Option<Vec<String>>>(attempt % NODES, &Ask::Read).await {
            keys.iter().for_each(|key| println!("found {key}"));
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("no node answers a linearizable read");
}

#[corsair_host::test(seeds = 10, deterministic = true)]
fn openraft_keeps_what_it_acknowledges(sim: &mut Sim) -> Result<(), SimError> {
    let secs = Duration::from_secs;
    sim.preemption(20);
    let nodes = sim.hosts("node", NODES as usize, node);
    let victim = sim.seed() as usize % nodes.len();
    let [paused, cut, killed] = [0, 1, 2].map(|offset| nodes[(victim + offset) % nodes.len()]);
    let others: Vec<_> = nodes.iter().copied().filter(|node| *node != cut).collect();
    sim.at(secs(2), Fault::pause(&paused));
    sim.at(secs(4), Fault::resume(&paused));
    sim.at(secs(6), Fault::partition(&[cut], &others));
    sim.at(secs(8), Fault::heal(&[cut], &others));
    sim.at(secs(10), Fault::kill(&killed));
    let client = sim.host("client", client);
    sim.run_until(secs(60))?;
    assert_eq!(
        sim.state(&client),
        corsair_host::HostState::Exited(0),
        "{}",
        sim.log()
    );
    let keys = |word: &str| -> BTreeSet<String> {
        let lines = sim.lines();
        let texts = lines.iter().filter_map(|line| line.text.strip_prefix(word));
        texts.map(str::to_owned).collect()
    };
    let (acknowledged, found) = (keys("acknowledged "), keys("found "));
    assert!(acknowledged.len() > 80, "{} of 150", acknowledged.len());
    assert!(
        acknowledged.is_subset(&found),
        "{:?}",
        acknowledged.difference(&found)
    );
    Ok(())
}
