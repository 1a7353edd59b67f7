//! Looks up the user of a token.

use crate::index::{Index, IndexError};
use crate::model::{Millis, Session, SessionId, UserId};
use crate::token::Token;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

/// The number of entries at which the cache is emptied.
const CACHED: usize = 1 << 20;

/// A cache of sessions, so that a request need not read the index.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    known: RwLock<HashMap<SessionId, CachedSession>>,
    /// The number of sessions closed so far: a session that was read before a close is not cached.
    closed: AtomicU64,
    closing: Mutex<()>,
}

#[derive(Clone, Debug)]
struct CachedSession {
    session: Session,
    name: Arc<str>,
}

impl CachedSession {
    /// Returns the user of this token, if the token is valid.
    fn bearer(self, token: &Token) -> Option<Bearer> {
        let good = token.proves(&self.session.proof) && Millis::now() < self.session.expires;
        good.then_some(Bearer {
            user: self.session.user,
            name: self.name,
            session: token.session,
            expires: self.session.expires,
        })
    }
}

/// A user with a valid token.
#[derive(Clone, Debug)]
pub(crate) struct Bearer {
    pub user: UserId,
    pub name: Arc<str>,
    pub session: SessionId,
    pub expires: Millis,
}

impl Sessions {
    /// Returns the user of a token, if its session is cached: `Some(None)` if the token is wrong.
    pub fn cached(&self, token: &Token) -> Option<Option<Bearer>> {
        let known = self.known.read();
        let known = known.get(&token.session).cloned()?;
        Some(known.bearer(token))
    }

    /// Returns the user of a token; `None` if the token is not valid, or no longer valid.
    pub async fn find(&self, token: &Token, index: &Index) -> Result<Option<Bearer>, IndexError> {
        if let Some(found) = self.cached(token) {
            return Ok(found);
        }
        // The future is boxed, because it is rarely used and would enlarge the future of every request.
        let known = Box::pin(self.look_up(token.session, index)).await?;
        Ok(known.and_then(|known| known.bearer(token)))
    }

    async fn look_up(
        &self,
        id: SessionId,
        index: &Index,
    ) -> Result<Option<CachedSession>, IndexError> {
        let closed = self.closed.load(SeqCst);
        let Some(session) = index.session(id).await? else {
            return Ok(None);
        };
        let name = index.name(session.user).await?.unwrap_or_default().into();
        let known = CachedSession { session, name };
        let closing = self.closing.lock();
        if self.closed.load(SeqCst) == closed {
            let mut all = self.known.write();
            if all.len() >= CACHED {
                all.clear();
            }
            all.insert(id, known.clone());
        }
        drop(closing);
        Ok(Some(known))
    }

    /// Removes a closed session.
    pub fn forget(&self, id: SessionId) {
        let closing = self.closing.lock();
        self.closed.fetch_add(1, SeqCst);
        let mut known = self.known.write();
        known.remove(&id);
        drop(closing);
    }
}
