//! The secret that all processes of a run share, and what is proved with it.
//!
//! It is never sent. Each side of a connection sends a fresh random number, and shows that it knows the
//! secret by a keyed hash (BLAKE3) of both; what it is hashed with says who connects and who listens, so that
//! nothing can be sent back to who sent it. From the same numbers come keys for the frames that follow.

use crate::ClusterError;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The shortest and the longest secret, in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=4096;

/// What all processes of a run know and nothing else does.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Reads a file, without the end of its last line.
    ///
    /// # Errors
    /// If it cannot be read, is shorter than 16 bytes or longer than 4096.
    pub fn read(path: &Path) -> Result<Secret, ClusterError> {
        let failed = |why| ClusterError::SecretFile {
            path: path.to_owned(),
            why,
        };
        let mut text = Vec::new();
        let file = File::open(path).map_err(failed)?;
        let mut file = file.take(*LENGTHS.end() as u64 + 2);
        file.read_to_end(&mut text).map_err(failed)?;
        Secret::new(&text)
    }

    /// A secret of these bytes, without the end of the last line.
    ///
    /// # Errors
    /// If they are fewer than 16 or more than 4096.
    pub fn new(text: &[u8]) -> Result<Secret, ClusterError> {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if !LENGTHS.contains(&text.len()) {
            return Err(ClusterError::Secret {
                length: text.len(),
                least: *LENGTHS.start(),
                most: *LENGTHS.end(),
            });
        }
        Ok(Secret(blake3::derive_key("corsair-cluster 1 secret", text)))
    }

    /// What shows that one side of a connection knows the secret.
    pub(crate) fn proof(&self, side: Side, nonces: &Nonces) -> blake3::Hash {
        self.hash(b"proof", side, nonces)
    }

    /// The key of the frames that one side sends.
    pub(crate) fn key(&self, side: Side, nonces: &Nonces) -> [u8; 32] {
        self.hash(b"frame", side, nonces).into()
    }

    fn hash(&self, purpose: &[u8; 5], side: Side, nonces: &Nonces) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(purpose).update(&[side as u8]);
        hasher.update(&nonces.connector).update(&nonces.listener);
        hasher.finalize()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Connector = 1,
    Listener = 2,
}

impl Side {
    pub(crate) fn other(self) -> Side {
        match self {
            Side::Connector => Side::Listener,
            Side::Listener => Side::Connector,
        }
    }
}

/// The random numbers of both sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nonces {
    pub(crate) connector: [u8; 32],
    pub(crate) listener: [u8; 32],
}

/// Random bytes of the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], ClusterError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| ClusterError::Random(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_have_sixteen_bytes_at_least_and_do_not_show() {
        assert!(Secret::new(b"fifteen bytes..\n").is_err());
        assert!(Secret::new(&[7; 4097]).is_err());
        let secret = Secret::new(b"sixteen bytes...\r\n").unwrap();
        assert_eq!(secret.0, Secret::new(b"sixteen bytes...").unwrap().0);
        assert_eq!(format!("{secret:?}"), "Secret");
    }

    // Guarantee: cluster-2.
    #[test]
    fn proofs_differ_by_secret_side_and_both_numbers() {
        let secret = |text: &str| Secret::new(text.as_bytes()).unwrap();
        let nonces = |connector, listener| Nonces {
            connector: [connector; 32],
            listener: [listener; 32],
        };
        let a = secret("one secret or other");
        let proofs = [
            a.proof(Side::Connector, &nonces(1, 2)),
            a.proof(Side::Listener, &nonces(1, 2)),
            a.proof(Side::Connector, &nonces(2, 2)),
            a.proof(Side::Connector, &nonces(1, 1)),
            a.proof(Side::Connector, &nonces(2, 1)),
            secret("one secret or another").proof(Side::Connector, &nonces(1, 2)),
            blake3::Hash::from(a.key(Side::Connector, &nonces(1, 2))),
        ];
        for (number, proof) in proofs.iter().enumerate() {
            assert!(!proofs[..number].contains(proof), "{number}");
        }
    }
}
