//! tonic's client and server, over a connection that is cut and comes back.

use corsair_host::{Fault, HostState, Sim, SimError};
use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tonic::body::Body;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::{Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

#[derive(Clone, PartialEq, prost::Message)]
struct Text {
    #[prost(string, tag = "1")]
    text: String,
}

#[derive(Clone)]
struct Echo;

impl UnaryService<Text> for Echo {
    type Response = Text;
    type Future = Ready<Result<Response<Text>, Status>>;

    fn call(&mut self, request: Request<Text>) -> Self::Future {
        ready(Ok(Response::new(request.into_inner())))
    }
}

impl NamedService for Echo {
    const NAME: &'static str = "test.Echo";
}

/// The code that tonic's generator would write for a service with one method.
impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let codec = ProstCodec::<Text, Text>::default();
        Box::pin(async move { Ok(Grpc::new(codec).unary(Echo, request).await) })
    }
}

#[tokio::main]
async fn serve() {
    let address = "0.0.0.0:50051".parse().unwrap();
    Server::builder()
        .add_service(Echo)
        .serve(address)
        .await
        .unwrap();
}

async fn call(channel: Channel, text: String) -> Result<String, Status> {
    let mut client = tonic::client::Grpc::new(channel);
    client
        .ready()
        .await
        .map_err(|error| Status::unavailable(error.to_string()))?;
    let path = PathAndQuery::from_static("/test.Echo/Say");
    let codec = ProstCodec::<Text, Text>::default();
    let answer = client
        .unary(Request::new(Text { text }), path, codec)
        .await?;
    Ok(answer.into_inner().text)
}

#[tokio::main]
async fn ask() {
    let endpoint = Endpoint::from_static("http://server:50051")
        .http2_keep_alive_interval(Duration::from_millis(300))
        .keep_alive_timeout(Duration::from_millis(400))
        .keep_alive_while_idle(true)
        .timeout(Duration::from_secs(2));
    let channel = endpoint.connect_lazy();
    let (mut answered, mut failed) = (0, 0);
    for number in 0..60 {
        match call(channel.clone(), format!("call {number}")).await {
            Ok(text) => {
                assert_eq!(text, format!("call {number}"));
                answered += 1;
            }
            Err(status) => {
                println!("{:?}: {}", status.code(), status.message());
                failed += 1;
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("answered {answered}, failed {failed}");
    assert!(answered > 20 && failed > 0);
}

#[corsair_host::test(seeds = 3, deterministic = true)]
fn tonic_survives_a_kill_and_a_partition(sim: &mut Sim) -> Result<(), SimError> {
    let server = sim.host("server", serve);
    let client = sim.host("client", ask);
    let ms = Duration::from_millis;
    sim.at(ms(500), Fault::kill(&server));
    sim.at(ms(800), Fault::start(&server));
    sim.at(ms(1500), Fault::partition(&[server], &[client]));
    sim.at(ms(2800), Fault::heal(&[server], &[client]));
    sim.run_until(Duration::from_secs(60))?;
    assert_eq!(sim.state(&client), HostState::Exited(0), "{}", sim.log());
    Ok(())
}
