//! Who a token belongs to.

use crate::index::{Index, IndexError};
use crate::model::{Millis, Session, SessionId, UserId};
use crate::token::Token;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

/// The cache is emptied when it holds this many.
const CACHED: usize = 1 << 20;

/// Sessions that were asked for, so that a request need not read the index.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    known: RwLock<HashMap<SessionId, CachedSession>>,
    /// How many were closed so far: what was read before one was is not put into the cache.
    closed: AtomicU64,
    closing: Mutex<()>,
}

#[derive(Clone, Debug)]
struct CachedSession {
    session: Session,
    name: Arc<str>,
}

impl CachedSession {
    /// Who shows this token, if it is good.
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

/// A user who has shown a token that is good.
#[derive(Clone, Debug)]
pub(crate) struct Bearer {
    pub user: UserId,
    pub name: Arc<str>,
    pub session: SessionId,
    pub expires: Millis,
}

impl Sessions {
    /// Whose token it is, if its session is in the cache: `Some(None)` if the token is wrong.
    pub fn cached(&self, token: &Token) -> Option<Option<Bearer>> {
        let known = self.known.read();
        let known = known.get(&token.session).cloned()?;
        Some(known.bearer(token))
    }

    /// Whose token it is; `None` if it is not valid, or not any more.
    pub async fn find(&self, token: &Token, index: &Index) -> Result<Option<Bearer>, IndexError> {
        if let Some(found) = self.cached(token) {
            return Ok(found);
        }
        // Boxed, because it is rare and would enlarge every request's future.
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

    /// This session is over.
    pub fn forget(&self, id: SessionId) {
        let closing = self.closing.lock();
        self.closed.fetch_add(1, SeqCst);
        let mut known = self.known.write();
        known.remove(&id);
        drop(closing);
    }
}
