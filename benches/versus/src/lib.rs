//! The work that every contender does: the pirates and the Flying Spaghetti Monster of
//! [`corsair::fsm`] as plain state machines, without a runtime.
//!
//! A contender brings actors, mailboxes and addresses. What is said, in which order, with which
//! random numbers, and what must have come out of it at the end is decided here, once for all:
//!
//! 1. N pirates are created.
//! 2. *Delivery*: the FSM sends each five messages ([`Fsm::messages`]). The pirate that is the
//!    last to have all five ([`Muster`]) notifies the FSM; between the first sending and the arrival
//!    of that answer lies the time from which the rate is reckoned.
//! 3. *Farewell*: the FSM sends each a Goodbye, each answers with what it has, the FSM counts.
//! 4. [`Run::check`]: N answers, six messages seen by everybody, and all gold returned.

mod fsm;
mod pirate;
mod run;

pub use fsm::{Fsm, Next};
pub use pirate::{Answer, Farewell, Message, Muster, Pirate};
pub use run::{Load, Run, RunError};
