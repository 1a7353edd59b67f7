//! Where a run goes on from: what was saved since it began.

use crate::options::Checkpoints;
use corsair_cluster::Origin;
use corsair_observe::checkpoint;
use std::path::PathBuf;

/// Looks for the newest checkpoint of a run.
#[derive(Clone, Debug)]
pub struct Newest {
    directory: PathBuf,
    /// What was the newest one there before the run.
    before: Option<PathBuf>,
    /// Where the run has gone on from itself.
    from: Option<Origin>,
}

impl Newest {
    /// Of a run that begins now.
    pub fn since_now(checkpoints: &Checkpoints) -> Newest {
        let from = checkpoints.from.as_ref().map(|from| Origin {
            time: from.manifest.time,
            place: from.directory.display().to_string(),
        });
        Newest {
            before: checkpoint::find(&checkpoints.directory).ok(),
            directory: checkpoints.directory.clone(),
            from,
        }
    }

    /// Where the run can go on, if it can.
    pub fn origin(&self) -> Option<Origin> {
        let found = checkpoint::find(&self.directory).ok();
        let found = found.filter(|found| Some(found) != self.before.as_ref());
        let newest = found.and_then(|place| {
            let manifest = checkpoint::manifest(&place).ok()?;
            let place = place.display().to_string();
            let time = manifest.time;
            Some(Origin { time, place })
        });
        newest.or_else(|| self.from.clone())
    }
}
