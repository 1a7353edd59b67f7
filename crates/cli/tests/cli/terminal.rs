//! The command, run in a separate directory.

pub use corsair_testing::terminal::signal;

/// The program `corsair`.
pub struct Corsair;

impl corsair_testing::terminal::Program for Corsair {
    const NAME: &str = "corsair";
    const PATH: &str = env!("CARGO_BIN_EXE_corsair");
}

pub type Terminal = corsair_testing::terminal::Terminal<Corsair>;

/// Reads a picture, which must have the common style: a title, a description, and only colours with a dark counterpart.
pub fn picture(terminal: &Terminal, file: &str) -> String {
    let svg = terminal.read(file);
    for part in [
        "<svg",
        "<title>",
        "<desc>",
        "(prefers-color-scheme:dark)",
        "</svg>",
    ] {
        assert!(svg.contains(part), "{file} has no {part}");
    }
    let drawn = &svg[svg.find("</style>").unwrap()..];
    for attribute in ["fill=\"", "stroke=\""] {
        for (at, _) in drawn.match_indices(attribute) {
            let colour = drawn[at + attribute.len()..].split('"').next().unwrap();
            let is_known = corsair::picture::DARK
                .iter()
                .any(|(light, _)| light.eq_ignore_ascii_case(colour));
            assert!(is_known || colour == "none", "{file}: {attribute}{colour}");
        }
    }
    svg
}

/// Runs the command in a temporary directory, and returns its output.
pub fn succeed(args: &str) -> String {
    Terminal::new().succeed(args)
}

/// Runs the command in a temporary directory, and returns the reason for its refusal.
pub fn refuse(args: &str) -> String {
    Terminal::new().refuse(args)
}
