use super::*;
use serde_json::json;

const PROGRAM: Program = Program {
    name: "corsair",
    version: "1.2.3",
    build: "b1",
};

fn draft(files: &[(&str, &[u8])]) -> Draft {
    Draft {
        program: PROGRAM,
        run: RunId::of(b"r"),
        time: 7,
        asked: false,
        details: json!({ "flags": { "seed": 3 } }),
        files: files
            .iter()
            .map(|(name, text)| ((*name).to_owned(), text.to_vec()))
            .collect(),
        outputs: Vec::new(),
    }
}

fn names(below: &Path) -> Vec<String> {
    let found = all(below).unwrap();
    let name = |found: &CheckpointEntry| {
        found
            .path
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned()
    };
    found.iter().map(name).collect()
}

#[test]
fn what_was_written_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let place = write(directory.path(), draft(&[("head", b"h"), ("state", b"")])).unwrap();
    assert_eq!(find(directory.path()).unwrap(), place);
    let read = read(&place, PROGRAM).unwrap();
    assert_eq!(
        read.files,
        [
            ("head".to_owned(), b"h".to_vec()),
            ("state".to_owned(), Vec::new())
        ]
    );
    assert_eq!(
        (read.manifest.time, &read.manifest.details["flags"]["seed"]),
        (7, &json!(3))
    );
}

#[test]
fn the_newest_two_are_kept_and_those_that_were_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..5 {
        let asked = number == 1;
        write(
            directory.path(),
            Draft {
                asked,
                ..draft(&[])
            },
        )
        .unwrap();
    }
    assert_eq!(
        names(directory.path()),
        ["000002-asked", "000004", "000005"]
    );
}

// Guarantee: core-73.
#[test]
fn a_set_without_its_manifest_or_its_name_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let first = write(directory.path(), draft(&[("head", b"h")])).unwrap();
    let second = write(directory.path(), draft(&[("head", b"h")])).unwrap();
    fs::remove_file(second.join("manifest.json")).unwrap();
    fs::create_dir(directory.path().join(".000003.99")).unwrap();
    assert_eq!(find(directory.path()).unwrap(), first);
    let empty = tempfile::tempdir().unwrap();
    let said = find(empty.path()).unwrap_err().to_string();
    assert!(said.contains("no complete checkpoint"), "{said}");
}

// Guarantee: core-73.
/// A change of any byte of any file is found.
#[test]
fn a_file_that_is_cut_or_changed_is_refused_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let place = write(
        directory.path(),
        draft(&[("head", b"abc"), ("state", b"defg")]),
    )
    .unwrap();
    for name in ["head", "state", "manifest.json"] {
        let path = place.join(name);
        let good = fs::read(&path).unwrap();
        let refused = |bad: &[u8], how: &str| {
            fs::write(&path, bad).unwrap();
            let said = read(&place, PROGRAM).unwrap_err().to_string();
            assert!(said.contains(name), "{name} {how}: {said}");
        };
        for cut in 0..good.len() - 1 {
            refused(&good[..cut], "cut");
        }
        for at in 0..good.len() - 1 {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            refused(&bad, "flipped");
        }
        fs::write(&path, &good).unwrap();
    }
    assert!(read(&place, PROGRAM).is_ok());
    // A part is opened but not read: its contents are checked when a run is restored from it.
    let place = write(directory.path(), draft(&[("part-0001", b"defg")])).unwrap();
    for cut in [&b""[..], b"def", b"defgh"] {
        fs::write(place.join("part-0001"), cut).unwrap();
        let said = read(&place, PROGRAM).unwrap_err().to_string();
        assert!(said.contains("part-0001"), "{said}");
    }
}

// Guarantee: core-73.
#[test]
fn another_version_program_or_build_is_refused_with_both() {
    let directory = tempfile::tempdir().unwrap();
    let place = write(directory.path(), draft(&[])).unwrap();
    for (name, version, build) in [
        ("corsair", "2.0.0", "b1"),
        ("frigate", "1.2.3", "b1"),
        ("corsair", "1.2.3", "b2"),
    ] {
        let program = Program {
            name,
            version,
            build,
        };
        let refused = read(&place, program).unwrap_err().to_string();
        let ours = format!("{name} {version}, build {build}");
        let both = refused.contains("corsair 1.2.3, build b1") && refused.contains(&ours);
        assert!(both, "{refused}");
    }
}

#[test]
fn the_checkpoints_of_a_run_are_not_replaced_by_another_run_or_a_branch() {
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        write(directory.path(), draft(&[])).unwrap();
    }
    let before = names(directory.path());
    let run = RunId::of(b"r");
    for other in [RunId::of(b"other"), run.branch(7, b"seed 1")] {
        let draft = Draft {
            run: other,
            ..draft(&[])
        };
        let refused = write(directory.path(), draft).unwrap_err().to_string();
        assert!(refused.contains("checkpoints of another run"), "{refused}");
        assert!(Claim::new(directory.path(), other).is_err());
        assert_eq!(names(directory.path()), before);
    }
    assert!(Claim::new(directory.path(), run).is_ok());
    let from = read(&find(directory.path()).unwrap(), PROGRAM).unwrap();
    let branch = run.branch(7, b"seed 1");
    let place = branch_directory(&from, branch);
    assert_eq!(place.parent(), Some(directory.path()));
    let elsewhere = Draft {
        run: branch,
        ..draft(&[])
    };
    write(&place, elsewhere).unwrap();
    assert_eq!(names(directory.path()), before);
}

#[test]
fn the_begin_of_an_output_stays_when_more_is_written_and_when_it_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("graph.json");
    fs::write(&source, "begun").unwrap();
    let output = Output {
        name: "graph".to_owned(),
        source: source.clone(),
        bytes: 5,
        crc32: crc32fast::hash(b"begun"),
    };
    let below = directory.path().join("checkpoints");
    let place = write(
        &below,
        Draft {
            outputs: vec![output],
            ..draft(&[])
        },
    )
    .unwrap();
    File::options()
        .append(true)
        .open(&source)
        .unwrap()
        .write_all(b" and ended")
        .unwrap();
    fs::remove_file(&source).unwrap();
    let read = read(&place, PROGRAM).unwrap();
    let mut copy = Vec::new();
    begin_of(&place.join("graph"), &read.manifest.outputs[0], &mut copy).unwrap();
    assert_eq!(copy, b"begun");
}

// Guarantee: cluster-4.
#[test]
fn what_a_killed_process_was_writing_is_removed_by_the_next_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let left = Staging::new(directory.path(), "4000000");
    left.create().unwrap();
    left.write("part-1".to_owned(), b"p").unwrap();
    let mut held = Staging::new(directory.path(), "5");
    held.create().unwrap();
    held.hold();
    write(directory.path(), draft(&[("head", b"h")])).unwrap();
    assert!(!left.path.exists() && held.path.exists());
}

// Guarantee: cluster-4.
#[test]
fn files_that_another_process_has_written_elsewhere_make_no_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let (here, there) = (
        directory.path().join("here"),
        directory.path().join("there"),
    );
    let (first, second) = (Staging::new(&here, "1"), Staging::new(&there, "1"));
    first.create().unwrap();
    second.create().unwrap();
    let one = first.write("part-1".to_owned(), b"a").unwrap();
    let other = second.write("part-2".to_owned(), b"b").unwrap();
    let said = first
        .complete(vec![one.clone(), other], draft(&[]))
        .unwrap_err()
        .to_string();
    assert!(said.contains("part-2") && said.contains("share"), "{said}");
    assert!(find(&here).is_err());
    first.complete(vec![one], draft(&[])).unwrap();
    assert!(find(&here).is_ok());
}

#[test]
fn a_manifest_cannot_name_files_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("secret");
    fs::write(&secret, "s").unwrap();
    let place = write(&directory.path().join("c"), draft(&[])).unwrap();
    let mut manifest = read_manifest(&place.join(MANIFEST)).unwrap();
    for name in ["../../secret", "/etc/passwd", ".."] {
        manifest.files = vec![SavedFile {
            name: name.to_owned(),
            bytes: 1,
            crc32: crc32fast::hash(b"s"),
        }];
        fs::write(place.join(MANIFEST), write_manifest(&manifest).unwrap()).unwrap();
        let said = read(&place, PROGRAM).unwrap_err().to_string();
        assert!(said.contains("is not a name of a file in it"), "{said}");
    }
}

// Guarantee: cluster-6.
#[test]
fn a_directory_is_held_by_one_run_and_free_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let (below, run) = (directory.path().join("a/b"), RunId::of(b"r"));
    let claim = Claim::new(&below, run).unwrap();
    let said = Claim::new(&below, run).unwrap_err().to_string();
    assert!(
        said.contains("another run") && said.contains("a/b"),
        "{said}"
    );
    write(&below, draft(&[("head", b"h")])).unwrap();
    drop(claim);
    drop(Claim::new(&below, run).unwrap());
    assert!(find(&below).is_ok(), "it stays, because something is in it");
    let empty = directory.path().join("c");
    drop(Claim::new(&empty, run).unwrap());
    assert!(!empty.exists());
    // A path below a file can be claimed; the error comes when a checkpoint is written there.
    fs::write(&empty, "in the way").unwrap();
    drop(Claim::new(&empty.join("d"), run).unwrap());
}
