//! The end of the log, requested once for all concurrent readers.
//!
//! Every read of a list waits for earlier messages. One answer of the leader serves all requests that were made before
//! the leader was asked; later requests share the next answer. So only one request is in progress, however many readers
//! there are.

use super::LogError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use tokio::sync::Mutex;

/// The shared requests for the end of the log. See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// The number of requests that were begun.
    begun: AtomicU64,
    /// The answer to the last request, and its number.
    last: Mutex<(u64, Option<Result<u64, LogError>>)>,
}

impl Ends {
    /// Returns the end of the log, from a request that is sent after this call.
    pub async fn ask<F>(&self, ask: impl FnOnce() -> F) -> Result<u64, LogError>
    where
        F: Future<Output = Result<u64, LogError>>,
    {
        let before = self.begun.load(SeqCst);
        let mut last = self.last.lock().await;
        if last.0 > before
            && let Some(answer) = &last.1
        {
            return answer.clone();
        }
        let number = self.begun.fetch_add(1, SeqCst) + 1;
        let answer = ask().await;
        *last = (number, Some(answer.clone()));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::time::sleep;

    #[tokio::test]
    async fn those_who_ask_at_once_share_an_answer_that_is_not_older_than_their_request() {
        let (ends, asked) = (Arc::new(Ends::default()), Arc::new(AtomicU64::new(0)));
        let ask = || {
            let (ends, asked) = (ends.clone(), asked.clone());
            tokio::spawn(async move {
                let before = asked.load(SeqCst);
                let answer = ends.ask(|| async {
                    let answer = asked.fetch_add(1, SeqCst) + 1;
                    sleep(Duration::from_millis(20)).await;
                    Ok(answer)
                });
                let answer = answer.await.unwrap();
                assert!(answer > before, "{answer} was known before");
            })
        };
        let mut waiting = vec![ask()];
        sleep(Duration::from_millis(5)).await;
        waiting.extend((0..1000).map(|_| ask()));
        for one in waiting {
            one.await.unwrap();
        }
        assert!(asked.load(SeqCst) <= 3, "{asked:?}");
    }
}
