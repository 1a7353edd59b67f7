//! The work that every contender does: the pirates and the Flying Spaghetti Monster of
//! [`corsair::fsm`] as plain state machines, without a runtime.
//!
//! A contender provides actors, mailboxes and addresses. This library decides, in the same way for all contenders,
//! which messages are sent, in which order and with which random numbers, and which results are correct:
//!
//! 1. N pirates are created.
//! 2. *Delivery*: the FSM sends each pirate five messages ([`Fsm::messages`]). The last pirate to receive all five
//!    ([`Muster`]) notifies the FSM. The rate is computed from the time between the first message and the arrival of
//!    this notification.
//! 3. *Farewell*: the FSM sends each pirate a Goodbye, each pirate answers with its state, and the FSM adds up the
//!    answers.
//! 4. [`Run::check`]: there must be N answers, every pirate must have received six messages, and all gold must be
//!    returned.

mod fsm;
mod pirate;
mod run;

pub use fsm::{Fsm, Next};
pub use pirate::{Answer, Farewell, Message, Muster, Pirate};
pub use run::{Load, Run, RunError};
