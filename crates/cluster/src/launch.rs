//! Starts processes of this machine with `mpirun`.

use crate::ClusterError;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::process::{Command, ExitStatus, Stdio};

/// The command that installs an MPI library on Debian and Ubuntu.
pub const INSTALL: &str = "apt-get install openmpi-bin";

/// An environment variable that [`start`] sets for the processes that it starts.
const STARTED: &str = "CORSAIR_STARTED_BY";

/// Settings for Open MPI 4 and 5; other MPI libraries ignore them. A process has several threads, so it is not bound to
/// a core, and more processes than cores are allowed. In a container the user is always root.
const SETTINGS: [(&str, &str); 7] = [
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
    ("PRTE_MCA_hwloc_default_binding_policy", "none"),
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
];

/// True in a process that was started by [`start`].
pub fn is_started() -> bool {
    std::env::var_os(STARTED).is_some()
}

/// Starts `processes` processes of this program with the arguments `args`. On Unix `mpirun` replaces this process, so
/// that it receives signals and no process survives if it is killed; on other systems this process waits for `mpirun`.
///
/// # Errors
/// [`ClusterError::NoMpirun`]; [`ClusterError::Launch`].
pub fn start(processes: usize, args: &[OsString]) -> Result<ExitStatus, ClusterError> {
    mpirun(processes, args).and_then(replace).map_err(failed)
}

#[cfg(unix)]
fn replace(mut command: Command) -> io::Result<ExitStatus> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

#[cfg(not(unix))]
fn replace(mut command: Command) -> io::Result<ExitStatus> {
    command.status()
}

/// Starts processes like [`start`], waits for them, and returns their output.
///
/// # Errors
/// The same errors as [`start`].
#[cfg(feature = "mpi")]
pub fn output(processes: usize, args: &[OsString]) -> Result<std::process::Output, ClusterError> {
    let output = mpirun(processes, args).and_then(|mut command| command.output());
    output.map_err(failed)
}

fn mpirun(processes: usize, args: &[OsString]) -> io::Result<Command> {
    let mut command = Command::new("mpirun");
    command.arg("-n").arg(processes.to_string());
    command.arg(std::env::current_exe()?).args(args);
    command
        .envs(SETTINGS)
        .env(STARTED, std::process::id().to_string());
    command.stdin(Stdio::null());
    Ok(command)
}

fn failed(error: io::Error) -> ClusterError {
    match error.kind() {
        ErrorKind::NotFound => ClusterError::NoMpirun,
        _ => ClusterError::Launch(error),
    }
}
