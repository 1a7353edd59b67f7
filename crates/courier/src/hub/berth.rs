//! The actor of an online user: its sockets, and what goes over them.

use super::line::{Around, Line};
use super::{Entry, Shared, Word, lock};
use corsair::{AsyncContext, Event, Token};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use std::task::{Context, Poll};

/// Serves one user after another.
pub(super) async fn berth<C: AsyncContext<Word>>(mut cx: C, shared: Arc<Shared>) {
    let mut served = 0;
    loop {
        let entry = lock(&shared.assigned).remove(&cx.me());
        match entry {
            Some(entry) => {
                served = (served + 1) % (1 << 30);
                Visit::new(entry, &shared, Token::new(served))
                    .serve(&mut cx)
                    .await;
                lock(&shared.free).push(cx.me());
            }
            // What arrives here and is no assignment was for the user before.
            None => drop(cx.recv().await),
        }
    }
}

/// A user's time at a berth.
struct Visit<'s> {
    entry: Arc<Entry>,
    shared: &'s Shared,
    lines: Vec<Line>,
    /// The timer of this visit; those of earlier ones may still fire.
    beat: Token,
}

/// What an actor was woken by.
enum Woken {
    Event(Event<Word>),
    /// A socket has ended.
    Lines,
}

impl<'s> Visit<'s> {
    fn new(entry: Arc<Entry>, shared: &'s Shared, beat: Token) -> Visit<'s> {
        Visit {
            entry,
            shared,
            lines: Vec::new(),
            beat,
        }
    }

    /// Serves the user until there is no socket any more.
    async fn serve<C: AsyncContext<Word>>(mut self, cx: &mut C) {
        cx.timer(self.shared.limits.heartbeat, self.beat);
        loop {
            self.look();
            self.entry.sockets.store(self.lines.len(), Relaxed);
            if self.lines.is_empty() && self.leave() {
                return;
            }
            match self.next(cx).await {
                Woken::Event(event) => self.hear(event, cx),
                Woken::Lines => {}
            }
        }
    }

    /// Waits for an event; meanwhile sockets are read and written. Events that lie there already
    /// are all looked at before anything is written, so that a burst is one write.
    async fn next<C: AsyncContext<Word>>(&mut self, cx: &mut C) -> Woken {
        let mut event = pin!(cx.recv());
        poll_fn(|task| {
            if let Poll::Ready(event) = event.as_mut().poll(task) {
                return Poll::Ready(Woken::Event(event));
            }
            // Before waiting: was anything left out that nothing else will tell of?
            self.look_for_overflow();
            if self.poll_lines(task) {
                return Poll::Ready(Woken::Lines);
            }
            Poll::Pending
        })
        .await
    }

    /// Lets sockets go on; whether one has ended.
    fn poll_lines(&mut self, task: &mut Context<'_>) -> bool {
        let around = Around {
            user: self.entry.user,
            latest: &self.entry.latest,
            shared: self.shared,
        };
        let before = self.lines.len();
        self.lines.retain_mut(|line| {
            let over = line.poll(task, &around).is_ready();
            if over {
                self.shared.metrics.sockets.dec();
            }
            !over
        });
        self.lines.len() < before
    }

    fn hear<C: AsyncContext<Word>>(&mut self, event: Event<Word>, cx: &mut C) {
        match event {
            Event::Message { body, .. } => match body {
                Word::Message {
                    user,
                    sequence,
                    message,
                } if user == self.entry.user => {
                    self.entry.pending.fetch_sub(1, SeqCst);
                    for line in &mut self.lines {
                        line.offer(sequence, &message, &self.shared.metrics);
                    }
                }
                Word::Tidings { user, tidings } if user == self.entry.user => {
                    self.entry.pending.fetch_sub(1, SeqCst);
                    for line in &mut self.lines {
                        line.tell(&tidings.frames);
                    }
                }
                // The rest was for the user before.
                Word::Message { .. } | Word::Tidings { .. } | Word::Look => {}
            },
            Event::Timer(token) if token == self.beat => {
                cx.timer(self.shared.limits.heartbeat, self.beat);
                for line in &mut self.lines {
                    line.beat(&self.shared.metrics);
                }
            }
            _ => {}
        }
    }

    /// Takes what lies aside.
    fn look(&mut self) {
        let mut aside = lock(&self.entry.aside);
        let sockets = std::mem::take(&mut aside.sockets);
        let closed = std::mem::take(&mut aside.closed);
        let close = aside.close;
        drop(aside);
        for socket in sockets {
            self.shared.metrics.sockets.inc();
            self.lines.push(Line::new(socket));
        }
        for line in &mut self.lines {
            if closed.contains(&line.session()) {
                line.close(1008, "this token is not valid any more; log in again");
            }
            if close {
                line.close(1001, "this node is shutting down; connect to another one");
            }
        }
    }

    fn look_for_overflow(&mut self) {
        if self.entry.overflowed.load(Relaxed) && self.entry.overflowed.swap(false, AcqRel) {
            let latest = self.entry.latest.load(Acquire);
            for line in &mut self.lines {
                line.missed(latest);
            }
        }
    }

    /// Takes the user off the list, unless a socket has come in the meantime.
    fn leave(&self) -> bool {
        let mut online = self.shared.online_mut();
        if !lock(&self.entry.aside).sockets.is_empty() {
            return false;
        }
        online.remove(&self.entry.user);
        self.shared.leave(&self.entry);
        true
    }
}
