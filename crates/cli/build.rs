//! Computes `CORSAIR_BUILD`, a hash of the sources that determine the layout of a saved run, as 16 hexadecimal digits.
//! A checkpoint can be read only by the build that wrote it. `crates/python` uses the same script.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates whose types are written into checkpoints. A package from a registry does not contain the sources of these
/// crates. In that case the hash is computed from the package's version, because every release requires exactly the
/// same version of these crates.
const CRATES: [&str; 5] = ["core", "derive", "serial", "arch", "observe"];

fn main() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for name in CRATES {
        let sources = crates.join(name).join("src");
        println!("cargo::rerun-if-changed={}", sources.display());
        let mut files = Vec::new();
        collect(&sources, &mut files);
        files.sort();
        for file in files {
            let name = file.strip_prefix(&crates).unwrap_or(&file);
            add(&mut hash, name.to_string_lossy().as_bytes());
            add(&mut hash, &fs::read(&file).unwrap_or_default());
        }
    }
    add(&mut hash, env!("CARGO_PKG_VERSION").as_bytes());
    println!("cargo::rustc-env=CORSAIR_BUILD={hash:016x}");
}

/// Adds the Rust files below a directory.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// FNV-1a over eight bytes at a time.
fn add(hash: &mut u64, bytes: &[u8]) {
    for word in bytes.chunks(8) {
        let mut padded = [0; 8];
        padded[..word.len()].copy_from_slice(word);
        *hash = (*hash ^ u64::from_le_bytes(padded)).wrapping_mul(0x100_0000_01b3);
        *hash ^= *hash >> 29;
    }
}
