//! The graph of a run in formats of other tools (`-g`) and in a database (`-n`).

use super::graph_file::PIRATE;
use super::names::Names;
use super::record::{Change, What};
use crate::observed;
use crate::options::Options;
use anyhow::{Error, Result};
use corsair::{Addr, Time};
use corsair_observe::{
    Clock, Exit, GraphFormat, Node, ObserveError, Observed, Observer, Recorder, Settings,
};
use jiff::Timestamp;

/// Files that were begun, and a database that was reached, before the run.
#[derive(Debug)]
pub struct Exports(Observer);

impl Exports {
    /// Begins what the options ask for; `None` if they ask for nothing. `args` are the flags, as
    /// files quote them; `epoch` is the date of time zero.
    ///
    /// # Errors
    /// What cannot be written or reached.
    pub fn begin(options: &Options, args: &str, epoch: Timestamp) -> Result<Option<Exports>> {
        if !options.graph_ml && !options.neo4j {
            return Ok(None);
        }
        // Everything is told at the end, in order.
        let mut settings = Settings::new(options.arch.clone(), Clock::Wall);
        settings.args = args.to_owned();
        settings.epoch = epoch;
        settings.out.clone_from(&options.out);
        if options.graph_ml {
            settings.graphs = vec![GraphFormat::GraphMl, GraphFormat::Gexf];
        }
        if options.neo4j {
            settings.neo4j = Some(observed::neo4j()?);
        }
        let observer = Observer::start(settings).map_err(of_flag)?;
        Ok(Some(Exports(observer)))
    }

    /// Writes the changes of the run.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(self, names: &Names, changes: &[Change]) -> Result<Observed> {
        let recorder = self.0.recorder();
        for change in changes {
            let pirate = Addr::from_u32(change.pirate);
            match change.what {
                What::Began => node(&recorder, change.at, pirate, &names.pirate(change.pirate)),
                What::Met(buddy) => recorder.edge(change.at, pirate, Addr::from_u32(buddy)),
                What::Ended => recorder.done(change.at, pirate, Exit::Normal),
            }
        }
        self.0.finish().map_err(of_flag)
    }
}

/// Tells of a pirate. Its name has its place: `fsm.atlantic.bermuda.blackbeard1.pirate`.
fn node(recorder: &Recorder, at: Time, pirate: Addr, name: &str) {
    let mut parts = name.split('.').skip(1);
    let mut part = || parts.next().unwrap_or("*").to_owned();
    let node = Node {
        name: name.to_owned(),
        full_name: name.to_owned(),
        service: PIRATE.to_owned(),
        package: PIRATE.to_owned(),
        region: part(),
        zone: part(),
    };
    recorder.node(at, pirate, node);
}

fn of_flag(error: ObserveError) -> Error {
    let flag = observed::flag_of(&error).unwrap_or("-g");
    Error::new(error).context(flag)
}
