//! The Flying Spaghetti Monster: the messages that it sends, and the results that it counts.

use crate::pirate::DELIVERY;
use crate::{Answer, Farewell, Load, Message, Run};
use corsair::Random;
use std::time::{Duration, Instant};

/// The number of messages that every pirate must receive: those of its delivery, and the Goodbye.
const SEEN: u32 = DELIVERY + 1;

/// The FSM's state.
#[derive(Debug)]
pub struct Fsm {
    load: Load,
    random: Random,
    began: Instant,
    delivery: Duration,
    given: u64,
    returned: u64,
    goodbyes: u32,
    complete: u32,
}

/// The next step of the FSM after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Wait for more answers.
    Wait,
    /// Say Goodbye to every pirate.
    SayGoodbye,
    /// End: everybody has answered.
    Exit,
}

impl Fsm {
    /// The name of the giver of the gold in the delivery; no pirate has this name.
    const NAME: u32 = u32::MAX;

    /// Creates the FSM just before the delivery; its clock starts here.
    pub fn new(load: Load) -> Fsm {
        Fsm {
            load,
            random: Random::new(load.seed),
            began: Instant::now(),
            delivery: Duration::ZERO,
            given: 0,
            returned: 0,
            goodbyes: 0,
            complete: 0,
        }
    }

    /// Returns the delivery to the pirate `name`. Call it in the order of names, so that the random
    /// numbers of a load are the same in every contender.
    ///
    /// # Panics
    /// If the load has fewer than two pirates.
    #[inline]
    pub fn messages<P: Clone, F>(
        &mut self,
        name: u32,
        crew: &[P],
        me: F,
    ) -> [Message<P, F>; DELIVERY as usize] {
        let somebody = |name: u32| Message::NameDrop {
            name,
            address: crew[name as usize].clone(),
        };
        let (first, second) = (self.other_than(name), self.other_than(name));
        let coins = self.random.below(100);
        let period = 100 + self.random.below(9_900);
        self.given += u64::from(coins);
        [
            Message::Hello { name, fsm: me },
            somebody(first),
            somebody(second),
            Message::GoldCoin {
                coins,
                from: Fsm::NAME,
            },
            Message::Chat { period },
        ]
    }

    /// Returns the name of a random pirate other than `name`.
    #[inline]
    fn other_than(&mut self, name: u32) -> u32 {
        let other = self.random.below(self.load.pirates - 1);
        other + u32::from(other >= name)
    }

    /// Counts an answer.
    #[inline]
    pub fn on(&mut self, answer: Answer) -> Next {
        match answer {
            Answer::Delivered => {
                self.delivery = self.began.elapsed();
                Next::SayGoodbye
            }
            Answer::Goodbye(Farewell { booty, seen }) => {
                self.goodbyes += 1;
                self.returned += u64::from(booty);
                self.complete += u32::from(seen == SEEN);
                if self.goodbyes == self.load.pirates {
                    Next::Exit
                } else {
                    Next::Wait
                }
            }
        }
    }

    /// Returns the result of the run.
    pub fn finish(&self) -> Run {
        Run {
            delivery: self.delivery,
            given: self.given,
            returned: self.returned,
            goodbyes: self.goodbyes,
            complete: self.complete,
            peak_memory: 0,
        }
    }

    /// Returns the gold that the FSM gives away in a run of this load, on any runtime.
    pub fn gold(load: Load) -> u64 {
        let mut fsm = Fsm::new(load);
        let nowhere = vec![(); load.pirates as usize];
        for name in 0..load.pirates {
            fsm.messages(name, &nowhere, ());
        }
        fsm.given
    }
}
