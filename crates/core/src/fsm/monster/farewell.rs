//! The end of a run: the FSM sends goodbyes, and receives the pirates' goodbyes and gold.

use super::broadcasts::{Broadcast, Goodbye};
use super::{at_once, end_of_step};
use crate::fsm::{Msg, PirateWatch, Tally, Watch};
use crate::{Addr, AddrRange, Context, Event, Token, Wait};
use std::time::Duration;

/// The token of the timer that fires when nothing has happened for a while.
const SILENCE: Token = Token::new(1);
/// The length of the silence after which no further answers are expected. Without lost messages, answers take far
/// less time, so the length matters only for runs that have lost messages.
const PATIENCE: Duration = Duration::from_secs(1);
/// The token of the timer that marks the end of the messages received so far.
const MARK: Token = Token::new(2);
/// The generations of messages to wait for once all sent messages were handled: answers, coins in flight, and returned
/// coins. Messages that have not arrived after these generations will never arrive.
const GENERATIONS: u32 = 3;

/// The state of the farewell; see the [module](self).
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Farewell {
    pub(super) tally: Tally,
    /// The number of pirates to which a goodbye was sent.
    asked: u32,
    /// True if a message has arrived since the timer of silence was set.
    broken: bool,
    /// True if no message has arrived for a while.
    certain: bool,
    step: Step,
}

/// The current step of the farewell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Step {
    #[default]
    Begin,
    /// Sends goodbyes.
    Ask,
    /// Receives answers before sending more goodbyes.
    TakeIn,
    /// Receives answers after the last goodbye was sent.
    Last,
    /// Waits until all earlier messages have been handled, in this generation.
    Settled(u32),
    /// Receives messages up to the mark of this generation.
    UpToMark(u32),
}

impl Farewell {
    /// Runs the farewell to its next wait; returns [`Wait::End`] when no further message can arrive.
    #[inline(always)]
    pub(super) fn resume<W: Watch, C: Context<Msg>>(
        &mut self,
        event: Option<Event<Msg>>,
        pirates: AddrRange,
        watch: &W,
        recorder: &W::Pirate,
        cx: &mut C,
    ) -> Wait {
        // The usual case comes first.
        if let Some(Event::Message { from, body }) = event
            && matches!(self.step, Step::TakeIn | Step::Last)
        {
            self.broken = true;
            self.hear(from, body, watch, recorder, cx);
            if self.step == Step::TakeIn && !self.certain && self.is_owed_a_chunk(pirates) {
                return Wait::Event;
            }
            return self.resume_without(pirates, cx);
        }
        self.resume_after(event, pirates, watch, recorder, cx)
    }

    /// Runs the farewell to its next wait, after any kind of event.
    #[inline(never)]
    fn resume_after<W: Watch, C: Context<Msg>>(
        &mut self,
        event: Option<Event<Msg>>,
        pirates: AddrRange,
        watch: &W,
        recorder: &W::Pirate,
        cx: &mut C,
    ) -> Wait {
        if let Some(event) = event {
            match (self.step, event) {
                (Step::UpToMark(generation), Event::Timer(MARK)) => {
                    return self.settle(generation + 1);
                }
                (Step::TakeIn | Step::Last, Event::Timer(SILENCE)) => {
                    self.certain = !self.broken;
                    self.broken = false;
                    cx.timer(PATIENCE, SILENCE);
                }
                (step, event) => {
                    self.broken |= matches!(step, Step::TakeIn | Step::Last);
                    self.count(event, watch, recorder, cx);
                }
            }
        }
        self.resume_without(pirates, cx)
    }

    /// Continues the current step without an event.
    #[inline(never)]
    fn resume_without<C: Context<Msg>>(&mut self, pirates: AddrRange, cx: &mut C) -> Wait {
        match self.step {
            Step::Begin => {
                cx.timer(PATIENCE, SILENCE);
                self.ask(pirates, cx)
            }
            Step::Ask => self.ask(pirates, cx),
            Step::TakeIn => match self.before_the_next(pirates) {
                Some(wait) => wait,
                None => self.ask(pirates, cx),
            },
            Step::Last => self.take_in_the_last(),
            Step::Settled(generation) => {
                cx.timer(Duration::ZERO, MARK);
                self.step = Step::UpToMark(generation);
                Wait::Event
            }
            Step::UpToMark(_) => Wait::Event,
        }
    }

    /// Sends the next chunk of goodbyes, if there is one.
    ///
    /// Answers are received while the goodbyes are sent, with at most two chunks outstanding, so memory does
    /// not grow with the population.
    #[inline(never)]
    fn ask<C: Context<Msg>>(&mut self, pirates: AddrRange, cx: &mut C) -> Wait {
        loop {
            if self.asked == pirates.len() {
                self.step = Step::Last;
                return self.take_in_the_last();
            }
            let end = end_of_step(pirates, self.asked);
            let asked = pirates.part(self.asked..end);
            Goodbye.send_to(asked, cx);
            self.asked = end;
            self.step = Step::TakeIn;
            if let Some(wait) = self.before_the_next(pirates) {
                return wait;
            }
        }
    }

    /// Returns the wait before the next chunk of goodbyes.
    fn before_the_next(&mut self, pirates: AddrRange) -> Option<Wait> {
        if self.certain {
            self.step = Step::Ask;
            return Some(Wait::Yield);
        }
        self.is_owed_a_chunk(pirates).then_some(Wait::Event)
    }

    /// True if more than a chunk of goodbyes is unanswered.
    #[inline(always)]
    fn is_owed_a_chunk(&self, pirates: AddrRange) -> bool {
        self.tally.goodbyes + at_once(pirates) < self.asked
    }

    /// Waits for answers until no further answer can arrive. At this time all goodbyes have been sent.
    #[inline]
    fn take_in_the_last(&mut self) -> Wait {
        if self.tally.is_complete() {
            Wait::End
        } else if self.certain {
            self.settle(0)
        } else {
            Wait::Event
        }
    }

    /// Receives all remaining messages, one generation at a time.
    fn settle(&mut self, generation: u32) -> Wait {
        if generation == GENERATIONS {
            return Wait::End;
        }
        self.step = Step::Settled(generation);
        Wait::Settle
    }

    /// Counts a message.
    #[inline(always)]
    fn hear<W: Watch, C: Context<Msg>>(
        &mut self,
        from: Addr,
        body: Msg,
        watch: &W,
        recorder: &W::Pirate,
        cx: &C,
    ) {
        if W::Pirate::MESSAGES {
            recorder.message(cx.now(), cx.me(), &body, &cx.envelope());
        }
        match body {
            Msg::Goodbye { gold } => {
                watch.ended(cx.now(), from);
                self.tally.goodbyes += 1;
                self.tally.returned += u64::from(gold);
            }
            Msg::GoldCoin(gold) => self.tally.salvaged += u64::from(gold),
            Msg::Hello { .. } | Msg::NameDrop { .. } | Msg::Chat { .. } => {}
        }
    }

    /// Counts the contents of an event.
    fn count<W: Watch, C: Context<Msg>>(
        &mut self,
        event: Event<Msg>,
        watch: &W,
        recorder: &W::Pirate,
        cx: &C,
    ) {
        match event {
            Event::Message { from, body } => self.hear(from, body, watch, recorder, cx),
            Event::DeadLetter {
                body: Msg::GoldCoin(gold),
                ..
            } => {
                self.tally.salvaged += u64::from(gold);
            }
            _ => {}
        }
    }
}
