//! What keeps a guest in: limits, no privileges, no files but libraries, no system calls that reach others.

mod files;
mod filter;

use std::io;
use std::path::Path;

use crate::output;

/// Puts this process into the sandbox, for good, and says which layers it has. A layer that this kernel lacks is
/// missing from the list; one that it has and refuses is an error.
pub fn enter(library: &Path, memory_bytes: u64) -> io::Result<Vec<String>> {
    let mut layers = vec!["own process".to_owned(), "own memory".to_owned()];
    limit(memory_bytes)?;
    layers.push("limits".to_owned());
    drop_privileges()?;
    if files::restrict(library)? {
        layers.push("landlock".to_owned());
    }
    if filter::install()? {
        layers.push("seccomp".to_owned());
    }
    Ok(layers)
}

fn limit(memory_bytes: u64) -> io::Result<()> {
    let limits = [
        // Private memory, and all that it maps with the tensors.
        (libc::RLIMIT_DATA, memory_bytes / 4),
        (libc::RLIMIT_AS, memory_bytes),
        // What it prints is a file, and it can write no other.
        (libc::RLIMIT_FSIZE, output::BYTES),
        (libc::RLIMIT_NOFILE, 64),
        (libc::RLIMIT_CORE, 0),
    ];
    for (resource, value) in limits {
        let limit = libc::rlimit {
            rlim_cur: value,
            rlim_max: value,
        };
        // SAFETY: reads one structure.
        if unsafe { libc::setrlimit(resource, &limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: a library that prints too much gets an error, not a signal.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    Ok(())
}

/// No privileges, now or by executing anything: root is then an ordinary user who owns files.
fn drop_privileges() -> io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let none = [0u32; 6];
    // SAFETY: one header and two empty sets of this version.
    let dropped = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) == 0
    };
    match dropped {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}
