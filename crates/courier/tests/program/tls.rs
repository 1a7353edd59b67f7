//! Clients that use TLS, and clients that do not.
#![cfg(feature = "tls")]

use crate::PROGRAM;
use crate::terminal::{Terminal, signal};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A self-signed certificate for `localhost`, valid for a hundred years.
const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/node.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/node.key");

/// Another certificate for `localhost`, and its key.
const RENEWED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/renewed.pem");
const RENEWED_KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/renewed.key");

/// Starts a node, and returns it with its address.
fn node(terminal: &Terminal) -> (Child, String) {
    node_with(terminal, CERTIFICATE, KEY)
}

fn node_with(terminal: &Terminal, certificate: &str, key: &str) -> (Child, String) {
    node_with_flags(terminal, certificate, key, "")
}

fn node_with_flags(
    terminal: &Terminal,
    certificate: &str,
    key: &str,
    flags: &str,
) -> (Child, String) {
    let line =
        format!("serve --listen 127.0.0.1:0 --tls-cert {certificate} --tls-key {key} {flags}");
    let mut node = terminal
        .command(&line)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let stdout = node.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut said).unwrap();
    let host = said.split("https://").nth(1).unwrap();
    let host = host.split(',').next().unwrap().to_owned();
    (node, host)
}

/// Returns the answer to a client that trusts the certificate.
async fn asked(host: &str, request: &str) -> String {
    asked_trusting(CERTIFICATE, host, request).await.unwrap()
}

/// Returns the answer to a client that trusts only this certificate.
async fn asked_trusting(certificate: &str, host: &str, request: &str) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(certificate).unwrap())
        .unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = tokio::net::TcpStream::connect(host).await.unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let name = "localhost".try_into().unwrap();
    let mut stream = connector.connect(name, stream).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    // TLS reports an error if the peer closes the connection without notice.
    let _ = stream.read_to_end(&mut answer).await;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[tokio::test]
async fn a_hangup_has_the_certificate_read_again() {
    let terminal = Terminal::new(PROGRAM);
    let place = |name: &str| terminal.directory.path().join(name);
    let (certificate, key) = (place("cert.pem"), place("key.pem"));
    std::fs::copy(CERTIFICATE, &certificate).unwrap();
    std::fs::copy(KEY, &key).unwrap();
    let (mut node, host) = node_with(&terminal, "cert.pem", "key.pem");
    let ping = "GET /ping HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert!(asked(&host, ping).await.ends_with("pong"));
    // A certificate that does not match the key changes nothing.
    std::fs::copy(RENEWED, &certificate).unwrap();
    signal("-HUP", &node);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(asked(&host, ping).await.ends_with("pong"));
    std::fs::copy(RENEWED_KEY, &key).unwrap();
    signal("-HUP", &node);
    let begun = std::time::Instant::now();
    loop {
        let answer = asked_trusting(RENEWED, &host, ping).await;
        if answer.is_ok_and(|answer| answer.ends_with("pong")) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(asked_trusting(CERTIFICATE, &host, ping).await.is_err());
    signal("-TERM", &node);
    assert_eq!(node.wait().unwrap().code(), Some(0));
}

#[tokio::test]
async fn a_node_speaks_tls_with_those_who_do_and_not_with_others() {
    let terminal = Terminal::new(PROGRAM);
    let (mut node, host) = node(&terminal);
    // A client that sends nothing does not block other clients.
    let silent = TcpStream::connect(&host).unwrap();
    let mut plain = TcpStream::connect(&host).unwrap();
    plain
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    plain
        .write_all(b"GET /ping HTTP/1.1\r\nhost: x\r\n\r\n")
        .unwrap();
    let mut heard = Vec::new();
    let _ = plain.read_to_end(&mut heard);
    assert!(!String::from_utf8_lossy(&heard).contains("pong"));
    let ping = "GET /ping HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let answer = asked(&host, ping).await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("pong"),
        "{answer}"
    );
    drop(silent);
    signal("-TERM", &node);
    assert_eq!(node.wait().unwrap().code(), Some(0));
}

#[test]
fn certificates_that_are_none_are_refused_by_name() {
    let terminal = Terminal::new(PROGRAM);
    let refused = |certificate: &str, key: &str| {
        terminal.refuse(&format!("serve --tls-cert {certificate} --tls-key {key}"))
    };
    let said = refused("/nowhere.pem", KEY);
    assert!(said.contains("/nowhere.pem"), "{said}");
    let said = refused(KEY, KEY);
    assert!(said.contains("certificate"), "{said}");
    let said = refused(CERTIFICATE, CERTIFICATE);
    assert!(said.contains("private key"), "{said}");
    let said = terminal.refuse(&format!("serve --tls-cert {CERTIFICATE}"));
    assert!(said.contains("--tls-key"), "{said}");
    assert!(Path::new(CERTIFICATE).exists());
}

// Guarantee: courier-12.
#[tokio::test]
async fn a_node_without_a_certificate_is_not_taken_for_a_member() {
    let terminal = Terminal::new(PROGRAM);
    std::fs::write(terminal.directory.path().join("key"), "0123456789abcdef").unwrap();
    let flags =
        format!("--data data --cluster-key key --cluster-ca {CERTIFICATE} --advertise localhost:1");
    let (mut node, host) = node_with_flags(&terminal, CERTIFICATE, KEY, &flags);
    let request = "GET /cluster HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nupgrade: corsair-courier-cluster\r\n\r\n";
    let answer = asked(&host, request).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(answer.contains("--cluster-ca"), "{answer}");
    signal("-TERM", &node);
    node.wait().unwrap();
}
