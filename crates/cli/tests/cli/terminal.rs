//! The command, run in a directory of its own.

pub use corsair_testing::terminal::signal;

/// `corsair`.
pub struct Corsair;

impl corsair_testing::terminal::Program for Corsair {
    const NAME: &str = "corsair";
    const PATH: &str = env!("CARGO_BIN_EXE_corsair");
}

pub type Terminal = corsair_testing::terminal::Terminal<Corsair>;

/// Runs the command in a directory that is not looked at.
pub fn succeed(args: &str) -> String {
    Terminal::new().succeed(args)
}

/// Runs the command in a directory that is not looked at, and returns why it refuses.
pub fn refuse(args: &str) -> String {
    Terminal::new().refuse(args)
}
