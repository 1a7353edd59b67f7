//! Somebody who posts what the plan says.

use crate::client::Http;
use crate::crowd::{Board, PostTarget};
use crate::pace::Due;
use crate::series::Series;
use crate::{LoadError, Plan, Progress};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::time::{Instant, sleep_until};

/// Somebody who posts.
pub(crate) struct Worker {
    pub http: Http,
    pub token: String,
    pub rooms: Vec<PostTarget>,
    pub board: Arc<Board>,
    pub plan: Plan,
    pub number: usize,
    pub start: Instant,
    /// With a rate: when to post.
    pub due: Option<Due>,
    pub progress: Progress,
}

impl Worker {
    /// Posts all messages: how long each took, and how many are to come out of sockets.
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
