//! The command, run in a separate directory.

pub use corsair_testing::terminal::signal;

/// The program `corsair`.
pub struct Corsair;

impl corsair_testing::terminal::Program for Corsair {
    const NAME: &str = "corsair";
    const PATH: &str = env!("CARGO_BIN_EXE_corsair");
}

pub type Terminal = corsair_testing::terminal::Terminal<Corsair>;

/// Runs the command in a temporary directory, and returns its output.
pub fn succeed(args: &str) -> String {
    Terminal::new().succeed(args)
}

/// Runs the command in a temporary directory, and returns the reason for its refusal.
pub fn refuse(args: &str) -> String {
    Terminal::new().refuse(args)
}
