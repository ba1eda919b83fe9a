//! Child processes that end when their parent does, and with everything that they started.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(10);

pub trait Leash {
    /// Starts the command in a process group of its own, outside the terminal's foreground: whoever
    /// handles Ctrl-C decides about it. The kernel kills it when the thread that starts it ends, so
    /// that thread must outlive it; a parent that is killed leaves nobody behind.
    fn leash(&mut self) -> &mut Self;

    /// The same for a child that has something to save: it stays in the terminal's group, where it
    /// hears Ctrl-C, and is asked to end with SIGTERM.
    fn follow(&mut self) -> &mut Self;
}

impl Leash for Command {
    fn leash(&mut self) -> &mut Self {
        signal_with_parent(self.process_group(0), libc::SIGKILL)
    }

    fn follow(&mut self) -> &mut Self {
        signal_with_parent(self, libc::SIGTERM)
    }
}

fn signal_with_parent(command: &mut Command, signal: libc::c_int) -> &mut Command {
    let parent = std::process::id();
    // SAFETY: between fork and exec the closure makes two system calls, both async-signal-safe, and
    // allocates nothing.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, signal) != 0 {
                return Err(io::Error::last_os_error());
            }
            // It may have died before it could be watched.
            match libc::getppid() as u32 == parent {
                true => Ok(()),
                false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            }
        })
    }
}

/// Kills a leashed child and its group, and waits for it.
pub fn end(child: &mut Child) {
    // SAFETY: a signal to a group whose leader has not been waited for, so that its number is not
    // anybody else's.
    unsafe {
        libc::kill(-(child.id() as i32), libc::SIGKILL);
    }
    // Both fail only if it has already been waited for, which is fine.
    let _ = child.kill();
    let _ = child.wait();
}

/// Asks a child to end, so that it can save what it has.
pub fn ask_to_end(child: &Child) {
    // SAFETY: a signal to a child that has not been waited for, so that its number is not anybody else's.
    unsafe {
        libc::kill(child.id() as i32, libc::SIGTERM);
    }
}

/// How the child ended, or nothing if it is still running at the deadline.
pub fn wait_until(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    fn runs(pid: &str) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // A zombie that nobody waits for has ended.
        !status.is_empty() && !status.contains(") Z ")
    }

    fn ends(pid: &str) -> bool {
        let start = Instant::now();
        while runs(pid) && start.elapsed() < Duration::from_secs(30) {
            thread::sleep(POLL);
        }
        !runs(pid)
    }

    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        let child = thread::spawn(|| Command::new("sleep").arg("600").leash().spawn().unwrap());
        let mut child = child.join().unwrap();
        assert!(ends(&child.id().to_string()));
        let _ = child.wait();
    }

    #[test]
    fn ending_a_child_ends_its_children() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 600 & echo $!; wait"])
            .stdout(Stdio::piped())
            .leash()
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        assert!(runs(line.trim()));
        let soon = Instant::now() + Duration::from_millis(30);
        assert!(wait_until(&mut child, soon).unwrap().is_none());
        end(&mut child);
        assert!(ends(line.trim()));
    }
}
