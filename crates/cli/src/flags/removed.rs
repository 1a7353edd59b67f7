//! Flags of older versions, and their replacements.

const MPI: &str = "mpirun, SLURM or Kubernetes starts the processes and gives each its number, as in `mpirun --hostfile FILE -n 4 corsair … --mpi`";

const REMOVED: [(&str, &str); 5] = [
    ("hosts", MPI),
    ("process", MPI),
    (
        "secret-file",
        "MPI connects the processes; on a network that others can write to, use a VPN",
    ),
    (
        "meet-within",
        "mpirun or the scheduler waits for all processes to start",
    ),
    (
        "restarts",
        "let the scheduler start the job again with `corsair resume`, as in examples/cluster",
    ),
];

/// Returns the replacement of a flag that older versions had.
pub fn instead_of(name: &str) -> Option<&'static str> {
    let name = name.trim_start_matches('-');
    let name = name.split('=').next().unwrap_or(name);
    let found = REMOVED.iter().find(|(removed, _)| *removed == name);
    found.map(|(_, instead)| *instead)
}
