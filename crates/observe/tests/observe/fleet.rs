//! A fleet of clients and servers that record all their events.

use corsair::{
    Actor, Addr, AddrRange, AsyncContext, Config, Context, Event, Executor, Flow, Message, Report,
    Scenario, Spawn, Token, run,
};
use corsair_observe::{
    Clock, Exchange, Exit, FlowFormat, GraphFormat, Metric, Node, Observer, OutputSummary,
    Recorder, ServiceId, Settings, Status, TraceContext,
};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

/// The messages between clients and servers.
#[derive(Message)]
pub enum Msg {
    Begin(AddrRange),
    Put,
    #[message(kind = "GetRequest")]
    Get,
    #[message(kind = "GetResponse")]
    Got,
    Finished,
    Goodbye,
}

const PUT: usize = 1;
const GET: usize = 2;

/// The size of the fleet, and the number of its requests.
#[derive(Clone, Copy, Debug)]
pub struct Fleet {
    pub clients: u32,
    pub servers: u32,
    /// The number of requests of each client.
    pub requests: u32,
}

struct Client {
    recorder: Recorder,
    service: ServiceId,
    index: u32,
    left: u32,
    servers: AddrRange,
    asked: Vec<(u64, TraceContext, u64)>,
}

struct Server {
    recorder: Recorder,
    service: ServiceId,
    index: u32,
    servers: AddrRange,
}

fn node(service: &str, index: u32) -> Node {
    let zone = ["zoneA", "zoneB", "zoneC"][index as usize % 3];
    Node {
        name: format!("fleet.us-east-1.{zone}.{service}{index:02}"),
        container: None,
        full_name: format!("fleet.us-east-1.{zone}..{service}{index:02}...{service}.karyon"),
        service: service.into(),
        package: "karyon".into(),
        region: "us-east-1".into(),
        zone: zone.into(),
    }
}

impl Actor<Msg> for Client {
    fn start<C: Context<Msg>>(&mut self, cx: &mut C) {
        let node = node("client", self.index);
        self.recorder.node(cx.now(), cx.me(), node);
    }

    fn on<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &mut C) -> Flow {
        let (now, me) = (cx.now(), cx.me());
        match event {
            Event::Message { from, body } => {
                let envelope = cx.envelope();
                self.recorder
                    .message(now, me, from, body.kind(), String::new);
                match body {
                    Msg::Begin(servers) => {
                        self.servers = servers;
                        let known = servers.get(cx.below(servers.len()));
                        self.recorder.edge(now, me, known);
                        if cx.below(2) == 0 {
                            self.recorder.forget(now, me, known);
                            self.recorder.edge(now, me, known);
                        }
                        let first = Duration::from_micros(u64::from(cx.below(900)));
                        cx.timer(first, Token::new(0));
                    }
                    Msg::Got => {
                        let answered = envelope.answers.as_u64();
                        let place = self.asked.iter().position(|&(span, ..)| span == answered);
                        let (_, context, sent) = self.asked.swap_remove(place.unwrap());
                        self.recorder.client_receive(now, me, context, Status::Ok);
                        let took = now.as_nanos() - sent;
                        self.recorder.sample(self.service, Metric::Response, took);
                        if self.left == 0 && self.asked.is_empty() {
                            cx.send(cx.parent(), Msg::Finished);
                        }
                    }
                    Msg::Goodbye => {
                        self.recorder.done(now, me, Exit::Normal);
                        return Flow::Stop;
                    }
                    Msg::Put | Msg::Get | Msg::Finished => {}
                }
            }
            Event::Timer(_) if self.left > 0 => {
                self.left -= 1;
                cx.new_trace();
                let server = self.servers.get(cx.below(self.servers.len()));
                let span = cx.request(server, Msg::Get);
                let context = TraceContext::sent(span, None).unwrap();
                self.recorder
                    .client_send(now, me, context, GET, Exchange::Request);
                self.asked.push((span.as_u64(), context, now.as_nanos()));
                cx.timer(Duration::from_micros(500), Token::new(0));
            }
            _ => {}
        }
        Flow::Continue
    }
}

impl Actor<Msg> for Server {
    fn start<C: Context<Msg>>(&mut self, cx: &mut C) {
        let node = node("server", self.index);
        self.recorder.node(cx.now(), cx.me(), node);
    }

    fn on<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &mut C) -> Flow {
        let Event::Message { from, body } = event else {
            return Flow::Continue;
        };
        let (now, me, envelope) = (cx.now(), cx.me(), cx.envelope());
        self.recorder
            .message(now, me, from, body.kind(), String::new);
        let context = TraceContext::of(&envelope).unwrap();
        let network = now.since(envelope.sent).as_nanos() as u64;
        self.recorder.sample(self.service, Metric::Network, network);
        match body {
            Msg::Begin(servers) => self.servers = servers,
            Msg::Get => {
                self.recorder.server_receive(now, me, context, GET);
                let other = self.servers.get(cx.below(self.servers.len()));
                let span = cx.send(other, Msg::Put);
                let put = TraceContext::sent(span, Some(context)).unwrap();
                self.recorder
                    .client_send(now, me, put, PUT, Exchange::OneWay);
                let status = match cx.below(10) {
                    0 => Status::Error,
                    _ => Status::Ok,
                };
                if status == Status::Error {
                    self.recorder.error(self.service);
                }
                self.recorder.server_send(now, me, context, status);
                cx.reply(envelope.reply_handle(), Msg::Got);
            }
            Msg::Put => self.recorder.server_receive(now, me, context, PUT),
            Msg::Goodbye => {
                self.recorder.done(now, me, Exit::Normal);
                return Flow::Stop;
            }
            Msg::Got | Msg::Finished => {}
        }
        Flow::Continue
    }
}

struct Harbour {
    fleet: Fleet,
    recorder: Recorder,
    servers: Recorder,
}

impl Scenario<Msg> for Harbour {
    async fn root<C: AsyncContext<Msg>>(self, mut cx: C) {
        let Harbour {
            fleet,
            recorder,
            servers: told,
        } = self;
        let service = told.service("server");
        let make = move |index| Server {
            recorder: told.clone(),
            service,
            index,
            servers: AddrRange::new(Addr::NONE, 0),
        };
        let servers = cx
            .spawn_actors(Spawn::many(fleet.servers, "server", ""), make)
            .await;
        let service = recorder.service("client");
        let make = move |index| Client {
            recorder: recorder.clone(),
            service,
            index,
            left: fleet.requests,
            servers,
            asked: Vec::new(),
        };
        let clients = cx
            .spawn_actors(Spawn::many(fleet.clients, "client", ""), make)
            .await;
        let all: Vec<Addr> = servers.iter().chain(clients.iter()).collect();
        for &actor in &all {
            cx.send(actor, Msg::Begin(servers));
        }
        for _ in 0..fleet.clients {
            cx.recv_if(|event| {
                matches!(
                    event,
                    Event::Message {
                        body: Msg::Finished,
                        ..
                    }
                )
            })
            .await;
        }
        cx.settle().await;
        for &actor in &all {
            cx.send(actor, Msg::Goodbye);
        }
        cx.settle().await;
    }
}

/// Returns settings with all files, below this directory.
pub fn everything(out: &Path, clock: Clock) -> Settings {
    Settings {
        args: "[fleet]".into(),
        kinds: Msg::KINDS,
        out: out.to_owned(),
        graphs: vec![GraphFormat::Json, GraphFormat::GraphMl, GraphFormat::Gexf],
        flows: vec![FlowFormat::ZipkinV1, FlowFormat::ZipkinV2, FlowFormat::Otlp],
        times: true,
        workers: 2,
        ..Settings::new("fleet", clock)
    }
}

/// Returns a configuration in virtual time for this many workers.
pub fn config(workers: usize) -> Config {
    Config {
        workers: NonZeroUsize::new(workers).unwrap(),
        ..Config::default()
    }
}

impl Fleet {
    /// Runs the fleet, which records events for `observer`.
    pub fn run(self, executor: Executor, config: &Config, observer: &Observer) -> Report {
        let recorder = observer.recorder();
        self.run_with_recorders(executor, config, recorder.clone(), recorder)
    }

    /// Runs the fleet; the servers use another recorder than the clients.
    pub fn run_with_recorders(
        self,
        executor: Executor,
        config: &Config,
        recorder: Recorder,
        servers: Recorder,
    ) -> Report {
        let harbour = Harbour {
            fleet: self,
            recorder,
            servers,
        };
        run(executor, config, harbour).unwrap()
    }

    /// Runs the fleet in virtual time, and writes all files below `out`.
    pub fn observed(self, workers: usize, out: &Path) -> (Report, OutputSummary) {
        let config = config(workers);
        let clock = Clock::Virtual(config.progress.clone());
        let observer = Observer::start(everything(out, clock)).unwrap();
        let report = self.run(Executor::Virtual, &config, &observer);
        (report, observer.finish().unwrap())
    }
}
