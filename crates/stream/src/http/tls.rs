//! Connections with TLS, if the crate was built with the feature `tls`.

use std::path::Path;
use tokio::net::TcpStream;

/// A certificate and its private key. Clones share them.
#[derive(Clone)]
pub struct Tls {
    #[cfg(feature = "tls")]
    acceptor: tokio_rustls::TlsAcceptor,
    #[cfg(not(feature = "tls"))]
    never: std::convert::Infallible,
}

/// The reasons why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or the certificate and the key do not belong together.
    #[error("{path}: {reason}")]
    File {
        /// The path of the file.
        path: std::path::PathBuf,
        /// A description of the fault.
        reason: String,
    },
    /// This build has no TLS.
    #[error(
        "this program was built without TLS; build it with `--features corsair-stream/tls`, or let a proxy speak it"
    )]
    NotBuilt,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A key is not printed.
        f.write_str("Tls(…)")
    }
}

/// A connection under TLS.
#[cfg(feature = "tls")]
pub(super) type Secured = tokio_rustls::server::TlsStream<TcpStream>;
#[cfg(not(feature = "tls"))]
pub(super) type Secured = TcpStream;

#[cfg(feature = "tls")]
impl Tls {
    /// Reads a certificate, with its chain, and its private key, from PEM files.
    ///
    /// # Errors
    /// If a file cannot be read, or the two do not belong together.
    pub fn load(certificate: &Path, key: &Path) -> Result<Tls, TlsError> {
        use std::sync::Arc;
        use tokio_rustls::rustls::ServerConfig;
        use tokio_rustls::rustls::crypto::ring::default_provider;
        use tokio_rustls::rustls::pki_types::pem::PemObject;
        use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

        let refused = |path: &Path, reason: String| TlsError::File {
            path: path.to_owned(),
            reason,
        };
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| refused(certificate, error.to_string()))?;
        if chain.is_empty() {
            let reason =
                "it holds no certificate; a certificate begins with -----BEGIN CERTIFICATE-----";
            return Err(refused(certificate, reason.to_owned()));
        }
        let secret = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| refused(key, format!("{error}; it has to hold a private key")))?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret));
        let mut config = config.map_err(|error| {
            refused(key, format!("{error}; is it the key of this certificate?"))
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = Arc::new(config).into();
        Ok(Tls { acceptor })
    }

    /// Performs the TLS handshake with a client.
    pub(super) async fn accept(&self, stream: TcpStream) -> std::io::Result<Secured> {
        self.acceptor.accept(stream).await
    }
}

#[cfg(not(feature = "tls"))]
impl Tls {
    /// Returns an error, because this build has no TLS.
    ///
    /// # Errors
    /// Always.
    pub fn load(_: &Path, _: &Path) -> Result<Tls, TlsError> {
        Err(TlsError::NotBuilt)
    }

    pub(super) async fn accept(&self, _: TcpStream) -> std::io::Result<Secured> {
        match self.never {}
    }
}
