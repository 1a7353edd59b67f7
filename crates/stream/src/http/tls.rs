//! Connections with TLS, if the crate was built with the feature `tls`.

use std::io;
use std::path::Path;
use tokio::net::TcpStream;

/// A certificate and its private key. Clones share them.
#[derive(Clone, Debug)]
pub struct Tls(
    #[cfg(feature = "tls")] corsair_tls::Certificate,
    #[cfg(not(feature = "tls"))] std::convert::Infallible,
);

/// The reasons why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or the certificate and the key do not belong together.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Certificate(#[from] corsair_tls::CertificateError),
    /// This build has no TLS.
    #[error(
        "this program was built without TLS; build it with `--features corsair-stream/tls`, or let a proxy speak it"
    )]
    NotBuilt,
}

/// A connection under TLS.
#[cfg(feature = "tls")]
pub(super) type Secured = corsair_tls::SecuredStream;
#[cfg(not(feature = "tls"))]
pub(super) type Secured = TcpStream;

impl Tls {
    /// Reads a certificate, with its chain, and its private key, from PEM files.
    ///
    /// # Errors
    /// If a file cannot be read, or the two do not belong together; always, if this build has no TLS.
    pub fn load(certificate: &Path, key: &Path) -> Result<Tls, TlsError> {
        #[cfg(feature = "tls")]
        return Ok(Tls(corsair_tls::Certificate::load(certificate, key)?));
        #[cfg(not(feature = "tls"))]
        {
            let _ = (certificate, key);
            Err(TlsError::NotBuilt)
        }
    }

    /// Performs the TLS handshake with a client.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<Secured> {
        #[cfg(feature = "tls")]
        return self.0.accept(stream).await;
        #[cfg(not(feature = "tls"))]
        match (self.0, stream) {}
    }
}
