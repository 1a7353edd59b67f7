//! A service and its client that use most of a runtime: TLS, HTTP, threads, locks. It is compiled into several programs
//! with different allocators.

use axum::Router;
use axum::routing::get;
use corsair_host::{Fault, HostState, Sim, SimError};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

const AUTHORITY: &[u8] = include_bytes!("../certificates/authority.pem");
const CERTIFICATE: &[u8] = include_bytes!("../certificates/server.pem");
const KEY: &[u8] = include_bytes!("../certificates/server.key");

/// Serves axum behind rustls, on tokio's default runtime.
#[tokio::main]
async fn serve() {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let mut settings = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    settings.alpn_protocols = vec![b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(settings));
    let routes = Router::new().route(
        "/hash/{text}",
        get(
            |axum::extract::Path(text): axum::extract::Path<String>| async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                // Computes on the pool of blocking threads.
                tokio::task::spawn_blocking(move || format!("{text} {}", text.len()))
                    .await
                    .unwrap()
            },
        ),
    );
    let listener = tokio::net::TcpListener::bind("0.0.0.0:443").await.unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (acceptor, routes) = (acceptor.clone(), routes.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let service = hyper_util::service::TowerToHyperService::new(routes);
            let stream = hyper_util::rt::TokioIo::new(stream);
            let connection = hyper::server::conn::http1::Builder::new();
            let _ = connection.serve_connection(stream, service).await;
        });
    }
}

/// Sends requests with reqwest and rustls.
#[tokio::main]
async fn ask(name: usize) {
    let authority = reqwest::Certificate::from_pem(AUTHORITY).unwrap();
    let client = reqwest::Client::builder()
        .tls_built_in_root_certs(false)
        .add_root_certificate(authority)
        .timeout(Duration::from_secs(1))
        .build()
        .unwrap();
    let (mut answered, mut failed) = (0, 0);
    for round in 0..25 {
        let ask = |number: usize| {
            let client = client.clone();
            let text = format!("{name}-{round}-{number}");
            tokio::spawn(async move {
                let request = client.get(format!("https://server/hash/{text}"));
                let answer = request.send().await?.error_for_status()?.text().await?;
                assert_eq!(answer, format!("{text} {}", text.len()));
                Ok::<(), reqwest::Error>(())
            })
        };
        for task in [ask(0), ask(1), ask(2)] {
            match task.await.unwrap() {
                Ok(()) => answered += 1,
                Err(error) => {
                    println!("{error:?}");
                    failed += 1;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
    println!("answered {answered}, failed {failed}");
    assert!(answered >= 40, "{answered}");
}

/// Adds two clients, and a server that is killed once, and runs the simulation.
pub fn scenario(sim: &mut Sim) -> Result<(), SimError> {
    sim.preemption(20);
    let server = sim.host("server", || {
        rustls::crypto::ring::default_provider()
            .install_default()
            .unwrap();
        serve();
    });
    let clients = sim.hosts("client", 2, |name| {
        rustls::crypto::ring::default_provider()
            .install_default()
            .unwrap();
        ask(name);
    });
    sim.at(Duration::from_millis(150), Fault::kill(&server));
    sim.at(Duration::from_millis(800), Fault::start(&server));
    sim.run_until(Duration::from_secs(60))?;
    for client in &clients {
        assert_eq!(sim.state(client), HostState::Exited(0), "{}", sim.log());
    }
    assert!(sim.log().contains("Connection refused"), "{}", sim.log());
    Ok(())
}
