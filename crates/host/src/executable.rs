//! Runs programs of this machine as hosts. The simulated kernel is a shared object that is preloaded into each program.
//!
//! The zygote writes the configuration of the process into a file in memory, and executes the program. The shared
//! object ([`preload`]) reads it before the program's own code runs, and makes the process a host.
#![allow(unsafe_code, reason = "executes programs")]

use crate::channel::Channel;
use crate::debug::Debug;
use crate::disk::Disk;
use crate::heap::{self, Zone};
use crate::image::{self, BOOT};
use crate::kernel::{self, Kernel};
use crate::packet::Reader;
use crate::storage::Medium;
use crate::symbols::threads;
use crate::world::{Executable, HostSpec, Program, World, addresses};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// The parameters of a host's start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boot {
    pub host: usize,
    /// The number of earlier starts.
    pub starts: u32,
    pub now: u64,
    pub lost_power: bool,
}

/// Checks that a program can be simulated, and returns the reason if it cannot.
///
/// A program that ignores the shared object would run on the real machine. So every kind of program that would ignore
/// the shared object is refused.
pub(crate) fn check(path: &Path) -> Result<(), String> {
    let name = path.display();
    let failed = |error: std::io::Error| format!("{name} cannot be read: {error}");
    let mode = path.metadata().map_err(failed)?.permissions().mode();
    if mode & 0o111 == 0 {
        return Err(format!("{name} is not executable"));
    }
    if mode & 0o6000 != 0 {
        return Err(format!(
            "{name} runs with the rights of another user, so the system preloads nothing into it"
        ));
    }
    let image = std::fs::read(path).map_err(failed)?;
    if image.starts_with(b"#!") {
        return Err(format!(
            "{name} is a script; write its interpreter first, for example [\"/usr/bin/python3\", \"{name}\"]"
        ));
    }
    let has = |part: &[u8]| memchr_find(&image, part);
    if !image.starts_with(b"\x7fELF\x02\x01") || image.get(18..20) != Some(&[62, 0]) {
        return Err(format!("{name} is not a program for Linux on x86-64"));
    }
    if has(b"\xff Go buildinf:") {
        return Err(format!(
            "{name} is written in Go, whose runtime makes system calls and threads without the C library; \
             such programs cannot be simulated"
        ));
    }
    if !has(b"/ld-linux-x86-64.so.2\0") {
        return Err(format!(
            "{name} is linked statically or with another C library than glibc; such programs cannot be simulated, \
             because nothing can be preloaded into them"
        ));
    }
    Ok(())
}

fn memchr_find(image: &[u8], part: &[u8]) -> bool {
    image.windows(part.len()).any(|window| window == part)
}

/// Executes the program of a host in this process, which has one thread. Returns only if the execution fails.
pub(crate) fn execute(world: &World, executable: &Executable, boot: Boot) -> std::io::Error {
    let file = match write_boot(world, executable, boot) {
        Ok(file) => file,
        Err(error) => return error,
    };
    let spec = &world.hosts[boot.host];
    let to_c = |text: &OsStr| CString::new(text.as_bytes()).unwrap_or_default();
    let arguments: Vec<CString> = match spec.arguments.is_empty() {
        true => vec![to_c(executable.path.as_os_str())],
        false => spec
            .arguments
            .iter()
            .map(|text| to_c(text.as_ref()))
            .collect(),
    };
    let fixed = [
        ("HOME", "/"),
        ("LANG", "C.UTF-8"),
        ("PATH", "/usr/bin:/bin"),
        ("TZ", "UTC"),
    ];
    let fixed = fixed.map(|(name, value)| (name.to_string(), value.to_string()));
    let own = world.environment.iter().chain(&executable.environment);
    let mut environment: Vec<CString> = vec![];
    for (name, value) in fixed.iter().chain(own) {
        let prefix = format!("{name}=");
        environment.retain(|entry| !entry.as_bytes().starts_with(prefix.as_bytes()));
        environment.push(to_c(format!("{prefix}{value}").as_ref()));
    }
    // These variables come last, so that removing them does not move the others.
    environment.push(to_c(
        format!("LD_PRELOAD={}", executable.preload.display()).as_ref(),
    ));
    environment.push(to_c(format!("{BOOT}={file}").as_ref()));
    let path = to_c(executable.path.as_os_str());
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        let each = texts.iter().map(|text| text.as_ptr());
        each.chain([std::ptr::null()]).collect()
    };
    let (arguments_of, environment_of) = (pointers(&arguments), pointers(&environment));
    let keep_open = [file, executable.channel_fd, world.medium.fd()];
    // SAFETY: the signal set and the limit are initialised. The arrays end with null and outlive the call.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
        // The stack limit determines where the kernel maps memory.
        let limit = libc::rlimit {
            rlim_cur: 8 << 20,
            rlim_max: libc::RLIM_INFINITY,
        };
        libc::setrlimit(libc::RLIMIT_STACK, &limit);
        libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
        for fd in keep_open {
            libc::fcntl(fd, libc::F_SETFD, 0);
        }
        libc::chdir(c"/".as_ptr());
        libc::execve(
            path.as_ptr(),
            arguments_of.as_ptr(),
            environment_of.as_ptr(),
        );
    }
    std::io::Error::last_os_error()
}

/// Appends numbers and texts to bytes.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

fn bytes<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let count = reader.u64()? as usize;
    reader.bytes(count)
}

fn text(reader: &mut Reader<'_>) -> Option<String> {
    Some(String::from_utf8_lossy(bytes(reader)?).into_owned())
}

/// Writes the configuration of the process into a file in memory. Returns the file's descriptor.
fn write_boot(world: &World, executable: &Executable, boot: Boot) -> std::io::Result<i32> {
    let mut writer = Writer::default();
    let numbers = [
        boot.host as u64,
        boot.starts.into(),
        boot.now,
        boot.lost_power.into(),
        executable.channel_fd as u64,
        world.medium.fd() as u64,
        world.seed,
        world.preemption.into(),
        u64::from(world.debug.traced[boot.host]),
        world.hosts.len() as u64,
        executable.readable.len() as u64,
    ];
    numbers.iter().for_each(|&number| writer.number(number));
    for host in &world.hosts {
        writer.bytes(host.name.as_bytes());
    }
    for path in executable.readable.iter().chain([&executable.path]) {
        writer.bytes(path.as_os_str().as_bytes());
    }
    writer.bytes(&world.disk.to_bytes());
    let stop = world.debug.stop.filter(|&(host, _)| host == boot.host);
    writer.number(stop.map_or(u64::MAX, |(_, time)| time));
    let own = world.files.iter().filter(|file| file.0 == boot.host);
    for (_, path, contents) in own {
        writer.bytes(path.as_bytes());
        writer.bytes(contents);
    }
    // SAFETY: the name ends with a zero byte, and the bytes are valid for reads.
    unsafe {
        let fd = libc::memfd_create(c"corsair-boot".as_ptr(), 0);
        let (mut at, all) = (0, &writer.0);
        while fd >= 0 && at < all.len() {
            let written = libc::write(fd, all[at..].as_ptr().cast(), all.len() - at);
            if written <= 0 {
                return Err(std::io::Error::last_os_error());
            }
            at += written as usize;
        }
        match fd {
            -1 => Err(std::io::Error::last_os_error()),
            fd => Ok(fd),
        }
    }
}

/// Reads the complete file with this descriptor, and closes it.
fn read_all(fd: i32) -> Vec<u8> {
    let mut all = vec![];
    let mut part = [0u8; 4096];
    // SAFETY: the buffer is valid for writes, and the descriptor is not used after it is closed.
    unsafe {
        libc::lseek(fd, 0, libc::SEEK_SET);
        loop {
            let count = libc::read(fd, part.as_mut_ptr().cast(), part.len());
            if count <= 0 {
                break;
            }
            all.extend_from_slice(&part[..count as usize]);
        }
        libc::close(fd);
    }
    all
}

/// Reads the world and the start parameters from the file.
fn read_boot(reader: &mut Reader<'_>) -> Option<(World, Boot)> {
    let boot = Boot {
        host: reader.u64()? as usize,
        starts: reader.u64()? as u32,
        now: reader.u64()?,
        lost_power: reader.u64()? == 1,
    };
    let channel = Channel::open(reader.u64()? as i32).ok()?;
    let medium = Medium::open(reader.u64()? as i32);
    let (seed, preemption) = (reader.u64()?, reader.u64()? as u32);
    let is_traced = reader.u64()? == 1;
    let (count, readable_count) = (reader.u64()? as usize, reader.u64()?);
    let mut channel = Some(channel);
    let mut hosts = vec![];
    for index in 0..count {
        let name = text(reader)?;
        let own = if index == boot.host {
            channel.take()
        } else {
            None
        };
        hosts.push(HostSpec {
            name,
            addresses: addresses(index),
            program: match own {
                Some(channel) => Program::Elsewhere(Some(channel)),
                None => Program::Elsewhere(None),
            },
            arguments: vec![],
        });
    }
    let names = hosts.iter().map(|host| host.name.to_ascii_lowercase());
    let names = names.zip(0..).collect();
    let mut readable = vec![];
    for _ in 0..readable_count {
        readable.push(bytes(reader)?.to_vec());
    }
    image::set_program(Path::new(OsStr::from_bytes(bytes(reader)?)));
    let disk = Disk::from_bytes(bytes(reader)?)?;
    let stop = Some(reader.u64()?).filter(|&time| time != u64::MAX);
    let mut files = vec![];
    while !reader.0.is_empty() {
        files.push((boot.host, text(reader)?, bytes(reader)?.to_vec()));
    }
    let mut traced = vec![false; count];
    *traced.get_mut(boot.host)? = is_traced;
    let world = World {
        seed,
        preemption,
        processor_limit: Duration::MAX,
        environment: vec![],
        hosts,
        names,
        debug: Debug {
            stop: stop.map(|time| (boot.host, time)),
            traced,
            packets: None,
        },
        medium,
        disk,
        settings: vec![],
        files,
        readable,
    };
    Some((world, boot))
}

/// Makes this process a host if it was executed as one; otherwise does nothing. The only thread calls this function
/// before the program's own code runs.
#[doc(hidden)]
pub fn preload() {
    let Some(fd) = std::env::var(BOOT).ok().and_then(|fd| fd.parse().ok()) else {
        return;
    };
    // SAFETY: the process has one thread.
    unsafe {
        std::env::remove_var(BOOT);
        std::env::remove_var("LD_PRELOAD");
    }
    heap::enter(Zone::Host);
    let boot = read_all(fd);
    let Some((world, boot)) = read_boot(&mut Reader(&boot)) else {
        kernel::fatal("the description of the host is incomplete");
    };
    let world = Box::leak(Box::new(world));
    match Kernel::new(world, boot.host, boot.starts, boot.now, boot.lost_power) {
        Ok(kernel) => kernel::install(kernel),
        Err(error) => kernel::fatal(&format!("cannot map the disk of a host: {error}")),
    }
    threads::prepare();
    if let Err(error) = kernel::trap::install() {
        kernel::fatal(&error);
    }
    threads::adopt();
}
