//! Connections with TLS, if the program was built with the feature `tls`.

use crate::error::StartError;
use std::path::Path;
use tokio::net::TcpStream;

/// A certificate and its private key. Clones share both, so [`Tls::reload`] also changes them for a running node.
#[derive(Clone, Debug)]
pub struct Tls(
    #[cfg(feature = "tls")] corsair_tls::Certificate,
    #[cfg(not(feature = "tls"))] std::convert::Infallible,
);

/// A TLS connection.
#[cfg(feature = "tls")]
pub(crate) type Secured = corsair_tls::SecuredStream;
#[cfg(not(feature = "tls"))]
pub(crate) type Secured = TcpStream;

/// The certificates with which a member opens connections to others.
#[derive(Clone)]
pub(crate) struct Secure(
    #[cfg(feature = "tls")] corsair_tls::Connector,
    #[cfg(not(feature = "tls"))] std::convert::Infallible,
);

#[cfg(feature = "tls")]
impl From<corsair_tls::CertificateError> for StartError {
    fn from(error: corsair_tls::CertificateError) -> StartError {
        StartError::Tls {
            path: error.path,
            reason: error.reason,
        }
    }
}

#[cfg(feature = "tls")]
impl Secure {
    /// Reads the certificates of the authority of all members, and the certificate of this node with its key.
    ///
    /// # Errors
    /// See [`Tls::load`].
    pub fn load(ca: &Path, certificate: &Path, key: &Path) -> Result<Secure, StartError> {
        Ok(Secure(corsair_tls::Connector::load(ca, certificate, key)?))
    }

    /// Performs the TLS handshake with the member that has this name.
    pub async fn connect(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> std::io::Result<corsair_tls::OutgoingStream> {
        self.0.connect(host, stream).await
    }
}

#[cfg(not(feature = "tls"))]
impl Secure {
    /// Returns an error, because this build has no TLS.
    ///
    /// # Errors
    /// Always.
    pub fn load(_: &Path, certificate: &Path, key: &Path) -> Result<Secure, StartError> {
        Tls::load(certificate, key).map(|tls| match tls.0 {})
    }

    pub async fn connect(&self, _: &str, _: TcpStream) -> std::io::Result<TcpStream> {
        match self.0 {}
    }
}

#[cfg(feature = "tls")]
impl Tls {
    /// Reads a certificate, its chain, and its private key, from PEM files.
    ///
    /// # Errors
    /// If a file cannot be read, or the certificate and the key do not belong together.
    pub fn load(certificate: &Path, key: &Path) -> Result<Tls, StartError> {
        Tls::load_with_members(certificate, key, None)
    }

    /// Reads files like [`Tls::load`], and the certificates of the authority of other members, as PEM.
    ///
    /// # Errors
    /// See [`Tls::load`].
    pub fn load_with_members(
        certificate: &Path,
        key: &Path,
        members: Option<&Path>,
    ) -> Result<Tls, StartError> {
        let loaded = corsair_tls::Certificate::load_with_clients(certificate, key, members);
        Ok(Tls(loaded?))
    }

    /// Reads all files again, for new connections. Open connections are not affected.
    ///
    /// # Errors
    /// See [`Tls::load`]. After an error the current certificate stays in use.
    pub fn reload(&self) -> Result<(), StartError> {
        Ok(self.0.reload()?)
    }

    /// True if the client has a certificate of the authority of the members.
    pub(crate) fn has_certificate(stream: &Secured) -> bool {
        corsair_tls::has_certificate(stream)
    }

    /// Performs the TLS handshake with a client.
    pub(crate) async fn accept(&self, stream: TcpStream) -> std::io::Result<Secured> {
        self.0.accept(stream).await
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
        match self.0 {}
    }

    /// Returns an error, because this build has no TLS.
    ///
    /// # Errors
    /// Always.
    pub fn load_with_members(
        certificate: &Path,
        key: &Path,
        _: Option<&Path>,
    ) -> Result<Tls, StartError> {
        Tls::load(certificate, key)
    }

    pub(crate) fn has_certificate(_: &Secured) -> bool {
        false
    }

    pub(crate) async fn accept(&self, _: TcpStream) -> std::io::Result<Secured> {
        match self.0 {}
    }
}
