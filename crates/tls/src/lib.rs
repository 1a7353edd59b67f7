//! The certificate of a server, and connections with TLS in both directions.
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use corsair_tls::Certificate;
//!
//! let certificate = Certificate::load("cert.pem".as_ref(), "key.pem".as_ref())?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let (stream, _) = listener.accept().await?;
//! let secured = certificate.accept(stream).await?;
//! # drop(secured);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use parking_lot::RwLock;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// A connection with TLS that a client has opened.
pub type SecuredStream = tokio_rustls::server::TlsStream<TcpStream>;

/// A connection with TLS that this program has opened.
pub type OutgoingStream = tokio_rustls::client::TlsStream<TcpStream>;

/// A certificate with its chain, and its private key. Clones share them, so [`Certificate::reload`] also changes them for
/// a running server.
#[derive(Clone)]
pub struct Certificate(Arc<Files>);

/// The paths of the certificate and the key, and their last contents.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    /// The authority of the clients that have a certificate.
    authority: Option<PathBuf>,
    acceptor: RwLock<TlsAcceptor>,
}

/// The error for a file that cannot be read, or for a certificate and a key that do not belong together.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct CertificateError {
    /// The path of the file.
    pub path: PathBuf,
    /// A description of the fault.
    pub reason: String,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key must not be printed.
        let mut certificate = f.debug_struct("Certificate");
        certificate
            .field("path", &self.0.certificate)
            .finish_non_exhaustive()
    }
}

impl Certificate {
    /// Reads a certificate, its chain, and its private key, from PEM files.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn load(certificate: &Path, key: &Path) -> Result<Certificate, CertificateError> {
        Certificate::load_with_clients(certificate, key, None)
    }

    /// Reads files like [`Certificate::load`], and the certificates of an authority, as PEM. A client may then have a
    /// certificate of this authority, but needs none ([`has_certificate`]).
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn load_with_clients(
        certificate: &Path,
        key: &Path,
        authority: Option<&Path>,
    ) -> Result<Certificate, CertificateError> {
        Ok(Certificate(Arc::new(Files {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            authority: authority.map(Path::to_owned),
            acceptor: acceptor(certificate, key, authority)?.into(),
        })))
    }

    /// Reads all files again, for new connections. Open connections are not affected.
    ///
    /// # Errors
    /// See [`CertificateError`]. After an error the current certificate stays in use.
    pub fn reload(&self) -> Result<(), CertificateError> {
        let Files {
            certificate,
            key,
            authority,
            ..
        } = &*self.0;
        let acceptor = acceptor(certificate, key, authority.as_deref())?;
        *self.0.acceptor.write() = acceptor;
        Ok(())
    }

    /// Performs the handshake with a client, which speaks HTTP/1.1 afterwards.
    ///
    /// # Errors
    /// If the handshake fails, for example because the client does not speak TLS.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<SecuredStream> {
        let acceptor = self.0.acceptor.read().clone();
        acceptor.accept(stream).await
    }
}

/// True if the client has a certificate of the server's authority.
pub fn has_certificate(stream: &SecuredStream) -> bool {
    stream.get_ref().1.peer_certificates().is_some()
}

/// The authority of servers, and the certificate with which this program connects to them.
#[derive(Clone)]
pub struct Connector(TlsConnector);

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key must not be printed.
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Connector {
    /// Reads the certificates of the servers' authority, and the certificate of this program with its key, from PEM
    /// files.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn load(
        authority: &Path,
        certificate: &Path,
        key: &Path,
    ) -> Result<Connector, CertificateError> {
        let (chain, secret) = pair(certificate, key)?;
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(key, error.to_string()))?
            .with_root_certificates(roots(authority)?)
            .with_client_auth_cert(chain, secret)
            .map_err(|error| mismatch(key, error))?;
        Ok(Connector(Arc::new(config).into()))
    }

    /// Performs the handshake with the server that has this name or IP address.
    ///
    /// # Errors
    /// If the handshake fails, for example because the server has a certificate of another authority.
    pub async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<OutgoingStream> {
        let host = host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(io::Error::other)?;
        self.0.connect(name, stream).await
    }
}

fn refused(path: &Path, reason: String) -> CertificateError {
    CertificateError {
        path: path.to_owned(),
        reason,
    }
}

fn mismatch(key: &Path, error: rustls::Error) -> CertificateError {
    refused(
        key,
        format!("{error}; check that the key belongs to the certificate"),
    )
}

/// Reads the certificates in a file.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let chain = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| refused(path, error.to_string()))?;
    if chain.is_empty() {
        let reason = "the file has no certificate, which begins with -----BEGIN CERTIFICATE-----";
        return Err(refused(path, reason.to_owned()));
    }
    Ok(chain)
}

type Pair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Reads a certificate with its chain, and its private key.
fn pair(certificate: &Path, key: &Path) -> Result<Pair, CertificateError> {
    let chain = certificates(certificate)?;
    let secret = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| refused(key, format!("{error}; the file must contain a private key")))?;
    Ok((chain, secret))
}

/// Reads the certificates of an authority.
fn roots(path: &Path) -> Result<RootCertStore, CertificateError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|error| refused(path, error.to_string()))?;
    }
    Ok(roots)
}

fn acceptor(
    certificate: &Path,
    key: &Path,
    authority: Option<&Path>,
) -> Result<TlsAcceptor, CertificateError> {
    let (chain, secret) = pair(certificate, key)?;
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(key, error.to_string()))?;
    let builder = match authority {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let provider = Arc::new(default_provider());
            let verifier =
                WebPkiClientVerifier::builder_with_provider(roots(path)?.into(), provider)
                    .allow_unauthenticated()
                    .build();
            let verifier = verifier.map_err(|error| refused(path, error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder.with_single_cert(chain, secret);
    let mut config = config.map_err(|error| mismatch(key, error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_file_that_is_wrong() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let missing = directory.path().join("missing.pem");
        let empty = write("empty.pem", "");
        let pem = |kind: &str| format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n");
        let certificate = write("certificate.pem", &pem("CERTIFICATE"));
        let key = write("key.pem", &pem("PRIVATE KEY"));
        for (certificate, key, wrong, part) in [
            (&missing, &key, &missing, ""),
            (&empty, &key, &empty, "has no certificate"),
            (&certificate, &empty, &empty, "must contain a private key"),
            (&certificate, &key, &key, "belongs to the certificate"),
        ] {
            let error = Certificate::load(certificate, key).unwrap_err();
            assert_eq!(&error.path, wrong, "{error}");
            assert!(error.reason.contains(part), "{error}");
        }
    }
}
