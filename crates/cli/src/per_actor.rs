//! The totals of every actor, as CSV.

use anyhow::Result;
use corsair::{ActorTotals, Reason};
use corsair_arch::quoted;
use corsair_observe::Replacement;
use std::io::{self, Write};

/// Writes a line for each actor: its name, the numbers of its sent and received messages, and how
/// it ended. `names` has the names of the actors in `totals`, in the same order.
///
/// # Errors
/// If the file cannot be written.
pub fn write<N: AsRef<str>>(
    mut file: Replacement,
    names: impl Iterator<Item = N>,
    totals: &[ActorTotals],
) -> Result<()> {
    let written = lines(file.writer(), names, totals);
    written.map_err(|error| file.failed(error))?;
    Ok(file.finish()?)
}

fn lines<N: AsRef<str>>(
    out: &mut impl Write,
    names: impl Iterator<Item = N>,
    totals: &[ActorTotals],
) -> io::Result<()> {
    writeln!(out, "actor,sent,received,ended")?;
    for (name, totals) in names.zip(totals) {
        let ActorTotals {
            sent,
            received,
            ended,
            ..
        } = totals;
        let ended = match ended {
            None => "",
            Some(Reason::Returned) => "returned",
            Some(Reason::Stopped) => "stopped",
            Some(Reason::Panicked) => "panicked",
        };
        writeln!(out, "{},{sent},{received},{ended}", quoted(name.as_ref()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use corsair::Addr;

    #[test]
    fn a_line_for_each_actor_and_quotes_where_needed() {
        let names = ["fsm", "anne, \"the first\""];
        let total = |who, ended| ActorTotals {
            who: Addr::from_u32(who),
            sent: 1,
            received: 5,
            ended,
        };
        let totals = [total(0, None), total(1, Some(Reason::Returned))];
        let mut out = Vec::new();
        lines(&mut out, names.iter(), &totals).unwrap();
        let text =
            "actor,sent,received,ended\nfsm,1,5,\n\"anne, \"\"the first\"\"\",1,5,returned\n";
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}
