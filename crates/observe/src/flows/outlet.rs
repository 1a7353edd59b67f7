//! Outputs of spans: a file, a collector, a broker.

use super::format::FlowFormat;
use super::span::{Names, Span};
use super::span_format::{Arrays, Spans};
use crate::checkpoint::Output;
use crate::counted::CountingWriter;
use crate::json_array::Marshal;
use crate::remote::Remote;
use crate::resumed::ContinuedFile;
use crate::{Loss, ObserveError, Replacement, ResumePoint, Settings};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::PathBuf;

/// An output of spans, with its format.
#[derive(Debug)]
pub(crate) struct Outlet {
    format: FlowFormat,
    arrays: Arrays,
    to: To,
}

#[derive(Debug)]
enum To {
    File(CountingWriter<Replacement>),
    /// A connection to another system, and the maximum number of spans in one payload.
    #[cfg_attr(
        not(any(feature = "http", feature = "kafka")),
        allow(dead_code, reason = "used where flows are sent")
    )]
    Remote(Remote, usize),
}

/// The serialized form of a file of spans.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedOutlet {
    begun: ContinuedFile,
    /// True if the array in the file is not empty.
    elements: bool,
}

/// The number of spans in a request to a collector, so that a request has at most a megabyte.
#[cfg(feature = "http")]
const REQUEST: usize = 1024;

/// The number of spans in a Kafka record: by default, brokers accept records of up to a megabyte.
#[cfg(feature = "kafka")]
const RECORD: usize = 256;

impl Outlet {
    /// Opens a file in the directory of the settings. `resumed` is the state of a saved run that
    /// the outlet continues.
    pub(crate) fn file(
        settings: &Settings,
        format: FlowFormat,
        resumed: Option<(&ResumePoint, SavedOutlet)>,
    ) -> Result<Outlet, ObserveError> {
        let arch = &settings.arch;
        let name = format!("{arch}{}", format.format().file());
        let mut file = CountingWriter::new(settings.begin("json_metrics", &name)?);
        if let Some((resumed, SavedOutlet { begun, elements })) = resumed {
            begun.write(resumed, &mut file)?;
            let mut outlet = Outlet::new(format, To::File(file));
            if elements {
                outlet.arrays.lines.set_begun();
            }
            return Ok(outlet);
        }
        let begun = file.write_all(format.format().ends().0);
        begun.map_err(|error| file.get().failed(error))?;
        Ok(Outlet::new(format, To::File(file)))
    }

    /// Returns the state that continues this outlet, and its file.
    pub(crate) fn save(&mut self) -> Result<(SavedOutlet, Output), ObserveError> {
        let To::File(file) = &mut self.to else {
            return Err(ObserveError::NotSaved("output to another system"));
        };
        let (begun, output) = ContinuedFile::of(&format!("flow.{}", self.format.name()), file)?;
        let elements = self.arrays.lines.has_begun();
        Ok((SavedOutlet { begun, elements }, output))
    }

    /// Returns the number of bytes written to the outlet's file.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.to {
            To::File(file) => file.bytes(),
            To::Remote(..) => 0,
        }
    }

    fn new(format: FlowFormat, to: To) -> Outlet {
        Outlet {
            format,
            arrays: Arrays::new(),
            to,
        }
    }

    /// Connects to a collector that accepts this format.
    #[cfg(feature = "http")]
    pub(crate) fn collector(given: &str, format: FlowFormat) -> Result<Outlet, ObserveError> {
        use super::span_format::Collector;
        use crate::remote::http::{COLLECTOR, Post, url};
        let Collector {
            what,
            path,
            example,
            nothing,
        } = format
            .format()
            .collector()
            .expect("collectors take this format");
        let url = url(what, given, path, example)?;
        let post = Post::new(url.clone(), COLLECTOR);
        post.check(what, nothing)?;
        let remote = Remote::start(format!("{what} at {url}"), "spans", post)?;
        Ok(Outlet::new(format, To::Remote(remote, REQUEST)))
    }

    /// Reports that this build has no collectors.
    #[cfg(not(feature = "http"))]
    pub(crate) fn collector(_: &str, _: FlowFormat) -> Result<Outlet, ObserveError> {
        Err(ObserveError::LeftOut {
            what: "a collector",
            feature: "http",
        })
    }

    /// Connects to a Kafka broker.
    #[cfg(feature = "kafka")]
    pub(crate) fn kafka(address: &str) -> Result<Outlet, ObserveError> {
        let kafka = crate::remote::kafka::Kafka::connect(address)?;
        let remote = Remote::start(format!("Kafka at {address}"), "spans", kafka)?;
        Ok(Outlet::new(
            FlowFormat::ZipkinV2,
            To::Remote(remote, RECORD),
        ))
    }

    /// Reports that this build has no Kafka client.
    #[cfg(not(feature = "kafka"))]
    pub(crate) fn kafka(_: &str) -> Result<Outlet, ObserveError> {
        Err(ObserveError::LeftOut {
            what: "Kafka",
            feature: "kafka",
        })
    }

    /// Writes the next spans, or queues them to be sent.
    pub(crate) fn write(
        &mut self,
        marshal: &Marshal,
        names: &Names<'_>,
        spans: &[Span],
    ) -> Result<(), ObserveError> {
        let format = self.format.format();
        let all = Spans {
            marshal,
            names,
            spans,
        };
        match &mut self.to {
            To::File(file) => {
                let written = format.append(&mut self.arrays, all, file);
                written.map_err(|error| file.get().failed(error))?;
            }
            To::Remote(remote, most) => {
                for spans in spans.chunks(*most) {
                    let mut message = Vec::new();
                    let part = Spans { spans, ..all };
                    format
                        .message(&mut self.arrays, part, &mut message)
                        .expect("memory can be written, and spans be marshalled");
                    remote.send(message, spans.len() as u64);
                }
            }
        }
        Ok(())
    }

    /// Completes the array of the file when the run has ended.
    pub(crate) fn end(&mut self) -> Result<(), ObserveError> {
        if let To::File(file) = &mut self.to {
            let ended = file.write_all(self.format.format().ends().1);
            ended.map_err(|error| file.get().failed(error))?;
        }
        Ok(())
    }

    /// Completes the file, or waits until all of `spans` are sent.
    pub(crate) fn finish(
        self,
        spans: u64,
    ) -> Result<(Option<PathBuf>, Option<Loss>), ObserveError> {
        match self.to {
            To::File(file) => {
                let file = file.into_inner();
                let path = file.path().to_owned();
                file.finish()?;
                Ok((Some(path), None))
            }
            To::Remote(remote, _) => Ok((None, remote.finish(spans))),
        }
    }
}
