//! What the first process and each other one say to each other, over a connection of their own.

use crate::Origin;
use crate::wire::{Deadline, FrameReader, FrameWriter, LONGEST};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

/// How long a frame that has begun may take to arrive, or to leave.
pub(crate) const FRAME_TIME: Duration = Duration::from_secs(10);
/// The longest sentence that another process is believed.
const LONGEST_SENTENCE: usize = 2000;
/// The content of the longest part of a result.
pub(crate) const PART: usize = LONGEST - 8;

/// What they say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Frame {
    /// From the first: all are there; connect with each other for this session, in which the run goes on from here.
    Start {
        session: u64,
        origin: Option<Origin>,
    },
    /// To the first: connected with all.
    Ready,
    /// From the first: so are all others.
    Go,
    /// Still here: in which window, and whether it waits for others there.
    Beat { windows: u64, waits: bool },
    /// It is over, and why.
    Failed(String),
    /// To the first: something for who listens there.
    Told(Vec<u8>),
    /// To the first: a part of what a process has to tell at the end.
    Part { last: bool, bytes: Vec<u8> },
    /// From here on nothing is wrong if the connection ends.
    Done,
}

impl Frame {
    fn to_bytes(&self) -> Vec<u8> {
        let shortened = match self {
            Frame::Failed(why) if why.len() > LONGEST_SENTENCE => {
                let most = why.floor_char_boundary(LONGEST_SENTENCE);
                Some(Frame::Failed(why[..most].to_owned()))
            }
            _ => None,
        };
        postcard::to_allocvec(shortened.as_ref().unwrap_or(self)).expect("frames can be written")
    }

    fn read(bytes: &[u8]) -> Option<Frame> {
        match postcard::take_from_bytes(bytes) {
            Ok((Frame::Failed(why), [])) if why.len() > LONGEST_SENTENCE => None,
            Ok((Frame::Failed(why), [])) => {
                let why = why.chars().filter(|c| !c.is_control());
                Some(Frame::Failed(why.collect()))
            }
            Ok((frame, [])) => Some(frame),
            _ => None,
        }
    }
}

/// What happens at a process.
pub(crate) enum Event {
    /// Another process has come and proved itself.
    Arrived(Box<crate::handshake::Introduced>),
    /// Something has come that is none, or not one of these.
    TurnedAway { from: SocketAddr, why: String },
    /// This process has connected with another one, as it wanted to.
    Connected(usize, Box<crate::handshake::Introduced>),
    /// It could not.
    NotConnected(crate::ClusterError),
    /// Another process says something, over its `link`-th connection.
    Said {
        link: u64,
        from: usize,
        frame: Frame,
    },
    /// A connection has ended.
    Closed { link: u64, from: usize, why: String },
    /// This process wants something of its supervisor.
    Ordered(Order),
    /// There is something to be looked at.
    Woken,
}

/// What is done with a process whose run does not notice that it is over.
pub(crate) type OnHang = Box<dyn FnOnce(&str) + Send>;

/// Who listens to what processes tell the first one during the run: which, and what.
pub(crate) type OnTold = Box<dyn Fn(usize, Vec<u8>) + Send>;

/// Who waits for what all processes have told, in the order of their numbers.
pub(crate) type Answer = Sender<Vec<Vec<u8>>>;

/// What the thread of the supervisor is told by its own process.
pub(crate) enum Order {
    /// The run is over; this is what is to be told to the first process, which gets what all have to tell.
    Finish {
        part: Vec<u8>,
        answer: Answer,
    },
    OnHang(OnHang),
    /// Something for who listens in the first process.
    Tell(Vec<u8>),
    OnTold(OnTold),
}

/// The connection with another process.
pub(crate) struct Link {
    pub(crate) number: u64,
    writer: FrameWriter,
}

impl Link {
    /// Lets a thread receive what comes; it tells `events`.
    pub(crate) fn new(
        number: u64,
        from: usize,
        mut reader: FrameReader,
        writer: FrameWriter,
        events: Sender<Event>,
    ) -> io::Result<Link> {
        let receive = move || {
            loop {
                let read = reader.receive_next(FRAME_TIME).and_then(|bytes| {
                    let frame = Frame::read(&bytes);
                    frame.ok_or_else(|| {
                        io::Error::new(io::ErrorKind::InvalidData, "it makes no sense")
                    })
                });
                let event = match read {
                    Ok(frame) => Event::Said {
                        link: number,
                        from,
                        frame,
                    },
                    Err(error) => Event::Closed {
                        link: number,
                        from,
                        why: error.to_string(),
                    },
                };
                let is_end = matches!(event, Event::Closed { .. });
                // Without anybody who listens there is nothing more to receive.
                if events.send(event).is_err() || is_end {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name(format!("from process {from}"));
        thread.spawn(receive)?;
        Ok(Link { number, writer })
    }

    /// Sends a frame. One that cannot be sent is noticed by who receives from there.
    pub(crate) fn send(&mut self, frame: &Frame) {
        let sent = self
            .writer
            .send(&frame.to_bytes(), Deadline::after(FRAME_TIME));
        if sent.is_err() {
            self.writer.close();
        }
    }

    pub(crate) fn close(&self) {
        self.writer.close();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The thread that receives ends, too.
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in() {
        for frame in [
            Frame::Start {
                session: 7,
                origin: None,
            },
            Frame::Start {
                session: 7,
                origin: Some(Origin {
                    time: 5,
                    place: "saved/000001".to_owned(),
                }),
            },
            Frame::Told(vec![3, 2, 1]),
            Frame::Ready,
            Frame::Go,
            Frame::Beat {
                windows: 9,
                waits: true,
            },
            Frame::Failed("it is over".to_owned()),
            Frame::Part {
                last: true,
                bytes: vec![1, 2],
            },
            Frame::Part {
                last: false,
                bytes: Vec::new(),
            },
            Frame::Done,
        ] {
            assert_eq!(Frame::read(&frame.to_bytes()), Some(frame));
        }
        for bytes in [&[][..], &[8], &[0, 1], &[1, 1], &[5], &[4; 3000]] {
            assert_eq!(Frame::read(bytes), None, "{bytes:?}");
        }
        let long = Frame::Failed("ä".repeat(3000)).to_bytes();
        assert!(matches!(Frame::read(&long), Some(Frame::Failed(why)) if why.len() == 2000));
    }
}
