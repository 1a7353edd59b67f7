//! Draws the pictures of the README: `benches/plots/*.svg` from `benches/plots/*.json`.
//!
//! ```sh
//! cargo bench --bench plots                # draw
//! cargo bench --bench plots -- --measure   # measure first, about ten minutes
//! cargo bench --bench plots -- --collect   # take what `cargo bench` has measured
//! cargo bench --bench plots -- --machines  # plan and run over processes, some minutes
//! ```
//!
//! `benches/versus/phold/run.sh` measures PHOLD, because it needs a checkout of ROSS.
//!
//! `--measure` runs `benches/versus` and the criterion benchmarks `chat` and `fork_join`, and writes the measurements
//! next to the pictures. No other program should run at the same time.

mod architecture;
mod bars;
mod machines;
mod measured;
mod metastable;
mod phold;
mod rates;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match draw_all() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("plots: {error}");
            ExitCode::from(2)
        }
    }
}

fn draw_all() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("plots");
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--measure" => measured::measure(&folder)?,
            "--collect" => measured::collect(&folder)?,
            "--machines" => measured::measure_machines(&folder)?,
            "--bench" => {} // added by cargo
            other => {
                let options = "--measure, --collect and --machines";
                return Err(format!("no option {other}; there are {options}").into());
            }
        }
    }
    if let Some(rows) = measured::versus(&folder)? {
        save(&folder, "versus", &bars::versus(&rows)?)?;
    }
    if let Some(rows) = measured::criterion(&folder)? {
        save(&folder, "fork_join", &bars::fork_join(&rows)?)?;
        save(&folder, "chat", &rates::chat(&rows)?)?;
    }
    if let Some(machines) = measured::machines(&folder)? {
        save(&folder, "machines", &machines::draw(&machines)?)?;
    }
    if let Some(rows) = measured::phold(&folder)? {
        save(&folder, "phold", &phold::draw(&rows)?)?;
    }
    let architecture = architecture::draw("netflixoss", 2)?;
    save(&folder, "architecture", &architecture)?;
    save(&folder, "metastable", &metastable::draw()?)
}

fn save(folder: &Path, name: &str, svg: &str) -> Result<(), Box<dyn Error>> {
    let path = folder.join(name).with_extension("svg");
    std::fs::write(&path, svg).map_err(|error| format!("{}: {error}", path.display()))?;
    eprintln!("plots: {}", path.display());
    Ok(())
}
