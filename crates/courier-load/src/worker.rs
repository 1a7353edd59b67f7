//! A user who posts the messages of the plan.

use crate::client::Http;
use crate::crowd::{Board, PostTarget};
use crate::pace::Due;
use crate::series::Series;
use crate::{LoadError, Plan, Progress};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::time::{Instant, sleep_until};

/// A user who posts.
pub(crate) struct Worker {
    pub http: Http,
    pub token: String,
    pub rooms: Vec<PostTarget>,
    pub board: Arc<Board>,
    pub plan: Plan,
    pub number: usize,
    pub start: Instant,
    /// The times at which the worker posts, if the plan has a rate.
    pub due: Option<Due>,
    pub progress: Progress,
}

impl Worker {
    /// Posts all messages. Returns the time that each POST took, and the number of expected
    /// deliveries.
    pub async fn run(mut self) -> Result<(Series, u64), LoadError> {
        let (mut series, mut expected) = (Series::new(), 0);
        sleep_until(self.start).await;
        for turn in 0..self.plan.messages {
            let meant = match &mut self.due {
                None => Instant::now(),
                Some(due) => due.recv().await.ok_or_else(|| {
                    LoadError::Task("the pace has ended before the posts".to_owned())
                })?,
            };
            let room = self.rooms[turn % self.rooms.len()];
            let id = self.number * self.plan.messages + turn;
            self.board.meant(id, meant);
            let text = self.board.text(id, self.plan.text);
            self.http
                .post(&self.token, room.conversation, &text, None)
                .await?;
            series.record(meant.elapsed());
            expected += room.recipients;
            self.progress.posted.fetch_add(1, Relaxed);
        }
        Ok((series, expected))
    }
}
