//! Files: comparison with a real file system, and the effects of kills and power losses.
#![allow(clippy::print_stdout, reason = "what programs print is the log")]
#![allow(unsafe_code, reason = "calls the C library, like simulated programs")]

use corsair_host::{Disk, Fault, HostId, HostState, Sim, SimError};
use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// A script of observations in an empty directory.
type Script = fn(&Path) -> Vec<String>;

/// Runs a script on this machine and on a host, and compares their lines.
fn compare(sim: &mut Sim, name: &'static str, script: Script) -> Result<(), SimError> {
    let directory =
        std::env::temp_dir().join(format!("corsair-files-{name}-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let real = script(&directory);
    fs::remove_dir_all(&directory).unwrap();
    sim.host("host", move || {
        fs::create_dir_all("/srv/here").unwrap();
        let lines = script(Path::new("/srv/here"));
        lines.iter().for_each(|line| println!("{line}"));
    });
    sim.run_until(MINUTE)?;
    let simulated: Vec<String> = sim.lines().into_iter().map(|line| line.text).collect();
    for (real, simulated) in real.iter().zip(&simulated) {
        assert_eq!(real, simulated, "real and simulated");
    }
    assert_eq!(real.len(), simulated.len());
    Ok(())
}

/// Formats a result without the parts that differ between file systems.
fn seen<T: std::fmt::Debug>(what: &str, result: io::Result<T>) -> String {
    match result {
        Ok(value) => format!("{what}: {value:?}"),
        Err(error) => format!("{what}: {error}"),
    }
}

fn listing(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            let kind = [kind.is_dir(), kind.is_file(), kind.is_symlink()];
            format!("{} {kind:?}", entry.file_name().display())
        })
        .collect();
    names.sort();
    names
}

fn contents(here: &Path) -> Vec<String> {
    let path = here.join("file");
    let mut lines = vec![
        seen("open nothing", File::open(&path).map(drop)),
        seen("write", fs::write(&path, "hello, world")),
        seen("read", fs::read_to_string(&path)),
        seen("create new", File::create_new(&path).map(drop)),
    ];
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let mut buffer = [0; 5];
    lines.push(seen("seek", file.seek(SeekFrom::End(-5))));
    lines.push(seen("read", file.read(&mut buffer)));
    lines.push(format!("{buffer:?}"));
    lines.push(seen("at the end", file.read(&mut buffer)));
    lines.push(seen(
        "before the beginning",
        file.seek(SeekFrom::Current(-20)),
    ));
    lines.push(seen("far behind", file.seek(SeekFrom::Start(10_000))));
    lines.push(seen("write there", file.write(b"x")));
    lines.push(seen("size", file.metadata().map(|data| data.len())));
    lines.push(seen("hole", file.read_at(&mut buffer, 9_000)));
    lines.push(format!("{buffer:?}"));
    lines.push(seen("write at", file.write_at(b"HELLO", 0)));
    lines.push(seen("position", file.stream_position()));
    lines.push(seen("truncate", file.set_len(3)));
    lines.push(seen("extend", file.set_len(6)));
    lines.push(seen("read", fs::read(&path)));
    lines.push(seen("read behind", file.read(&mut buffer)));
    let mut other = file.try_clone().unwrap();
    other.seek(SeekFrom::Start(1)).unwrap();
    lines.push(seen("shared position", file.stream_position()));
    let mut append = OpenOptions::new().append(true).open(&path).unwrap();
    lines.push(seen("append", append.write(b"end")));
    lines.push(seen("append at", append.write_at(b"!", 0)));
    lines.push(seen("read what is for appending", append.read(&mut buffer)));
    lines.push(seen("contents", fs::read(&path)));
    let mut reader = File::open(&path).unwrap();
    lines.push(seen("write what is for reading", reader.write(b"x")));
    lines.push(seen("truncate what is for reading", reader.set_len(0)));
    lines.push(seen("sync", file.sync_all()));
    lines.push(seen("sync data", reader.sync_data()));
    lines.push(seen("copy", fs::copy(&path, here.join("copy"))));
    lines.push(seen("copy's contents", fs::read(here.join("copy"))));
    // SAFETY: the calls take no pointers.
    let results = unsafe {
        let fd = file.as_raw_fd();
        [
            libc::fallocate(fd, 0, 0, 20),
            libc::fallocate(
                fd,
                libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
                1,
                2,
            ),
            libc::fallocate(fd, libc::FALLOC_FL_KEEP_SIZE, 0, 100),
            libc::fallocate(fd, 0, 0, 0),
        ]
    };
    lines.push(format!("allocate: {results:?}"));
    lines.push(seen("contents", fs::read(&path)));
    lines
}

fn names(here: &Path) -> Vec<String> {
    let at = |name: &str| here.join(name);
    fs::write(at("a"), "a").unwrap();
    fs::write(at("b"), "b").unwrap();
    let mut lines = vec![
        seen("mkdir", fs::create_dir(at("d"))),
        seen("again", fs::create_dir(at("d"))),
        seen("in nothing", fs::create_dir(at("nothing/e"))),
        seen("in a file", fs::create_dir(at("a/e"))),
        seen("file with a slash", File::open(at("a/")).map(drop)),
        seen("write a directory", fs::write(at("d"), "x")),
        seen("read a directory", fs::read(at("d"))),
        seen("rename", fs::rename(at("a"), at("c"))),
        seen("old name", fs::metadata(at("a")).map(drop)),
        seen("rename over", fs::rename(at("c"), at("b"))),
        seen("contents", fs::read_to_string(at("b"))),
        seen("rename to itself", fs::rename(at("b"), at("b"))),
        seen("rename over a directory", fs::rename(at("b"), at("d"))),
        seen(
            "rename a directory over a file",
            fs::rename(at("d"), at("b")),
        ),
        seen("rename into itself", fs::rename(at("d"), at("d/e"))),
        seen("rename nothing", fs::rename(at("nothing"), at("x"))),
        seen("unlink a directory", fs::remove_file(at("d"))),
        seen("rmdir a file", fs::remove_dir(at("b"))),
    ];
    fs::create_dir_all(at("d/e/f")).unwrap();
    lines.push(seen("rmdir", fs::remove_dir(at("d"))));
    fs::create_dir(at("full")).unwrap();
    fs::write(at("full/x"), "").unwrap();
    lines.push(seen("over a full one", fs::rename(at("d"), at("full"))));
    lines.push(seen("move", fs::rename(at("full/x"), at("d/e/x"))));
    lines.push(seen("over an empty one", fs::rename(at("d"), at("full"))));
    lines.push(format!("{:?}", listing(here)));
    lines.push(format!("{:?}", listing(&at("full/e"))));
    lines.push(seen(
        "links",
        fs::metadata(at("full")).map(|data| data.nlink()),
    ));

    lines.push(seen("link", fs::hard_link(at("b"), at("full/link"))));
    lines.push(seen("again", fs::hard_link(at("b"), at("full/link"))));
    lines.push(seen("of a directory", fs::hard_link(at("full"), at("l"))));
    lines.push(seen(
        "links",
        fs::metadata(at("b")).map(|data| data.nlink()),
    ));
    fs::remove_file(at("b")).unwrap();
    lines.push(seen("other name", fs::read_to_string(at("full/link"))));

    lines.push(seen("symlink", symlink("full/e", at("s"))));
    lines.push(seen("through it", fs::read(at("s/x"))));
    lines.push(seen(
        "up from it",
        fs::metadata(at("s/../link")).map(|data| data.len()),
    ));
    lines.push(seen("target", fs::read_link(at("s"))));
    lines.push(seen("of a file", fs::read_link(at("full/link"))));
    symlink("loop", at("loop")).unwrap();
    lines.push(seen("loop", File::open(at("loop")).map(drop)));
    symlink("made", at("dangling")).unwrap();
    lines.push(seen("dangling", File::open(at("dangling")).map(drop)));
    lines.push(seen("create through it", fs::write(at("dangling"), "x")));
    lines.push(seen("made", fs::read_to_string(at("made"))));
    lines.push(seen(
        "not followed",
        OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(at("dangling"))
            .map(drop),
    ));
    lines.push(seen("long name", fs::write(at(&"x".repeat(256)), "")));
    lines.push(seen("longest name", fs::write(at(&"x".repeat(255)), "")));
    lines.push(format!("{:?}", listing(here)));
    lines.push(seen("remove all", fs::remove_dir_all(at("full"))));
    lines.push(format!("exists: {}", at("full").exists()));

    // A file without a name exists while it is open.
    fs::write(at("gone"), "still here").unwrap();
    let mut file = File::open(at("gone")).unwrap();
    fs::remove_file(at("gone")).unwrap();
    let mut text = String::new();
    lines.push(seen("read", file.read_to_string(&mut text)));
    lines.push(text);
    lines.push(seen("links", file.metadata().map(|data| data.nlink())));
    fs::set_permissions(at("made"), PermissionsExt::from_mode(0o4711)).unwrap();
    lines.push(seen(
        "mode",
        fs::metadata(at("made")).map(|data| format!("{:o}", data.mode())),
    ));
    let at_second = |second| std::time::UNIX_EPOCH + Duration::from_secs(second);
    let made = OpenOptions::new().write(true).open(at("made")).unwrap();
    let times = |data: fs::Metadata| (data.atime(), data.atime_nsec(), data.mtime());
    let both = FileTimes::new().set_accessed(at_second(5));
    lines.push(seen(
        "set times",
        made.set_times(both.set_modified(at_second(7))),
    ));
    lines.push(seen("times", made.metadata().map(times)));
    let one = FileTimes::new().set_modified(at_second(9));
    lines.push(seen("set one time", made.set_times(one)));
    lines.push(seen("times", made.metadata().map(times)));
    // A removed directory exists while it is open, but accepts no entries.
    fs::create_dir(at("removed")).unwrap();
    let directory = File::open(at("removed")).unwrap();
    fs::remove_dir(at("removed")).unwrap();
    // SAFETY: the path ends with a zero byte.
    let results = unsafe {
        let (fd, mode) = (directory.as_raw_fd(), 0o600);
        [
            libc::openat(fd, c"x".as_ptr(), libc::O_CREAT | libc::O_WRONLY, mode),
            libc::mkdirat(fd, c"y".as_ptr(), mode),
        ]
    };
    lines.push(format!(
        "in a removed one: {results:?} {}",
        io::Error::last_os_error()
    ));
    // Removes entries while a directory is being read.
    fs::create_dir(at("many")).unwrap();
    (0..300).for_each(|n| fs::write(at(&format!("many/{n}")), "").unwrap());
    let read = fs::read_dir(at("many")).unwrap().map(|entry| {
        let entry = entry.unwrap();
        fs::remove_file(entry.path()).unwrap();
    });
    lines.push(format!("removed: {}", read.count()));
    lines.push(seen("then", fs::remove_dir(at("many"))));
    lines
}

fn locks(here: &Path) -> Vec<String> {
    let path = here.join("lock");
    let open = || {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap()
    };
    let (one, other) = (open(), open());
    // SAFETY: the call takes no pointers.
    let lock = |file: &File, operation| match unsafe { libc::flock(file.as_raw_fd(), operation) } {
        0 => "locked".to_string(),
        _ => io::Error::last_os_error().to_string(),
    };
    let (shared, exclusive) = (libc::LOCK_SH | libc::LOCK_NB, libc::LOCK_EX | libc::LOCK_NB);
    let mut lines = vec![
        lock(&one, shared),
        lock(&other, shared),
        lock(&other, exclusive),
        lock(&one, libc::LOCK_UN),
        lock(&other, exclusive),
        lock(&one, shared),
    ];
    let copy = other.try_clone().unwrap();
    drop(other);
    lines.push(lock(&one, shared));
    drop(copy);
    lines.push(lock(&one, exclusive));
    // Record locks of open files.
    let record = |file: &File, command, kind: i32, start, length| {
        // SAFETY: all-zero is a valid `flock`, which the call reads and writes.
        unsafe {
            let mut lock: libc::flock = std::mem::zeroed();
            (lock.l_type, lock.l_start, lock.l_len) = (kind as i16, start, length);
            let result = libc::fcntl(file.as_raw_fd(), command, &mut lock);
            let error = io::Error::last_os_error()
                .raw_os_error()
                .filter(|_| result != 0);
            format!("{error:?} {} {} {}", lock.l_type, lock.l_start, lock.l_len)
        }
    };
    let third = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let fourth = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let (set, get) = (libc::F_OFD_SETLK, libc::F_OFD_GETLK);
    lines.extend([
        record(&third, set, libc::F_WRLCK, 10, 10),
        record(&fourth, set, libc::F_WRLCK, 15, 10),
        record(&fourth, get, libc::F_RDLCK, 15, 10),
        record(&fourth, set, libc::F_WRLCK, 20, 0),
        record(&third, set, libc::F_UNLCK, 12, 2),
        record(&fourth, set, libc::F_RDLCK, 12, 2),
        record(&third, get, libc::F_RDLCK, 12, 2),
        record(&third, get, libc::F_WRLCK, 12, 2),
        record(&third, libc::F_SETLK, libc::F_WRLCK, 0, 0),
    ]);
    let waiter = std::thread::spawn({
        let third = open();
        move || {
            // SAFETY: the call takes no pointers.
            let result = unsafe { libc::flock(third.as_raw_fd(), libc::LOCK_EX) };
            format!("waited: {result}")
        }
    });
    std::thread::sleep(Duration::from_millis(20));
    drop(one);
    lines.push(waiter.join().unwrap());
    lines
}

/// A mapping and its file show each other's writes.
fn mappings(here: &Path) -> Vec<String> {
    let path = here.join("map");
    fs::write(&path, vec![b'.'; 8192]).unwrap();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let map = |file: &File, kind| {
        // SAFETY: the system chooses the address.
        unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(
                std::ptr::null_mut(),
                8192,
                protection,
                kind,
                file.as_raw_fd(),
                0,
            )
        }
    };
    let shared = map(&file, libc::MAP_SHARED).cast::<u8>();
    let private = map(&file, libc::MAP_PRIVATE).cast::<u8>();
    // SAFETY: both mappings have 8,192 bytes.
    unsafe {
        shared.add(5000).write(b'S');
        private.add(5001).write(b'P');
        file.write_all_at(b"W", 5002).unwrap();
        let text = std::slice::from_raw_parts(shared.add(4998), 6).to_vec();
        let mut read = [0; 6];
        file.read_exact_at(&mut read, 4998).unwrap();
        let lines = vec![
            String::from_utf8_lossy(&text).into_owned(),
            String::from_utf8_lossy(&read).into_owned(),
            format!("{}", *private.add(5001)),
            format!("sync: {}", libc::msync(shared.cast(), 8192, libc::MS_SYNC)),
            format!("unmap: {}", libc::munmap(shared.cast(), 8192)),
            seen("read-only", {
                let file = File::open(&path).unwrap();
                match map(&file, libc::MAP_SHARED) {
                    libc::MAP_FAILED => Err(io::Error::last_os_error()),
                    _ => Ok(()),
                }
            }),
        ];
        lines
    }
}

#[corsair_host::test]
fn contents_are_those_of_a_real_file_system(sim: &mut Sim) -> Result<(), SimError> {
    compare(sim, "contents", contents)
}

// Guarantee: host-8.
#[corsair_host::test]
fn names_are_those_of_a_real_file_system(sim: &mut Sim) -> Result<(), SimError> {
    compare(sim, "names", names)
}

#[corsair_host::test]
fn locks_are_those_of_a_real_file_system(sim: &mut Sim) -> Result<(), SimError> {
    compare(sim, "locks", locks)
}

#[corsair_host::test]
fn mappings_are_those_of_a_real_file_system(sim: &mut Sim) -> Result<(), SimError> {
    compare(sim, "mappings", mappings)
}

/// Lets a host run a program, fail after two seconds and start again a second later.
fn crash(
    sim: &mut Sim,
    fault: fn(&HostId) -> Fault,
    program: fn(bool),
) -> Result<HostId, SimError> {
    let host = sim.host("host", move || program(Path::new("/srv/started").exists()));
    sim.at(Duration::from_secs(2), fault(&host));
    sim.at(Duration::from_secs(3), Fault::start(&host));
    sim.run_until(MINUTE)?;
    assert_eq!(sim.state(&host), HostState::Exited(0), "{}", sim.log());
    Ok(host)
}

fn mark_start() {
    fs::create_dir("/srv").unwrap();
    fs::write("/srv/started", "").unwrap();
    File::open("/srv/started").unwrap().sync_all().unwrap();
    File::open("/srv").unwrap().sync_all().unwrap();
    File::open("/").unwrap().sync_all().unwrap();
}

// Guarantee: host-5.
#[corsair_host::test(deterministic = true)]
fn a_kill_leaves_what_was_written(sim: &mut Sim) -> Result<(), SimError> {
    let host = crash(sim, Fault::kill, |again| {
        if again {
            assert_eq!(fs::read_to_string("/srv/log").unwrap(), "not synced");
            assert!(!Path::new("/srv/gone").exists());
            return;
        }
        mark_start();
        fs::write("/srv/log", "not synced").unwrap();
        let _open = File::create("/srv/gone").unwrap();
        fs::remove_file("/srv/gone").unwrap();
        std::thread::sleep(MINUTE);
    })?;
    assert_eq!(sim.read_file(&host, "/srv/log").unwrap(), b"not synced");
    assert_eq!(sim.read_file(&host, "/srv/gone"), None);
    Ok(())
}

// Guarantee: host-6.
#[corsair_host::test(seeds = 10, deterministic = true)]
fn a_power_loss_leaves_what_was_synced(sim: &mut Sim) -> Result<(), SimError> {
    crash(sim, Fault::power_loss, |again| {
        if again {
            let log = fs::read("/srv/log").unwrap();
            assert!(log.len() >= 10_000, "{}", log.len());
            assert!(log[..10_000].iter().all(|&byte| byte == 1));
            println!(
                "{} bytes, {:?}",
                log.len(),
                fs::read("/srv/new").map(|new| new.len())
            );
            return;
        }
        mark_start();
        let mut log = File::create("/srv/log").unwrap();
        log.write_all(&[1; 10_000]).unwrap();
        log.sync_all().unwrap();
        File::open("/srv").unwrap().sync_all().unwrap();
        log.write_all(&[2; 10_000]).unwrap();
        fs::write("/srv/new", [3; 5000]).unwrap();
        std::thread::sleep(MINUTE);
    })
    .map(drop)
}

/// Returns the distinct outputs of a program after a power loss, over many seeds, sorted.
fn outcomes(program: fn(bool)) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 1..=60 {
        let (failure, _) = corsair_host::simulate(seed, std::num::NonZeroUsize::MIN, |sim| {
            crash(sim, Fault::power_loss, program).map(|_| ())?;
            // The output is passed on as the error.
            Err::<(), _>(SimError::Settings(sim.lines().remove(0).text))
        })
        .unwrap();
        seen.insert(failure.unwrap());
    }
    let prefix = SimError::Settings(String::new()).to_string();
    seen.iter()
        .map(|line| line.trim_start_matches(&prefix).to_string())
        .collect()
}

/// If the new content was not synced before the rename, the file may be empty: a bug that destroyed many configuration
/// files.
#[corsair_host::test]
fn a_rename_without_a_sync_may_leave_an_empty_file(_: &mut Sim) {
    let seen = outcomes(|again| {
        if again {
            println!("{:?}", fs::read_to_string("/srv/config").unwrap());
            return;
        }
        mark_start();
        fs::write("/srv/config", "old").unwrap();
        File::open("/srv/config").unwrap().sync_all().unwrap();
        File::open("/srv").unwrap().sync_all().unwrap();
        fs::write("/srv/config.new", "new").unwrap();
        fs::rename("/srv/config.new", "/srv/config").unwrap();
        std::thread::sleep(MINUTE);
    });
    assert!(seen.contains(&"\"old\"".to_string()), "{seen:?}");
    assert!(seen.contains(&"\"new\"".to_string()), "{seen:?}");
    assert!(seen.contains(&"\"\"".to_string()), "{seen:?}");
}

// Guarantee: host-7.
#[corsair_host::test]
fn a_rename_after_a_sync_is_atomic(_: &mut Sim) {
    let seen = outcomes(|again| {
        if again {
            println!("{:?}", fs::read_to_string("/srv/config").unwrap());
            return;
        }
        mark_start();
        fs::write("/srv/config", "old").unwrap();
        File::open("/srv/config").unwrap().sync_all().unwrap();
        File::open("/srv").unwrap().sync_all().unwrap();
        fs::write("/srv/config.new", "new").unwrap();
        File::open("/srv/config.new").unwrap().sync_all().unwrap();
        fs::rename("/srv/config.new", "/srv/config").unwrap();
        std::thread::sleep(MINUTE);
    });
    assert_eq!(seen, ["\"new\"", "\"old\""]);
}

/// Unsynced pages of one write may be lost in any order.
#[corsair_host::test]
fn writes_without_a_sync_between_are_reordered_and_torn(_: &mut Sim) {
    let seen = outcomes(|again| {
        if again {
            let bytes = fs::read("/srv/data").unwrap();
            let page = |n: usize| &bytes[n * 4096..(n + 1) * 4096];
            let is_torn = |n| page(n).iter().any(|&byte| byte != page(n)[0]);
            println!("{} {}", page(0)[0] < page(1)[0], is_torn(0) || is_torn(1));
            return;
        }
        mark_start();
        let file = File::create("/srv/data").unwrap();
        file.write_all_at(&[1; 8192], 0).unwrap();
        file.sync_all().unwrap();
        File::open("/srv").unwrap().sync_all().unwrap();
        file.write_all_at(&[2; 4096], 0).unwrap();
        file.write_all_at(&[2; 4096], 4096).unwrap();
        std::thread::sleep(MINUTE);
    });
    assert!(seen.contains(&"true false".to_string()), "{seen:?}");
    assert!(seen.iter().any(|line| line.ends_with(" true")), "{seen:?}");
}

/// Reading sets the time of the last access, but not again until the content changes or a day has passed.
#[corsair_host::test]
fn reading_sets_the_time_of_the_last_access(sim: &mut Sim) -> Result<(), SimError> {
    sim.host("host", || {
        const HOUR: u64 = 3_600;
        let accessed = || {
            fs::read("/var/file").unwrap();
            let metadata = fs::metadata("/var/file").unwrap();
            let since = metadata
                .accessed()
                .unwrap()
                .duration_since(std::time::UNIX_EPOCH);
            since.unwrap().as_secs() - 1_735_689_600
        };
        fs::write("/var/file", "x").unwrap();
        let hours = [1, 1, 23, 1].map(|hours| {
            std::thread::sleep(Duration::from_secs(hours * HOUR));
            accessed() / HOUR
        });
        assert_eq!(hours, [1, 1, 25, 25]);
        fs::write("/var/file", "y").unwrap();
        std::thread::sleep(Duration::from_secs(HOUR));
        assert_eq!(accessed() / HOUR, 27);
    });
    sim.run_until(Duration::from_secs(200_000))
}

#[corsair_host::test]
fn a_full_disk_refuses_and_has_space_again(sim: &mut Sim) -> Result<(), SimError> {
    sim.disk(Disk::new().capacity(100_000));
    sim.host("host", || {
        let mut file = File::create("/tmp/big").unwrap();
        assert_eq!(file.write(&[0; 150_000]).unwrap(), 100_000);
        assert_eq!(
            file.write(&[0]).unwrap_err().raw_os_error(),
            Some(libc::ENOSPC)
        );
        drop(file);
        fs::remove_file("/tmp/big").unwrap();
        File::open("/tmp").unwrap().sync_all().unwrap();
        fs::write("/tmp/small", [0; 1000]).unwrap();
    });
    sim.run_until(MINUTE)
}

#[corsair_host::test(deterministic = true)]
fn a_disk_can_be_slow_short_and_failing(sim: &mut Sim) -> Result<(), SimError> {
    let slow = Disk::new().sync_time(Duration::from_millis(30));
    sim.disk(slow);
    let host = sim.host("host", || {
        let mut file = File::create_new("/tmp/file").unwrap();
        let started = std::time::Instant::now();
        file.sync_all().unwrap();
        assert_eq!(started.elapsed(), Duration::from_millis(30));
        std::thread::sleep(Duration::from_secs(2));
        // Measures the time from second 1 on.
        let started = std::time::Instant::now();
        let count = file.write(&[1; 1000]).unwrap();
        assert!((1..1000).contains(&count), "{count}");
        assert_eq!(started.elapsed(), Duration::from_millis(2));
        assert_eq!(file.sync_all().unwrap_err().raw_os_error(), Some(libc::EIO));
        assert_eq!(
            fs::read("/tmp/file").unwrap_err().raw_os_error(),
            Some(libc::EIO)
        );
    });
    let failing = slow
        .access_time(Duration::from_millis(2))
        .short_transfers(1000)
        .sync_errors(1000)
        .read_errors(1000);
    sim.at(Duration::from_secs(1), Fault::disk(&host, failing));
    sim.run_until(MINUTE)
}

#[corsair_host::test]
fn files_can_be_given_and_read(sim: &mut Sim) -> Result<(), SimError> {
    let host = sim.host("host", || {
        let key = fs::read_to_string("/etc/service/key").unwrap();
        std::env::set_current_dir("/var").unwrap();
        fs::write("answer", key + "!").unwrap();
        assert_eq!(std::env::current_dir().unwrap(), Path::new("/var"));
    });
    sim.file(&host, "/etc/service/key", "secret");
    sim.run_until(MINUTE)?;
    assert_eq!(sim.read_file(&host, "/var/answer").unwrap(), b"secret!");
    Ok(())
}
