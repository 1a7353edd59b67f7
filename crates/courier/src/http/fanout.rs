//! Rate limits of messages to many recipients.

use super::problem::Problem;
use crate::inner::Inner;
use crate::limits::{FEW, MOST_FANOUT};
use crate::model::UserId;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// The maximum wait of a message to many recipients for its turn.
const TURN: Duration = Duration::from_secs(10);

/// Applies the rate limit to a message, or to a new conversation, by the number of its recipients. A message to many
/// recipients waits until it gets permits; other such messages may then have to wait. Messages to few recipients do not
/// wait.
pub(super) async fn admit(
    node: &Inner,
    user: UserId,
    recipients: u32,
) -> Result<Option<OwnedSemaphorePermit>, Problem> {
    if let Err(wait) = node.rates.recipients(user, recipients) {
        node.metrics.refuse("fanout");
        let most = node.limits.fanout;
        let message = format!(
            "your messages and conversations have more than {most} recipients per second; wait a moment"
        );
        return Err(Problem::too_many("fanout", message, wait));
    }
    if recipients < FEW {
        return Ok(None);
    }
    let turn = node.fanout.clone();
    let turn = Box::pin(tokio::time::timeout(
        TURN,
        turn.acquire_many_owned(recipients.min(MOST_FANOUT)),
    ));
    match turn.await {
        Ok(Ok(turn)) => Ok(Some(turn)),
        _ => {
            node.metrics.refuse("busy");
            let message =
                "too many messages to many recipients are in progress; try again in a moment";
            Err(Problem::busy("busy", message, Duration::from_secs(1)))
        }
    }
}
