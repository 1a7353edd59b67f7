//! Several processes of this machine, to try out what many machines do.
//!
//! The process that starts them opens a socket for each, at which it listens from then on: it is the standard
//! input of the process, so that no port is free for a moment and taken by something else.

use crate::secret::random;
use crate::{ClusterError, Host, Hosts, MOST_PROCESSES, Origin, Secret};
use std::ffi::OsString;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What a process is told: its number, the one that has started it, and all addresses.
const CLUSTER: &str = "CORSAIR_CLUSTER";
/// The process that has started it, if that starts it again when the run is lost.
const PARENT: &str = "CORSAIR_CLUSTER_PARENT";
/// Where it goes on from: a time, a space, a place.
const ORIGIN: &str = "CORSAIR_CLUSTER_ORIGIN";
/// With what a process ends that another one has started, if the run is lost because of a process.
pub const LOST: u8 = 75;
/// And the secret.
const SECRET: &str = "CORSAIR_CLUSTER_SECRET";
/// How long the others may go on when one has failed: they hear of it, and notice it within five seconds.
const LEAVING: Duration = Duration::from_secs(8);
/// How long a process that is stopped is waited for when another one has ended: those that run notice one themselves.
const STOPPED: Duration = Duration::from_secs(5);
/// How much of what a process complains of is kept.
const MOST_SAID: u64 = 1 << 16;

/// The process that has started this one.
pub(crate) fn parent() -> u32 {
    #[cfg(unix)]
    return std::os::unix::process::parent_id();
    #[cfg(not(unix))]
    return 0;
}

/// What a process has been given that [`LocalProcesses`] has started.
#[derive(Debug)]
pub struct Inherited {
    /// Its number.
    pub process: usize,
    /// Where all are.
    pub hosts: Hosts,
    /// What they know.
    pub secret: Secret,
    /// Where it listens.
    pub listener: Option<TcpListener>,
    /// Who has started it.
    pub parent: u32,
}

impl Inherited {
    /// What this process has been given; none if it was started otherwise.
    ///
    /// # Errors
    /// If that makes no sense.
    pub fn take() -> Result<Option<Inherited>, ClusterError> {
        let Ok(text) = std::env::var(CLUSTER) else {
            return Ok(None);
        };
        let wrong = || {
            ClusterError::Lost(format!(
                "{CLUSTER} is set to what no corsair has written; unset it"
            ))
        };
        let mut words = text.split(' ');
        let process = words.next().and_then(|word| word.parse().ok());
        let parent = words.next().and_then(|word| word.parse().ok());
        let hosts = Hosts::parse(&words.collect::<Vec<_>>().join("\n"));
        let (Some(process), Some(parent), Ok(hosts)) = (process, parent, hosts) else {
            return Err(wrong());
        };
        let secret = std::env::var(SECRET).map_err(|_| wrong())?;
        let listener = hosts.get(process).and_then(inherited_listener);
        Ok(Some(Inherited {
            process,
            hosts,
            secret: Secret::new(secret.as_bytes())?,
            listener,
            parent,
        }))
    }
}

/// What a process knows of the one that has started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// Who that is. If the run is lost, it is told by the exit code [`LOST`].
    pub parent: u32,
    /// Where the run goes on from, because it was lost before.
    pub origin: Option<Origin>,
}

impl Lineage {
    /// What this process has been told; none if it was started by hand.
    pub fn take() -> Option<Lineage> {
        let parent = std::env::var(PARENT).ok()?.parse().ok()?;
        let origin = std::env::var(ORIGIN).ok().and_then(|text| {
            let (time, place) = text.split_once(' ')?;
            let (time, place) = (time.parse().ok()?, place.to_owned());
            Some(Origin { time, place })
        });
        Some(Lineage { parent, origin })
    }
}

/// The standard input, if it listens there.
#[cfg(unix)]
fn inherited_listener(host: &Host) -> Option<TcpListener> {
    use std::os::fd::AsFd;
    let input = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
    let listener = TcpListener::from(input);
    let at = listener.local_addr().ok()?;
    (Host::from(at) == *host).then_some(listener)
}

#[cfg(not(unix))]
fn inherited_listener(_: &Host) -> Option<TcpListener> {
    None
}

/// Processes of this machine that make a run together.
#[derive(Debug)]
pub struct LocalProcesses {
    children: Vec<LocalProcess>,
}

#[derive(Debug)]
struct LocalProcess {
    child: Child,
    /// What it complains of, if that is not shown already.
    said: Option<JoinHandle<String>>,
    ended: Option<ExitStatus>,
    /// It was stopped, as by SIGSTOP, while others have ended, and so was killed.
    was_stopped: bool,
}

/// How processes of this machine have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The exit code of the first that was not successful, or 0.
    pub code: u8,
    /// Processes have ended, or lost others, and none has failed by itself: the run may go on from where it was saved.
    pub is_lost: bool,
    /// What is to be told of the others than the first, which has told for itself.
    pub complaints: Vec<String>,
}

impl LocalProcesses {
    /// Starts one process of a program with these arguments, which say which process of the run it is.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn one(
        program: &Path,
        args: &[OsString],
        origin: Option<&Origin>,
    ) -> Result<LocalProcesses, ClusterError> {
        let mut command = descendant(program, args, origin);
        let started = command.stdin(Stdio::null()).spawn();
        let child = started.map_err(ClusterError::system("a process cannot be started"))?;
        Ok(LocalProcesses {
            children: vec![LocalProcess {
                child,
                said: None,
                ended: None,
                was_stopped: false,
            }],
        })
    }

    /// Starts so many processes of a program with these arguments. The output of the first is shown, and
    /// what the others complain of if it has not. The run goes on from where it was saved, if it was.
    ///
    /// # Errors
    /// If there are too many, or one cannot be started.
    pub fn start(
        program: &Path,
        args: &[OsString],
        processes: usize,
        origin: Option<&Origin>,
    ) -> Result<LocalProcesses, ClusterError> {
        if !(1..=MOST_PROCESSES).contains(&processes) {
            return Err(ClusterError::Lost(format!(
                "{processes} processes cannot work together; give 1 to {MOST_PROCESSES}"
            )));
        }
        let mut listeners = Vec::new();
        for _ in 0..processes {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
            listeners.push(listener.map_err(ClusterError::system("no port is free"))?);
        }
        let mut hosts = String::new();
        for listener in &listeners {
            let at = listener
                .local_addr()
                .map_err(ClusterError::system("a port is gone"))?;
            hosts.push_str(&format!(" {at}"));
        }
        let secret: String = random::<32>()?
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let mut all = LocalProcesses {
            children: Vec::new(),
        };
        for (process, listener) in listeners.into_iter().enumerate() {
            let mut command = descendant(program, args, origin);
            command.env(SECRET, &secret);
            command.env(CLUSTER, format!("{process} {}{hosts}", std::process::id()));
            command.stdin(input(listener));
            if process > 0 {
                command.stdout(Stdio::null()).stderr(Stdio::piped());
            }
            let started = command.spawn();
            let mut child = started.map_err(ClusterError::system("a process cannot be started"))?;
            let said = child.stderr.take().map(|stderr| {
                thread::spawn(move || {
                    let mut said = Vec::new();
                    let mut stderr = stderr;
                    // What cannot be read was not said; what is too long is read and not kept.
                    let _ = stderr.by_ref().take(MOST_SAID).read_to_end(&mut said);
                    let _ = std::io::copy(&mut stderr, &mut std::io::sink());
                    String::from_utf8_lossy(&said).trim().to_owned()
                })
            });
            all.children.push(LocalProcess {
                child,
                said,
                ended: None,
                was_stopped: false,
            });
        }
        Ok(all)
    }

    /// The system's numbers of the processes.
    pub fn ids(&self) -> Vec<u32> {
        self.children
            .iter()
            .map(|process| process.child.id())
            .collect()
    }

    /// Waits for all of them. If one fails, what has not ended by itself eight seconds later is killed; if one ends well,
    /// what is stopped for five seconds after that.
    pub fn wait(mut self) -> Ended {
        let mut until: Option<Instant> = None;
        let mut stopped_since: Option<Instant> = None;
        loop {
            let mut is_running = false;
            for process in &mut self.children {
                if process.ended.is_none() {
                    process.ended = process.child.try_wait().ok().flatten();
                    is_running |= process.ended.is_none();
                    if process.ended.is_some_and(|status| !status.success()) && until.is_none() {
                        until = Some(Instant::now() + LEAVING);
                    }
                }
            }
            if !is_running {
                break;
            }
            if until.is_some_and(|until| Instant::now() > until) {
                self.kill();
            }
            stopped_since = self
                .is_kept_waiting()
                .then(|| stopped_since.unwrap_or_else(Instant::now));
            if stopped_since.is_some_and(|since| since.elapsed() > STOPPED) {
                self.kill_stopped();
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.ended()
    }

    /// Whether some have ended, and one that has not is stopped.
    fn is_kept_waiting(&self) -> bool {
        let has_ended = self.children.iter().any(|process| process.ended.is_some());
        has_ended && self.children.iter().any(LocalProcess::is_stopped)
    }

    fn kill_stopped(&mut self) {
        for process in self
            .children
            .iter_mut()
            .filter(|process| process.is_stopped())
        {
            process.was_stopped = true;
            // What has ended in between needs no end.
            let _ = process.child.kill();
        }
    }

    fn kill(&mut self) {
        for process in self
            .children
            .iter_mut()
            .filter(|process| process.ended.is_none())
        {
            // What has ended in between needs no end.
            let _ = process.child.kill();
        }
    }

    fn ended(&mut self) -> Ended {
        let mut code = 0;
        let mut has_failed = false;
        let mut complaints = Vec::new();
        let has_told_all = self.children[0]
            .ended
            .is_some_and(|status| status.success());
        let first_failed = self.children[0].ended.and_then(|status| status.code());
        let mut has_told = first_failed.is_some_and(|code| code != 0);
        for (number, process) in self.children.iter_mut().enumerate() {
            let Some(status) = process.ended.filter(|status| !status.success()) else {
                continue;
            };
            let failed = status.code().and_then(|code| u8::try_from(code).ok());
            has_failed |= failed.is_some_and(|code| code != LOST);
            if code == 0 {
                code = failed.filter(|code| *code != LOST).unwrap_or(2);
            }
            if process.was_stopped {
                complaints.push(format!(
                    "process {number} was stopped when others had ended, and was killed"
                ));
            } else if failed.is_none() {
                complaints.push(format!("process {number}: {status}"));
            }
            let said = process.said.take().and_then(|said| said.join().ok());
            if let Some(said) = said.filter(|said| !said.is_empty() && !has_told) {
                has_told = true;
                complaints.push(said);
            }
        }
        Ended {
            code,
            // What the first has told is all that comes of a run.
            is_lost: code != 0 && !has_failed && !has_told_all,
            complaints,
        }
    }
}

impl LocalProcess {
    /// Whether it was stopped and has not been continued; false where the system does not say so.
    fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        // Its name, in parentheses, may have any characters.
        let state = stat
            .ok()
            .and_then(|stat| stat.rsplit(')').next()?.trim_start().chars().next());
        self.ended.is_none() && state == Some('T')
    }
}

impl Drop for LocalProcesses {
    fn drop(&mut self) {
        self.kill();
        for process in &mut self.children {
            if process.ended.is_none() {
                // Killed, so it ends.
                let _ = process.child.wait();
            }
        }
    }
}

/// A process of which this one is the parent.
fn descendant(program: &Path, args: &[OsString], origin: Option<&Origin>) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command.env(PARENT, std::process::id().to_string());
    if let Some(Origin { time, place }) = origin {
        command.env(ORIGIN, format!("{time} {place}"));
    }
    command
}

#[cfg(unix)]
fn input(listener: TcpListener) -> Stdio {
    Stdio::from(std::os::fd::OwnedFd::from(listener))
}

#[cfg(not(unix))]
fn input(_: TcpListener) -> Stdio {
    Stdio::null()
}
