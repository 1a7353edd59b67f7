//! Checks that `edge`, `fork_join` and `fsm` import no more of this crate than their lists allow, and that nothing
//! else in this crate imports them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A module and the external paths that it may use. `crate::*` means the types that the crate's root exports.
struct Module {
    module: &'static str,
    allowed: &'static [&'static str],
}

const ROOMS: [Module; 3] = [
    Module {
        module: "edge",
        allowed: &["crate::sync"],
    },
    Module {
        module: "fork_join",
        allowed: &["crate::memory::available_memory", "crate::sync"],
    },
    Module {
        module: "fsm",
        allowed: &[
            "crate::*",
            "crate::contract::random::below",
            "crate::perform",
            "crate::run",
            "crate::simulate_script",
            "crate::sync::lock",
        ],
    },
];

/// Returns the Rust files of a module: `src/NAME.rs` and the files under `src/NAME/`.
fn files(module: &str) -> Vec<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![source.join(format!("{module}.rs"))];
    let mut folders = vec![source.join(module)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            match path.extension() {
                None => folders.push(path),
                Some(_) => files.push(path),
            }
        }
    }
    files
}

/// Returns the code of a file without its comments.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("a file of this crate");
    let lines = text.lines();
    lines
        .map(|line| line.split("//").next().unwrap_or("").to_owned() + "\n")
        .collect()
}

/// Returns all paths that begin with `crate::` or `corsair::`, with the braces of `use` resolved.
fn paths(code: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for root in ["crate::", "corsair::"] {
        for (at, _) in code.match_indices(root) {
            let is_start = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            if is_start {
                resolve("crate::", &code[at + root.len()..], &mut paths);
            }
        }
    }
    paths
}

/// Adds the paths with which `rest` continues `prefix`, and returns the length of the part of `rest` that they occupy.
fn resolve(prefix: &str, rest: &str, paths: &mut BTreeSet<String>) -> usize {
    let blank = rest.len() - rest.trim_start().len();
    let (start, rest) = (blank, &rest[blank..]);
    if let Some(inner) = rest.strip_prefix('{') {
        let mut at = 0;
        while !inner[at..].trim_start().starts_with('}') {
            at += resolve(prefix, &inner[at..], paths);
            let blank = inner[at..].len() - inner[at..].trim_start().len();
            at += blank + usize::from(inner[at + blank..].starts_with(','));
        }
        let end = inner[at..].find('}').expect("a closing brace") + 1;
        return start + 1 + at + end;
    }
    let name = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &rest[..name.unwrap_or(rest.len())];
    match rest[name.len()..].strip_prefix("::") {
        Some(more) => start + name.len() + 2 + resolve(&format!("{prefix}{name}::"), more, paths),
        None => {
            paths.insert(format!("{prefix}{name}").trim_end_matches("::").to_owned());
            start + name.len()
        }
    }
}

fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// True for a type that the crate's root exports, such as `crate::Addr` or `crate::Addr::NONE`.
fn is_exported_type(path: &str) -> bool {
    path.strip_prefix("crate::")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_uppercase()))
}

/// Returns the maximum number of modules that a chain of `super::` leaves, not counting modules that are declared
/// inline.
fn climbs(code: &str) -> usize {
    let mut most = 0;
    for line in code.lines() {
        let inline = usize::from(line.starts_with("    "));
        let chain = line.matches("super::").count();
        most = most.max(chain.saturating_sub(inline));
    }
    most
}

#[test]
fn edges_fork_join_and_pirates_import_only_what_is_allowed() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for Module { module, allowed } in &ROOMS {
        let own = format!("crate::{module}");
        let mut used = BTreeSet::new();
        for file in files(module) {
            let code = code(&file);
            let depth = file
                .strip_prefix(&source)
                .expect("a file below")
                .components()
                .count();
            assert!(
                climbs(&code) < depth,
                "{} leaves its module with `super::`; import it from `crate::`",
                file.display()
            );
            for path in paths(&code).iter().filter(|path| !is_within(path, &own)) {
                let allows = |allowed: &&&str| match **allowed {
                    "crate::*" => is_exported_type(path),
                    allowed => is_within(path, allowed),
                };
                let by = allowed.iter().find(allows);
                let Some(by) = by else {
                    panic!("{} imports {path}, which {module} may not", file.display())
                };
                used.insert(*by);
            }
        }
        assert_eq!(
            used.len(),
            allowed.len(),
            "{module} uses {used:?} of {allowed:?}"
        );
    }
}

#[test]
fn the_rest_of_the_crate_does_not_import_edges_fork_join_or_pirates() {
    for module in [
        "contract",
        "network",
        "virtual_time",
        "wall",
        "run",
        "sync",
        "memory",
    ] {
        for file in files(module) {
            let code = code(&file);
            let product = code.split("#[cfg(test)]").next().unwrap_or("");
            for path in paths(product) {
                let room = ROOMS
                    .iter()
                    .find(|room| is_within(&path, &format!("crate::{}", room.module)));
                assert!(room.is_none(), "{} imports {path}", file.display());
            }
        }
    }
}

#[test]
fn imports_are_found_in_every_form() {
    let code =
        "use crate::{a::{b, c::D}, e};\nfn f(x: crate::G) { corsair::h::<u8>(); mycrate::i(); }";
    let expected = [
        "crate::G",
        "crate::a::b",
        "crate::a::c::D",
        "crate::e",
        "crate::h",
    ];
    assert_eq!(paths(code), expected.map(str::to_owned).into());
    assert_eq!(climbs("use super::super::a;\n    use super::b;"), 2);
}
