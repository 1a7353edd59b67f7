//! The messages of the FSM and the pirates, which take eight bytes.

use crate::{Addr, Message};
use std::num::NonZeroU16;
use std::time::Duration;

/// A message of the FSM or a pirate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Message)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, crate::Plain)
)]
pub enum Msg {
    /// Tells a pirate its index; the sender is the FSM.
    Hello {
        /// The index of the pirate's name.
        name: u32,
    },
    /// Introduces a possible buddy.
    NameDrop {
        /// The address of the possible buddy.
        buddy: Addr,
    },
    /// Gives the pirate this number of gold pieces.
    GoldCoin(u32),
    /// Makes the pirate chat with its buddies from now on.
    Chat {
        /// The period, in milliseconds.
        period_ms: NonZeroU16,
    },
    /// Ends the pirate that receives it. The FSM receives the same message from a pirate that has ended.
    Goodbye {
        /// The pirate's gold at its end; zero in messages of the FSM.
        gold: u32,
    },
}

/// Converts a chat period to milliseconds; `None` if it is zero, too long, or not a whole number of
/// milliseconds.
pub(super) fn millis(chat: Duration) -> Option<NonZeroU16> {
    let whole = chat.subsec_nanos().is_multiple_of(1_000_000);
    let millis = u16::try_from(chat.as_millis()).ok().filter(|_| whole)?;
    NonZeroU16::new(millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_eight_bytes_aligned_to_four() {
        assert_eq!((size_of::<Msg>(), align_of::<Msg>()), (8, 4));
    }

    #[test]
    fn every_kind_has_its_name() {
        let all = [
            Msg::Hello { name: 1 },
            Msg::NameDrop { buddy: Addr::NONE },
            Msg::GoldCoin(1),
            Msg::Chat {
                period_ms: NonZeroU16::MIN,
            },
            Msg::Goodbye { gold: 1 },
        ];
        for message in all {
            let kind = Msg::KINDS[message.kind()];
            assert!(
                format!("{message:?}").starts_with(kind),
                "{message:?} is not of the kind {kind}"
            );
        }
        assert_eq!(Msg::KINDS.len(), all.len());
    }

    #[test]
    fn chat_periods_are_whole_milliseconds_that_fit() {
        assert_eq!(millis(Duration::from_millis(10)), NonZeroU16::new(10));
        assert_eq!(millis(Duration::from_millis(65_535)), Some(NonZeroU16::MAX));
        assert_eq!(millis(Duration::from_millis(65_536)), None);
        assert_eq!(millis(Duration::from_micros(1500)), None);
        assert_eq!(millis(Duration::ZERO), None);
    }
}
