//! The effects of commands on sessions and their accounts.

use super::lookalikes;
use super::machine::{Machine, SideEffects};
use super::queue::Queues;
use super::row::{checked, decode, encode, number, session_key};
use super::tables::Tables;
use crate::command::{CommandResult, MOST_SESSIONS, Outcome, Refusal};
use crate::model::{Millis, Session, SessionId, User, UserId};
use redb::ReadableTable;

impl Machine {
    pub(super) fn open_session(
        &mut self,
        tables: &mut Tables<'_>,
        id: SessionId,
        session: &Session,
    ) -> Result<Outcome, redb::Error> {
        let user = session.user;
        if user.0 == 0 || user.0 > self.state.users {
            return Ok(Err(Refusal::UnknownUser(user)));
        }
        // A new session begins at the highest acknowledgement of the user's sessions.
        if let Some(sequence) = acknowledged_by_user(tables, user)? {
            let row = number(&session_key(id.0), sequence);
            tables.session_acks.insert(id.0, row)?;
        }
        let row = encode(&session_key(id.0), session, &mut self.scratch);
        tables.sessions.insert(id.0, row)?;
        tables.user_sessions.insert((user.0, id.0), ())?;
        Ok(Ok(CommandResult::Noted))
    }

    /// Deletes an account, unless its password was changed in the meantime. Its number and its messages stay.
    pub(super) fn delete_user(
        &mut self,
        tables: &mut Tables<'_>,
        id: UserId,
        before: &str,
        caused: &mut SideEffects,
    ) -> Result<Outcome, redb::Error> {
        let Some(row) = tables.users.get(id.0)?.map(|row| row.value().to_vec()) else {
            return Ok(Err(Refusal::UnknownUser(id)));
        };
        let user: User = decode("user", &[id.0], &row)?;
        if user.password != before {
            return Ok(Err(Refusal::PasswordChanged));
        }
        if tables.names.remove(user.name.as_str())?.is_some() {
            lookalikes::remove(tables, &user.name)?;
        }
        let gone = User {
            name: String::new(),
            password: String::new(),
            created: user.created,
        };
        let row = encode(&[id.0], &gone, &mut self.scratch);
        tables.users.insert(id.0, row)?;
        close_all_but(tables, id, None, caused)?;
        let memberships = tables.memberships.range((id.0, 0)..=(id.0, u64::MAX))?;
        let memberships = memberships.map(|row| Ok(row?.0.value()));
        for place in memberships.collect::<Result<Vec<_>, redb::Error>>()? {
            tables.memberships.remove(place)?;
        }
        Ok(Ok(CommandResult::Noted))
    }

    /// Changes the password of a session's user, unless it was changed in the meantime.
    pub(super) fn change_password(
        &mut self,
        tables: &mut Tables<'_>,
        id: UserId,
        kept: SessionId,
        password: String,
        before: &str,
        caused: &mut SideEffects,
    ) -> Result<Outcome, redb::Error> {
        let Some(row) = tables.users.get(id.0)?.map(|row| row.value().to_vec()) else {
            return Ok(Err(Refusal::UnknownUser(id)));
        };
        let mut user: User = decode("user", &[id.0], &row)?;
        if user.password != before {
            return Ok(Err(Refusal::PasswordChanged));
        }
        user.password = password;
        let row = encode(&[id.0], &user, &mut self.scratch);
        tables.users.insert(id.0, row)?;
        close_all_but(tables, id, Some(kept), caused)?;
        Ok(Ok(CommandResult::Noted))
    }
}

/// Returns the highest sequence that any session of a user has acknowledged.
pub(super) fn acknowledged_by_user(
    tables: &Tables<'_>,
    user: UserId,
) -> Result<Option<u64>, redb::Error> {
    let row = tables.user_acks.get(user.0)?.map(|at| at.value());
    row.map(|row| checked("place of user", &[user.0], row))
        .transpose()
}

/// Closes a session, which need not exist.
pub(super) fn close(
    tables: &mut Tables<'_>,
    user: UserId,
    session: SessionId,
    caused: &mut SideEffects,
) -> Result<(), redb::Error> {
    tables.sessions.remove(session.0)?;
    tables.session_acks.remove(session.0)?;
    tables.user_sessions.remove((user.0, session.0))?;
    caused.closed.push((user, session));
    Ok(())
}

/// Closes all sessions of a user except one.
pub(super) fn close_all_but(
    tables: &mut Tables<'_>,
    user: UserId,
    kept: Option<SessionId>,
    caused: &mut SideEffects,
) -> Result<(), redb::Error> {
    for session in of(tables, user)? {
        if Some(session) != kept {
            close(tables, user, session, caused)?;
        }
    }
    Ok(())
}

/// Removes the session of a user that expires first, if the user has the maximum number.
pub(super) fn make_room(
    tables: &mut Tables<'_>,
    user: UserId,
    caused: &mut SideEffects,
) -> Result<(), redb::Error> {
    let all = of(tables, user)?;
    if all.len() < MOST_SESSIONS {
        return Ok(());
    }
    let mut by_end: Vec<(Millis, SessionId)> = Vec::with_capacity(all.len());
    for session in all {
        let expires = match tables.sessions.get(session.0)? {
            Some(row) => {
                let key = session_key(session.0);
                decode::<Session>("session", &key, row.value())?.expires
            }
            None => Millis(0),
        };
        by_end.push((expires, session));
    }
    by_end.sort_unstable();
    let over = by_end.len() + 1 - MOST_SESSIONS;
    for (_, session) in by_end.into_iter().take(over) {
        close(tables, user, session, caused)?;
    }
    Ok(())
}

/// Removes from a user's queue the messages that all active sessions have acknowledged, after one of them has
/// acknowledged this sequence.
pub(super) fn forget_acknowledged(
    tables: &mut Tables<'_>,
    user: UserId,
    sequence: u64,
    at: Millis,
) -> Result<(), redb::Error> {
    if !Queues::begins_before(tables, user, sequence)? {
        return Ok(());
    }
    let mut all = sequence;
    for session in of(tables, user)? {
        let key = session_key(session.0);
        if let Some(row) = tables.sessions.get(session.0)?
            && decode::<Session>("session", &key, row.value())?.expires <= at
        {
            continue;
        }
        let row = tables.session_acks.get(session.0)?.map(|row| row.value());
        let acknowledged = row.map(|row| checked("place of session", &key, row));
        all = all.min(acknowledged.transpose()?.unwrap_or(0));
    }
    Queues::remove(tables, user, all)
}

fn of(tables: &Tables<'_>, user: UserId) -> Result<Vec<SessionId>, redb::Error> {
    let range = (user.0, [0; 16])..=(user.0, [u8::MAX; 16]);
    let rows = tables.user_sessions.range(range)?;
    rows.map(|row| Ok(SessionId(row?.0.value().1))).collect()
}
