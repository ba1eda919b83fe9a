//! Landlock: a guest reads system libraries, its own library and those beside it, and writes nothing.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const EXECUTE: u64 = 1 << 0;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;

/// Where system libraries are, and what their start-up code asks about the machine.
const FOLDERS: [&str; 6] = [
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/lib",
    "/lib64",
    "/sys/devices/system/cpu",
];
const FILES: [&str; 7] = [
    "/etc/ld.so.cache",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/self/maps",
    "/proc/self/status",
    "/dev/null",
    "/dev/urandom",
];

/// The kernel's structures, as long as its newest version that is used here.
#[repr(C)]
struct Ruleset {
    files: u64,
    network: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    folder: i32,
}

/// Denies all files but those; false if this kernel has no Landlock.
pub fn restrict(library: &Path) -> io::Result<bool> {
    let nothing = std::ptr::null::<u8>();
    // SAFETY: asks for the version.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0, 1) };
    if version < 1 {
        return Ok(false);
    }
    // How many rights there are in each version; networks from the fourth, signals and sockets from the sixth.
    let (rights, bytes) = match version {
        1 => (13, 8),
        2 => (14, 8),
        3 => (15, 8),
        4 => (15, 16),
        5 => (16, 16),
        _ => (16, 24),
    };
    let ruleset = Ruleset {
        files: (1 << rights) - 1,
        network: 3,
        scoped: 3,
    };
    // SAFETY: a structure at least as long as we say.
    let rules = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &ruleset, bytes, 0) };
    if rules < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that is nobody else's.
    let rules = unsafe { OwnedFd::from_raw_fd(rules as i32) };
    let library_path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = FOLDERS.iter().map(PathBuf::from);
    for folder in folders.chain(std::env::split_paths(&library_path)) {
        allow(&rules, &folder, EXECUTE | READ_FILE | READ_DIR)?;
    }
    let files = FILES.iter().map(PathBuf::from);
    for file in files.chain(beside(library)) {
        allow(&rules, &file, EXECUTE | READ_FILE)?;
    }
    // SAFETY: restricts this process.
    match unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) } {
        0 => Ok(true),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The library, and other libraries in its folder, which it may need.
fn beside(library: &Path) -> Vec<PathBuf> {
    let folder = library
        .parent()
        .and_then(|folder| fs::read_dir(folder).ok());
    let others = folder.into_iter().flatten().flatten();
    let others = others.map(|entry| entry.path());
    let mut found: Vec<PathBuf> = others
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".so") || name.contains(".so.")
        })
        .collect();
    found.push(library.to_owned());
    found
}

/// A rule for one place, if it exists.
fn allow(rules: &OwnedFd, place: &Path, allowed: u64) -> io::Result<()> {
    let Ok(path) = CString::new(place.as_os_str().as_bytes()) else {
        return Ok(());
    };
    // SAFETY: the path ends with a zero.
    let place = unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    if place < 0 {
        return Ok(());
    }
    // SAFETY: a descriptor that is nobody else's.
    let place = unsafe { OwnedFd::from_raw_fd(place) };
    let rule = Beneath {
        allowed,
        folder: place.as_raw_fd(),
    };
    // SAFETY: one structure of the first type of rule.
    match unsafe { libc::syscall(libc::SYS_landlock_add_rule, rules.as_raw_fd(), 1, &rule, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
