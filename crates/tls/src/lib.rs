//! The certificate of a server, and connections with TLS.
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
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A connection with TLS.
pub type SecuredStream = tokio_rustls::server::TlsStream<TcpStream>;

/// A certificate with its chain, and its private key. Clones share them, so [`Certificate::reload`] also changes them for
/// a running server.
#[derive(Clone)]
pub struct Certificate(Arc<Files>);

/// The paths of the certificate and the key, and their last contents.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
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
        Ok(Certificate(Arc::new(Files {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            acceptor: acceptor(certificate, key)?.into(),
        })))
    }

    /// Reads both files again, for new connections. Open connections are not affected.
    ///
    /// # Errors
    /// See [`CertificateError`]. After an error the current certificate stays in use.
    pub fn reload(&self) -> Result<(), CertificateError> {
        let Files {
            certificate, key, ..
        } = &*self.0;
        let acceptor = acceptor(certificate, key)?;
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

fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, CertificateError> {
    let refused = |path: &Path, reason: String| CertificateError {
        path: path.to_owned(),
        reason,
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| refused(certificate, error.to_string()))?;
    if chain.is_empty() {
        let reason = "the file has no certificate, which begins with -----BEGIN CERTIFICATE-----";
        return Err(refused(certificate, reason.to_owned()));
    }
    let secret = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| refused(key, format!("{error}; the file must contain a private key")))?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret));
    let mut config = config.map_err(|error| {
        let reason = format!("{error}; check that the key belongs to the certificate");
        refused(key, reason)
    })?;
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
