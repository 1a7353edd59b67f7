//! What every actor did, as CSV.

use super::names::Names;
use anyhow::Result;
use corsair::{ActorTotals, Reason};
use corsair_observe::Replacement;
use std::io::{self, Write};

/// Writes a line for each actor: its name, what it sent and received, and how it ended.
///
/// # Errors
/// If the file cannot be written.
pub fn write(mut file: Replacement, names: &Names, totals: &[ActorTotals]) -> Result<()> {
    let written = lines(file.writer(), names, totals);
    written.map_err(|error| file.failed(error))?;
    Ok(file.finish()?)
}

fn lines(out: &mut impl Write, names: &Names, totals: &[ActorTotals]) -> io::Result<()> {
    writeln!(out, "actor,sent,received,ended")?;
    for ActorTotals {
        who,
        sent,
        received,
        ended,
    } in totals
    {
        let ended = match ended {
            None => "",
            Some(Reason::Returned) => "returned",
            Some(Reason::Stopped) => "stopped",
            Some(Reason::Panicked) => "panicked",
        };
        writeln!(out, "{},{sent},{received},{ended}", quoted(&names.of(*who)))?;
    }
    Ok(())
}

/// A CSV field: in quotes if it needs them.
fn quoted(field: &str) -> std::borrow::Cow<'_, str> {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\"")).into()
    } else {
        field.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corsair::{Addr, AddrRange};

    #[test]
    fn a_line_for_each_actor_and_quotes_where_needed() {
        let listed = ["anne, \"the first\"", "bart"].map(String::from).into();
        let names = Names::new("fsm", Some(listed), AddrRange::new(Addr::from_u32(1), 2));
        let total = |who, ended| ActorTotals {
            who: Addr::from_u32(who),
            sent: 1,
            received: 5,
            ended,
        };
        let totals = [total(0, None), total(1, Some(Reason::Returned))];
        let mut out = Vec::new();
        lines(&mut out, &names, &totals).unwrap();
        let text =
            "actor,sent,received,ended\nfsm,1,5,\n\"anne, \"\"the first\"\"\",1,5,returned\n";
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}
