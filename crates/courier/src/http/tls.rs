//! Connections with TLS, if the program was built with the feature `tls`.

use crate::error::StartError;
use std::path::Path;
use tokio::net::TcpStream;

/// A certificate and its private key. Clones share both, so [`Tls::reload`] also changes them for a running node.
#[derive(Clone)]
pub struct Tls {
    #[cfg(feature = "tls")]
    files: std::sync::Arc<Files>,
    #[cfg(not(feature = "tls"))]
    never: std::convert::Infallible,
}

/// The paths of the certificate and the key, and their last contents.
#[cfg(feature = "tls")]
struct Files {
    certificate: std::path::PathBuf,
    key: std::path::PathBuf,
    acceptor: parking_lot::RwLock<tokio_rustls::TlsAcceptor>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key must not be printed.
        f.write_str("Tls(…)")
    }
}

/// A TLS connection.
#[cfg(feature = "tls")]
pub(super) type Secured = tokio_rustls::server::TlsStream<TcpStream>;
#[cfg(not(feature = "tls"))]
pub(super) type Secured = TcpStream;

#[cfg(feature = "tls")]
impl Tls {
    /// Reads a certificate, its chain, and its private key, from PEM files.
    ///
    /// # Errors
    /// If a file cannot be read, or the certificate and the key do not belong together.
    pub fn load(certificate: &Path, key: &Path) -> Result<Tls, StartError> {
        let files = Files {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            acceptor: Tls::acceptor(certificate, key)?.into(),
        };
        Ok(Tls {
            files: files.into(),
        })
    }

    /// Reads both files again, for new connections. Open connections are not affected.
    ///
    /// # Errors
    /// See [`Tls::load`]. After an error the current certificate stays in use.
    pub fn reload(&self) -> Result<(), StartError> {
        let Files {
            certificate, key, ..
        } = &*self.files;
        let acceptor = Tls::acceptor(certificate, key)?;
        *self.files.acceptor.write() = acceptor;
        Ok(())
    }

    fn acceptor(certificate: &Path, key: &Path) -> Result<tokio_rustls::TlsAcceptor, StartError> {
        use std::sync::Arc;
        use tokio_rustls::rustls::ServerConfig;
        use tokio_rustls::rustls::crypto::ring::default_provider;
        use tokio_rustls::rustls::pki_types::pem::PemObject;
        use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

        let refused = |path: &Path, reason: String| StartError::Tls {
            path: path.to_owned(),
            reason,
        };
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| refused(certificate, error.to_string()))?;
        if chain.is_empty() {
            let reason =
                "the file has no certificate, which begins with -----BEGIN CERTIFICATE-----";
            return Err(refused(certificate, reason.to_owned()));
        }
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| {
            refused(key, format!("{error}; the file must contain a private key"))
        })?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret));
        let mut config = config.map_err(|error| {
            refused(
                key,
                format!("{error}; check that the key belongs to the certificate"),
            )
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config).into())
    }

    /// Performs the TLS handshake with a client.
    pub(super) async fn accept(&self, stream: TcpStream) -> std::io::Result<Secured> {
        let acceptor = self.files.acceptor.read().clone();
        acceptor.accept(stream).await
    }
}

#[cfg(not(feature = "tls"))]
impl Tls {
    /// Returns an error, because this build has no TLS.
    ///
    /// # Errors
    /// Always.
    pub fn load(_: &Path, _: &Path) -> Result<Tls, StartError> {
        let reason = "this program was built without TLS; build it with the feature `tls`, or use a proxy for TLS";
        Err(StartError::Setting(reason.to_owned()))
    }

    /// Does nothing, because no certificate was loaded.
    ///
    /// # Errors
    /// Never.
    pub fn reload(&self) -> Result<(), StartError> {
        match self.never {}
    }

    pub(super) async fn accept(&self, _: TcpStream) -> std::io::Result<Secured> {
        match self.never {}
    }
}
