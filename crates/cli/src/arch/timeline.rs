//! The timeline of a run, as CSV or as a picture.

use anyhow::{Context, Result, anyhow};
use corsair_arch::{Package, Places, Timeline, Topology, Totals, picture};
use corsair_observe::Replacement;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The flag that requests a timeline.
const FLAG: &str = "--timeline";

/// An output file of a timeline.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    file: Replacement,
}

impl File {
    /// Creates the files before the run.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn begin_all(paths: &[PathBuf]) -> Result<Vec<File>> {
        let begin = |path: &PathBuf| {
            let file = Replacement::begin(path).context(FLAG)?;
            let path = path.clone();
            Ok(File { path, file })
        };
        paths.iter().map(begin).collect()
    }

    /// Writes the timeline. `services` has the name of each service, and whether the service is an entry point;
    /// `places` has the names of regions and zones.
    ///
    /// # Errors
    /// If a file cannot be written.
    fn write(
        self,
        title: &str,
        timeline: &Timeline,
        services: &[(String, bool)],
        places: &Places,
    ) -> Result<String> {
        let File { path, mut file } = self;
        let text = if is_picture(&path) {
            let drawn = picture::timeline(title, timeline, services);
            drawn.map_err(|error| anyhow!("{FLAG}: {error}"))?
        } else {
            timeline.csv(services, places)
        };
        let written = file.writer().write_all(text.as_bytes());
        written.map_err(|error| anyhow!(file.failed(error)))?;
        file.finish().context(FLAG)?;
        Ok(path.display().to_string())
    }
}

/// Writes the timeline to all these files, and returns their names.
///
/// # Errors
/// If a file cannot be written.
pub fn write_all(
    files: Vec<File>,
    title: &str,
    topology: &Topology,
    totals: &Totals,
) -> Result<Vec<String>> {
    let services = topology.services.iter().map(|service| {
        let is_entry = service.package == Package::Denominator;
        (service.name.clone(), is_entry)
    });
    let services: Vec<(String, bool)> = services.collect();
    let timeline = totals.timeline.clone().unwrap_or_default();
    let write = |file: File| file.write(title, &timeline, &services, &topology.places);
    files.into_iter().map(write).collect()
}

fn is_picture(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "svg")
}
