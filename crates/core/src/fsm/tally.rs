//! The tally of the FSM.

/// The counts of the FSM at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tally {
    /// The number of pirates.
    pub pirates: u32,
    /// The number of pirates that answered the goodbye. It is smaller than the population only if messages
    /// were dropped, or a pirate was stopped or panicked.
    pub goodbyes: u32,
    /// Gold that the FSM gave to pirates.
    pub minted: u64,
    /// Gold that pirates brought back with their goodbyes.
    pub returned: u64,
    /// Gold in coins that reached a pirate after its end, or that were sent to the FSM.
    pub salvaged: u64,
}

impl Tally {
    /// Returns the gold that has not come back; negative if more came back than was given, which would be a bug of the
    /// executor. Zero unless messages were dropped.
    pub fn missing_gold(&self) -> i64 {
        let back = i128::from(self.returned) + i128::from(self.salvaged);
        (i128::from(self.minted) - back) as i64
    }

    /// True if all pirates have answered, and all gold has come back.
    pub fn is_complete(&self) -> bool {
        self.goodbyes == self.pirates && self.missing_gold() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_complete_only_with_all_goodbyes_and_all_gold() {
        let all = Tally {
            pirates: 3,
            goodbyes: 3,
            minted: 10,
            returned: 6,
            salvaged: 4,
        };
        assert!(all.is_complete());
        assert!(!Tally { goodbyes: 2, ..all }.is_complete());
        assert_eq!(Tally { returned: 5, ..all }.missing_gold(), 1);
        assert_eq!(Tally { salvaged: 5, ..all }.missing_gold(), -1);
        assert!(!Tally { salvaged: 5, ..all }.is_complete());
    }
}
