//! Ctrl-C: the first ends the run cleanly, the second ends the process.

use corsair::Cut;

/// The exit code of a process that Ctrl-C has ended.
pub const EXIT_CODE: u8 = 130;

/// Lets Ctrl-C cut runs with this switch. Where the system gives no handler, Ctrl-C ends the
/// process at once, as it would anyway.
pub fn on_ctrl_c(cut: Cut) {
    let handler = move || {
        if cut.is_cut() {
            std::process::exit(EXIT_CODE.into());
        }
        cut.cut();
    };
    let _ = ctrlc::set_handler(handler);
}
