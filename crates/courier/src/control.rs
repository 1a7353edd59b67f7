//! Requests that the owner of the data sends to a running node, over a socket in the data directory.
//!
//! Each side sends one line: the client a [`Request`], and the node `ok …` or `error …`.

use crate::backup::BackupError;
use crate::cluster::MemberRequest;
use crate::inner::Inner;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the socket in the data directory.
const SOCKET: &str = "control.sock";

/// A request to a running node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Backup(PathBuf),
    Compact,
    Members(MemberRequest),
}

impl Request {
    fn line(&self) -> Option<String> {
        match self {
            Request::Backup(path) => path.to_str().map(|path| format!("backup {path}")),
            Request::Compact => Some("compact".to_owned()),
            Request::Members(MemberRequest::List) => Some("members".to_owned()),
            Request::Members(MemberRequest::Remove(id)) => Some(format!("remove {id:016x}")),
            Request::Members(MemberRequest::Leave) => Some("leave".to_owned()),
            Request::Members(MemberRequest::Transfer(None)) => Some("transfer".to_owned()),
            Request::Members(MemberRequest::Transfer(Some(id))) => {
                Some(format!("transfer {id:016x}"))
            }
        }
    }

    fn parse(line: &str) -> Option<Request> {
        match line.split_once(' ') {
            Some(("backup", path)) => Some(Request::Backup(path.into())),
            Some(("remove", id)) => Some(Request::Members(MemberRequest::Remove(number(id)?))),
            Some(("transfer", id)) => {
                Some(Request::Members(MemberRequest::Transfer(Some(number(id)?))))
            }
            None if line == "compact" => Some(Request::Compact),
            None if line == "members" => Some(Request::Members(MemberRequest::List)),
            None if line == "leave" => Some(Request::Members(MemberRequest::Leave)),
            None if line == "transfer" => Some(Request::Members(MemberRequest::Transfer(None))),
            _ => None,
        }
    }

    /// Executes the request, and returns the result as a text.
    async fn serve(self, node: &Inner) -> Result<String, BackupError> {
        match self {
            Request::Backup(to) => Ok(node.backup(&to).await?.to_string()),
            Request::Compact => {
                let (before, after) = node.compact().await?;
                Ok(format!("{before} {after}"))
            }
            Request::Members(request) => {
                let Some(cluster) = &node.cluster else {
                    let reason = "this node is not a member of a cluster";
                    return Err(BackupError::Refused(reason.to_owned()));
                };
                let served = cluster.serve_request(request).await;
                served.map_err(BackupError::Refused)
            }
        }
    }
}

fn number(id: &str) -> Option<u64> {
    u64::from_str_radix(id, 16).ok()
}

#[cfg(unix)]
pub(crate) use unix::{ask, listen};

#[cfg(unix)]
mod unix {
    use super::*;
    use std::io::ErrorKind;
    use std::time::Duration;
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
    use tokio::net::{UnixListener, UnixStream};
    use tokio::time::timeout;

    /// The maximum length of a line in bytes.
    const LONGEST: u64 = 8 << 10;
    /// The time limit for a line.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// Serves requests until the node closes.
    pub(crate) fn listen(inner: Arc<Inner>, data: &Path) {
        let path = data.join(SOCKET);
        // A socket in the directory belongs to a process that has ended, because this process has locked the files.
        let _ = std::fs::remove_file(&path);
        let listener = match UnixListener::bind(&path) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::warn!(
                    "{}: {error}; stop this node for backups and compactions",
                    path.display()
                );
                return;
            }
        };
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = inner.closing() => break,
                };
                if let Ok((stream, _)) = accepted {
                    let inner = inner.clone();
                    tokio::spawn(async move {
                        // The client may have disconnected, so the result is ignored.
                        let _ = answer(stream, &inner).await;
                    });
                }
            }
            drop(listener);
            let _ = std::fs::remove_file(&path);
        });
    }

    async fn answer(stream: UnixStream, node: &Inner) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        let line = timeout(PATIENCE, line(&mut stream)).await??;
        let answer = match Request::parse(&line) {
            None => "error this request is unknown; use the program's version that runs the node"
                .to_owned(),
            Some(request) => match request.serve(node).await {
                Ok(said) => format!("ok {said}"),
                Err(error) => format!("error {error}").replace('\n', " "),
            },
        };
        stream.write_all(format!("{answer}\n").as_bytes()).await
    }

    async fn line(stream: &mut BufReader<UnixStream>) -> std::io::Result<String> {
        let mut line = String::new();
        stream.take(LONGEST).read_line(&mut line).await?;
        Ok(line.trim_end_matches('\n').to_owned())
    }

    /// Sends a request to the node that uses this directory; `None` if no node does.
    pub(crate) async fn ask(data: &Path, request: &Request) -> Result<Option<String>, BackupError> {
        let path = data.join(SOCKET);
        let failed = |source| BackupError::File {
            path: path.clone(),
            source,
        };
        let stream = match UnixStream::connect(&path).await {
            Ok(stream) => stream,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::ConnectionRefused
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(failed(error)),
        };
        let Some(asked) = request.line().filter(|line| !line.contains('\n')) else {
            let reason =
                "the path of a backup must be UTF-8 without line breaks; choose another one";
            return Err(BackupError::Refused(reason.to_owned()));
        };
        let mut stream = BufReader::new(stream);
        let asked = format!("{asked}\n");
        stream.write_all(asked.as_bytes()).await.map_err(failed)?;
        let said = line(&mut stream).await.map_err(failed)?;
        match said.split_once(' ') {
            Some(("ok", said)) => Ok(Some(said.to_owned())),
            Some(("error", reason)) => Err(BackupError::Refused(reason.to_owned())),
            _ => Err(BackupError::Refused(
                "the node ended before the request was completed; try again".to_owned(),
            )),
        }
    }
}

#[cfg(not(unix))]
pub(crate) fn listen(_: Arc<Inner>, _: &Path) {}

#[cfg(not(unix))]
pub(crate) async fn ask(_: &Path, _: &Request) -> Result<Option<String>, BackupError> {
    Ok(None)
}
