//! `corsair capacity --variants`: shows how much the uncertainty of learned definitions affects the capacity.

use anyhow::{Context, Result, anyhow, bail};
use corsair::Config;
use corsair_arch::input_file::read_file_text;
use corsair_arch::{LoadText, Plan, Scale, Search, Topology, capacity, read_text};
use std::fmt;
use std::path::Path;

/// The maximum number of definitions.
const MOST: usize = 1_000;

/// The capacities of several definitions, in ascending order.
#[derive(Clone, Debug)]
pub struct CapacityRange {
    pub loads: Vec<f64>,
    /// The number of definitions without a capacity.
    without: usize,
}

/// Searches for the capacity of each definition of a file.
///
/// # Errors
/// If the file or a definition is invalid.
pub fn spread(
    file: &Path,
    scale: Scale,
    load: Option<&LoadText>,
    config: &Config,
    plan: &Plan,
    search: &Search,
) -> Result<CapacityRange> {
    let text = read_file_text(file);
    let text = text.with_context(|| format!("--variants: cannot read {}", file.display()))?;
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    if lines.is_empty() || lines.len() > MOST {
        bail!(
            "--variants: {} has {} definitions; give 1 to {MOST}, one per line",
            file.display(),
            lines.len()
        );
    }
    let mut loads = Vec::new();
    for (number, line) in (1..).zip(&lines) {
        let at = || format!("--variants: {}:{number}", file.display());
        let checked = read_text(line, "definition").with_context(at)?;
        let mut topology = Topology::new(&checked, scale).with_context(at)?;
        if let Some(load) = load {
            let applied = load.apply(&mut topology);
            applied
                .map_err(|error| anyhow!("--load: {error}"))
                .with_context(at)?;
        }
        let found = capacity(config, &topology, plan, search, |_| ()).with_context(at)?;
        loads.extend(found.load);
    }
    loads.sort_by(f64::total_cmp);
    Ok(CapacityRange {
        without: lines.len() - loads.len(),
        loads,
    })
}

impl fmt::Display for CapacityRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.loads.len() + self.without;
        let at = |part: f64| {
            self.loads
                .get(((self.loads.len().max(1) - 1) as f64 * part).round() as usize)
        };
        match (at(0.025), at(0.975)) {
            (Some(least), Some(most)) => {
                write!(
                    f,
                    "  variants     {least:.1} to {most:.1} requests per second in 95 % of {total}"
                )?;
            }
            _ => write!(f, "  variants     none of {total} has a capacity")?,
        }
        match self.without {
            0 => Ok(()),
            without => write!(f, "; {without} without one"),
        }
    }
}
