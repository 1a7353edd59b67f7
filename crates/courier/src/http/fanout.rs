//! What goes to many: charged by its recipients, and bounded in what is under way.

use super::problem::Problem;
use crate::inner::Inner;
use crate::limits::{FEW, MOST_FANOUT};
use crate::model::UserId;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

/// How long what goes to many waits for its turn.
const TURN: Duration = Duration::from_secs(10);
/// The longest rest after a turn.
const LONGEST_REST: Duration = Duration::from_millis(100);

/// The turn of what goes to many, held until its outcome is known. Then there is a rest of the same length
/// before it is another's: so what goes to many takes half of the time at most, whatever the machine is, and
/// there is time for what goes to few, and for those who are told.
pub(super) struct Turn {
    permit: Option<OwnedSemaphorePermit>,
    begun: Instant,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let rest = self.begun.elapsed().min(LONGEST_REST);
        let permit = self.permit.take();
        // When the runtime ends, no other turn comes.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(rest).await;
                drop(permit);
            });
        }
    }
}

/// Counts a message, or a new conversation, by its recipients. One of many waits for its turn; what goes to few does not wait for those.
pub(super) async fn admit(
    node: &Inner,
    user: UserId,
    recipients: u32,
) -> Result<Option<Turn>, Problem> {
    if let Err(wait) = node.rates.recipients(user, recipients) {
        node.metrics.refuse("fanout");
        let most = node.limits.fanout;
        let message = format!(
            "your messages and conversations have more than {most} recipients a second; wait a moment"
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
        Ok(Ok(permit)) => Ok(Some(Turn {
            permit: Some(permit),
            begun: Instant::now(),
        })),
        _ => {
            node.metrics.refuse("busy");
            let message =
                "too many messages to many recipients are under way; try again in a moment";
            Err(Problem::busy("busy", message, Duration::from_secs(1)))
        }
    }
}
