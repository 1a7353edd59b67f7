//! Who a token belongs to.

use crate::hub::lock;
use crate::index::{Index, IndexError};
use crate::model::{Millis, Session, SessionId, UserId};
use crate::token::Token;
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The cache is emptied when it holds so many.
const CACHED: usize = 1 << 20;

/// Sessions that were asked for, so that a request need not read the index.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    known: RwLock<HashMap<SessionId, Known>>,
    /// How many were closed so far: what was read before one was is not put into the cache.
    closed: AtomicU64,
    closing: Mutex<()>,
}

#[derive(Clone, Debug)]
struct Known {
    session: Session,
    name: Arc<str>,
}

/// Somebody who has shown a token that is good.
#[derive(Clone, Debug)]
pub(crate) struct Bearer {
    pub user: UserId,
    pub name: Arc<str>,
    pub session: SessionId,
}

impl Sessions {
    /// Whose token it is; `None` if it is nobody's, or not any more.
    pub async fn find(&self, token: &Token, index: &Index) -> Result<Option<Bearer>, IndexError> {
        let cached = self.cached(token.session);
        let known = match cached {
            Some(known) => known,
            // Seldom, so that the futures of requests need no room for it.
            None => match Box::pin(self.look_up(token.session, index)).await? {
                Some(known) => known,
                None => return Ok(None),
            },
        };
        let good = token.proves(&known.session.proof) && Millis::now() < known.session.expires;
        Ok(good.then_some(Bearer {
            user: known.session.user,
            name: known.name,
            session: token.session,
        }))
    }

    fn cached(&self, id: SessionId) -> Option<Known> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&id).cloned()
    }

    async fn look_up(&self, id: SessionId, index: &Index) -> Result<Option<Known>, IndexError> {
        let closed = self.closed.load(SeqCst);
        let Some(session) = index.session(id).await? else {
            return Ok(None);
        };
        let name = index.name(session.user).await?.unwrap_or_default().into();
        let known = Known { session, name };
        let closing = lock(&self.closing);
        if self.closed.load(SeqCst) == closed {
            let mut all = self.known.write().unwrap_or_else(PoisonError::into_inner);
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
        let closing = lock(&self.closing);
        self.closed.fetch_add(1, SeqCst);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.remove(&id);
        drop(closing);
    }
}
