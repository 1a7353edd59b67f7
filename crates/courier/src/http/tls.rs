//! Connections with TLS, if the program was built with the feature `tls`.

use crate::error::StartError;
use std::path::Path;
#[cfg(feature = "tls")]
use std::sync::Arc;
use tokio::net::TcpStream;
#[cfg(feature = "tls")]
use tokio_rustls::rustls::{
    self, ClientConfig, RootCertStore, ServerConfig,
    crypto::ring::default_provider,
    pki_types::pem::PemObject,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    server::WebPkiClientVerifier,
};

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
    /// The authority whose certificates other members have.
    members: Option<std::path::PathBuf>,
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
fn refused(path: &Path, reason: String) -> StartError {
    StartError::Tls {
        path: path.to_owned(),
        reason,
    }
}

#[cfg(feature = "tls")]
fn mismatch(key: &Path, error: rustls::Error) -> StartError {
    refused(
        key,
        format!("{error}; check that the key belongs to the certificate"),
    )
}

/// Reads the certificates in a file.
#[cfg(feature = "tls")]
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, StartError> {
    let chain = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| refused(path, error.to_string()))?;
    if chain.is_empty() {
        let reason = "the file has no certificate, which begins with -----BEGIN CERTIFICATE-----";
        return Err(refused(path, reason.to_owned()));
    }
    Ok(chain)
}

/// Reads a certificate with its chain, and its private key.
#[cfg(feature = "tls")]
fn pair(
    certificate: &Path,
    key: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), StartError> {
    let chain = certificates(certificate)?;
    let secret = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| refused(key, format!("{error}; the file must contain a private key")))?;
    Ok((chain, secret))
}

/// Reads the certificates of an authority.
#[cfg(feature = "tls")]
fn authority(path: &Path) -> Result<RootCertStore, StartError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|error| refused(path, error.to_string()))?;
    }
    Ok(roots)
}

/// The certificates with which a member opens connections to others.
#[derive(Clone)]
pub(crate) struct Secure {
    #[cfg(feature = "tls")]
    connector: tokio_rustls::TlsConnector,
    #[cfg(not(feature = "tls"))]
    never: std::convert::Infallible,
}

#[cfg(feature = "tls")]
impl Secure {
    /// Reads the certificates of the authority of all members, and the certificate of this node with its key.
    ///
    /// # Errors
    /// See [`Tls::load`].
    pub fn load(ca: &Path, certificate: &Path, key: &Path) -> Result<Secure, StartError> {
        let (chain, secret) = pair(certificate, key)?;
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(key, error.to_string()))?
            .with_root_certificates(authority(ca)?)
            .with_client_auth_cert(chain, secret)
            .map_err(|error| mismatch(key, error))?;
        Ok(Secure {
            connector: Arc::new(config).into(),
        })
    }

    /// Performs the TLS handshake with the member that has this name.
    pub async fn connect(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let host = host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(std::io::Error::other)?;
        self.connector.connect(name, stream).await
    }
}

#[cfg(not(feature = "tls"))]
impl Secure {
    /// Returns an error, because this build has no TLS.
    ///
    /// # Errors
    /// Always.
    pub fn load(_: &Path, certificate: &Path, key: &Path) -> Result<Secure, StartError> {
        Tls::load(certificate, key).map(|tls| match tls.never {})
    }

    pub async fn connect(&self, _: &str, _: TcpStream) -> std::io::Result<TcpStream> {
        match self.never {}
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
        let files = Files {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            members: members.map(Path::to_owned),
            acceptor: Tls::acceptor(certificate, key, members)?.into(),
        };
        Ok(Tls {
            files: files.into(),
        })
    }

    /// Reads all files again, for new connections. Open connections are not affected.
    ///
    /// # Errors
    /// See [`Tls::load`]. After an error the current certificate stays in use.
    pub fn reload(&self) -> Result<(), StartError> {
        let Files {
            certificate,
            key,
            members,
            ..
        } = &*self.files;
        let acceptor = Tls::acceptor(certificate, key, members.as_deref())?;
        *self.files.acceptor.write() = acceptor;
        Ok(())
    }

    fn acceptor(
        certificate: &Path,
        key: &Path,
        members: Option<&Path>,
    ) -> Result<tokio_rustls::TlsAcceptor, StartError> {
        let (chain, secret) = pair(certificate, key)?;
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(key, error.to_string()))?;
        let builder = match members {
            None => builder.with_no_client_auth(),
            Some(ca) => {
                let provider = Arc::new(default_provider());
                // Clients need no certificate.
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(authority(ca)?.into(), provider)
                        .allow_unauthenticated()
                        .build();
                let verifier = verifier.map_err(|error| refused(ca, error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(chain, secret);
        let mut config = config.map_err(|error| mismatch(key, error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config).into())
    }

    /// True if the client has a certificate of the authority of the members.
    pub(super) fn has_certificate(&self, stream: &Secured) -> bool {
        self.files.members.is_some() && stream.get_ref().1.peer_certificates().is_some()
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

    pub(super) fn has_certificate(&self, _: &Secured) -> bool {
        match self.never {}
    }

    pub(super) async fn accept(&self, _: TcpStream) -> std::io::Result<Secured> {
        match self.never {}
    }
}
