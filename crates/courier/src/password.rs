//! Passwords, hashed with Argon2id on threads for blocking work. At most one hash per core is computed at a time.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;
use tokio::sync::Semaphore;

/// The maximum number of passwords that wait to be hashed or checked.
const MOST_WAITING: usize = 256;

/// Hashes and checks passwords.
#[derive(Debug)]
pub(crate) struct Passwords {
    params: Params,
    turns: Arc<Semaphore>,
    waiting: Semaphore,
    /// The hash of a dummy password, which is checked for unknown users, so that the time of an
    /// answer does not reveal whether a name exists.
    absent: OnceLock<String>,
}

/// The reasons why a password was not hashed or checked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PasswordError {
    #[error("{MOST_WAITING} passwords wait to be checked; try again in a moment")]
    Busy,
    #[error("the password could not be hashed: {0}")]
    Failed(String),
}

impl Passwords {
    /// Creates the hasher, with this memory per hash in KiB, at least 8.
    pub fn new(memory: u32) -> Passwords {
        let params = Params::new(memory.max(Params::MIN_M_COST), 2, 1, None);
        Passwords {
            params: params.unwrap_or_default(),
            turns: Arc::new(Semaphore::new(
                available_parallelism().map_or(1, usize::from),
            )),
            waiting: Semaphore::new(MOST_WAITING),
            absent: OnceLock::new(),
        }
    }

    /// Returns the hash of a password, with its salt and cost.
    pub async fn hash(&self, password: String) -> Result<String, PasswordError> {
        let params = self.params.clone();
        self.blocking(move || hash(params, &password)).await
    }

    /// Checks a password against a hash. Without a hash the check takes the same time and fails.
    pub async fn check(
        &self,
        password: String,
        expected: Option<String>,
    ) -> Result<bool, PasswordError> {
        let params = self.params.clone();
        let known = expected.is_some();
        let expected = match expected {
            Some(expected) => expected,
            None => self.absent().await?,
        };
        let verify = move || {
            let parsed = PasswordHash::new(&expected)
                .map_err(|error| PasswordError::Failed(error.to_string()))?;
            Ok(argon(params)
                .verify_password(password.as_bytes(), &parsed)
                .is_ok())
        };
        Ok(self.blocking(verify).await? && known)
    }

    async fn absent(&self) -> Result<String, PasswordError> {
        if let Some(hash) = self.absent.get() {
            return Ok(hash.clone());
        }
        let made = self.hash("nobody".to_owned()).await?;
        Ok(self.absent.get_or_init(|| made).clone())
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, PasswordError> + Send + 'static,
    ) -> Result<T, PasswordError> {
        let waiting = self.waiting.try_acquire();
        let waiting = waiting.map_err(|_| PasswordError::Busy)?;
        let turn = self.turns.clone().acquire_owned().await;
        drop(waiting);
        let turn = turn.map_err(|error| PasswordError::Failed(error.to_string()))?;
        let task = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        task.await
            .map_err(|error| PasswordError::Failed(error.to_string()))?
    }
}

fn argon(params: Params) -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

fn hash(params: Params, password: &str) -> Result<String, PasswordError> {
    let hash = argon(params).hash_password(password.as_bytes());
    hash.map(|hash| hash.to_string())
        .map_err(|error| PasswordError::Failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_is_right_wrong_or_nobodys() {
        let passwords = Passwords::new(8);
        let hash = passwords.hash("correct horse".to_owned()).await.unwrap();
        assert!(!hash.contains("correct horse"));
        let check = |password: &str, hash| passwords.check(password.to_owned(), hash);
        assert!(check("correct horse", Some(hash.clone())).await.unwrap());
        assert!(!check("battery staple", Some(hash)).await.unwrap());
        assert!(!check("nobody", None).await.unwrap());
    }

    #[tokio::test]
    async fn of_too_many_passwords_at_once_the_rest_is_refused() {
        let passwords = Arc::new(Passwords::new(8));
        let turns = passwords.turns.available_permits() as u32;
        let held = passwords.turns.clone().acquire_many_owned(turns).await;
        let asking: Vec<_> = (0..MOST_WAITING + 10)
            .map(|_| {
                let passwords = passwords.clone();
                tokio::spawn(async move { passwords.hash("correct horse".to_owned()).await })
            })
            .collect();
        while passwords.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        tokio::task::yield_now().await;
        drop(held);
        let mut refused = 0;
        for one in asking {
            refused += u32::from(matches!(one.await.unwrap(), Err(PasswordError::Busy)));
        }
        assert_eq!(refused, 10);
    }
}
