//! The owner's side: a process that holds one library, runs only while it is called, and can be lost.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use children::Leash;
use contender::ContenderError;

use crate::mailbox::{Mailbox, DONE, NOTHING, READY};
use crate::message::{receive, send, Kind, Reply, Request};
use crate::output::Output;
use crate::serve::ARGUMENT;

/// What a guest gets of the environment: where libraries are, and how many threads to use.
const ENVIRONMENT: [&str; 2] = ["LD_LIBRARY_PATH", "OMP_NUM_THREADS"];
/// Calls that do nothing, to learn what calling costs: so many, or fewer on a machine that is busy.
const EMPTY_CALLS: usize = 101;
const EMPTY_CALLS_TIME: Duration = Duration::from_millis(200);
/// What a call costs at most where nobody is in the way: some trips of a line between two cores.
const OVERHEAD_MOST: Duration = Duration::from_micros(1);
/// Looks at the mailbox before the core is offered to others: some tens of microseconds.
const SPINS: u32 = 500;
/// Looks between two questions whether the guest still lives.
const LOOKS: u32 = 256;
/// CPU time that a guest may use between being woken and being called: waking up takes some tens of microseconds.
const EARLY: Duration = Duration::from_micros(200);
/// One call may be unlucky; of so many, most are not.
const EARLY_CALLS: usize = 9;
/// If the owner itself was off its core for longer, the guest was waiting for it.
const INTERRUPTED: Duration = Duration::from_micros(50);

pub struct Process {
    child: Child,
    socket: UnixStream,
    mailbox: Mailbox,
    output: Output,
    /// Of a call that does nothing.
    pub overhead: Duration,
    pub layers: Vec<String>,
    pub name: String,
    pub version: String,
    /// CPU time before each of the last calls.
    early: Vec<Duration>,
    /// What it has died of, once it has.
    lost: Option<ContenderError>,
}

impl Process {
    /// Starts a guest and has it load a library, and measures what a call of it costs.
    pub fn start(path: &str, memory_bytes: u64) -> Result<Self, ContenderError> {
        let mut process = Self::load(path, Kind::Contender, memory_bytes, None)?;
        process.measure_overhead()?;
        Ok(process)
    }

    /// Starts a guest and has it load a library, which has to answer whatever it is asked within `patience`.
    pub fn load(
        path: &str,
        kind: Kind,
        memory_bytes: u64,
        patience: Option<Duration>,
    ) -> Result<Self, ContenderError> {
        let unable = |error: io::Error| {
            ContenderError::new(format!("cannot start a process for it: {error}"))
        };
        let (ours, theirs) = UnixStream::pair().map_err(unable)?;
        ours.set_read_timeout(patience).map_err(unable)?;
        let output = Output::new().map_err(unable)?;
        let mailbox = Mailbox::new().map_err(unable)?;
        let kept = ENVIRONMENT
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)));
        let child = Command::new(std::env::current_exe().map_err(unable)?)
            .arg(ARGUMENT)
            .env_clear()
            .envs(kept)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(output.writer().map_err(unable)?)
            .stderr(output.writer().map_err(unable)?)
            .leash()
            .spawn()
            .map_err(unable)?;
        let mut process = Self {
            child,
            socket: ours,
            mailbox,
            output,
            overhead: Duration::ZERO,
            layers: Vec::new(),
            name: String::new(),
            version: String::new(),
            early: Vec::new(),
            lost: None,
        };
        let load = Request::Load {
            path: path.to_owned(),
            kind,
            memory_bytes,
        };
        let file = process.mailbox.file().map(|file| file.try_clone_to_owned());
        let file = file.transpose().map_err(unable)?;
        match process.ask(&load, file.as_ref().map(AsFd::as_fd), "being loaded")? {
            Reply::Loaded {
                name,
                version,
                layers,
            } => {
                (process.name, process.version, process.layers) = (name, version, layers);
            }
            other => return Err(process.unexpected(&other)),
        }
        Ok(process)
    }

    fn measure_overhead(&mut self) -> Result<(), ContenderError> {
        let mut calls = Vec::new();
        let start = Instant::now();
        while calls.len() < EMPTY_CALLS && (calls.len() < 11 || start.elapsed() < EMPTY_CALLS_TIME)
        {
            let what = "being called for nothing";
            calls.push(self.timed(NOTHING, what, &mut || {}, &mut || {})?);
        }
        // On a busy machine calls take longer, and to subtract too little errs against the guest, never for it.
        let fastest = calls.into_iter().min().unwrap_or_default();
        self.overhead = fastest.min(OVERHEAD_MOST);
        self.early.clear();
        self.halt()
    }

    /// Asks for something that is not timed. It is halted afterwards.
    pub fn ask(
        &mut self,
        request: &Request,
        file: Option<BorrowedFd>,
        what: &str,
    ) -> Result<Reply, ContenderError> {
        self.proceed()?;
        let reply = send(&mut self.socket, request, file).and_then(|()| receive(&mut self.socket));
        let reply = reply.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let patience = self.socket.read_timeout().ok().flatten();
                self.ended(
                    what,
                    &format!("{:.0?} have passed", patience.unwrap_or_default()),
                )
            }
            _ => self.ended(what, &error.to_string()),
        })?;
        let halted = self.halt();
        match reply {
            // A reason says more than that it has ended.
            Reply::Failed(reason) => Err(ContenderError(self.with_output(reason))),
            reply => halted.map(|()| reply),
        }
    }

    /// Does a handle's work once, and says how long it took. `before` runs when it waits for the call, `at_end` the
    /// moment that it says it is done.
    pub fn call(
        &mut self,
        handle: u32,
        before: &mut dyn FnMut(),
        at_end: &mut dyn FnMut(),
    ) -> Result<Duration, ContenderError> {
        let taken = self.timed(handle, "being called", before, at_end)?;
        self.halt()?;
        match self.mailbox.status() {
            0 => Ok(taken
                .saturating_sub(self.overhead)
                .max(Duration::from_nanos(1))),
            code => {
                let reason = format!("enqueue() returned {code}");
                Err(ContenderError(self.with_output(reason)))
            }
        }
    }

    fn timed(
        &mut self,
        handle: u32,
        what: &str,
        before: &mut dyn FnMut(),
        at_end: &mut dyn FnMut(),
    ) -> Result<Duration, ContenderError> {
        let (asleep, begin) = (
            cpu_time(self.clock()),
            (Instant::now(), cpu_time(OWN_THREAD)),
        );
        self.proceed()?;
        self.mailbox.set_state(0);
        if let Err(error) = send(&mut self.socket, &Request::Arm(handle), None) {
            return Err(self.ended(what, &error.to_string()));
        }
        self.wait(READY, what)?;
        let used = cpu_time(self.clock()).saturating_sub(asleep);
        let own = cpu_time(OWN_THREAD).saturating_sub(begin.1);
        let waited = begin.0.elapsed();
        before();
        let start = Instant::now();
        self.mailbox.post(handle);
        let end = self.wait(DONE, what)?;
        at_end();
        if waited < own + INTERRUPTED {
            self.check_early(used)?;
        }
        Ok(end - start)
    }

    /// Fails a library that works before it is called: it has the inputs, and could have the answer.
    fn check_early(&mut self, used: Duration) -> Result<(), ContenderError> {
        self.early.push(used);
        if self.early.len() < EARLY_CALLS {
            return Ok(());
        }
        let mut used = std::mem::take(&mut self.early);
        used.sort_unstable();
        let median = used[used.len() / 2];
        match median > EARLY {
            true => Err(ContenderError(format!(
                "works before it is called: {} us of CPU time between waking up and the call",
                median.as_micros()
            ))),
            false => Ok(()),
        }
    }

    /// Waits for a state, and returns the moment it was seen.
    fn wait(&mut self, state: u32, what: &str) -> Result<Instant, ContenderError> {
        for _ in 0..SPINS {
            if self.mailbox.state() == state {
                return Ok(Instant::now());
            }
            std::hint::spin_loop();
        }
        // Its own threads may need this core.
        loop {
            for _ in 0..LOOKS {
                if self.mailbox.state() == state {
                    return Ok(Instant::now());
                }
                std::thread::yield_now();
            }
            if self.has_ended() {
                return Err(self.ended(what, "it is gone"));
            }
        }
    }

    /// The clock of all its threads' CPU time: the kernel's formula.
    fn clock(&self) -> libc::clockid_t {
        (!(self.child.id() as libc::clockid_t)) << 3 | 2
    }

    fn signal(&mut self, signal: libc::c_int) -> Result<(), ContenderError> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        // SAFETY: a child that has not been waited for, so that its number is not anybody else's.
        unsafe { libc::kill(self.child.id() as i32, signal) };
        Ok(())
    }

    fn proceed(&mut self) -> Result<(), ContenderError> {
        self.signal(libc::SIGCONT)
    }

    /// Stops all its threads, and waits until they have.
    fn halt(&mut self) -> Result<(), ContenderError> {
        self.signal(libc::SIGSTOP)?;
        self.observe(libc::WSTOPPED | libc::WEXITED);
        match self.has_ended() {
            true => Err(self.ended("being stopped", "it is gone")),
            false => Ok(()),
        }
    }

    fn has_ended(&self) -> bool {
        self.observe(libc::WEXITED | libc::WNOHANG)
    }

    /// Whether one of the changes has happened, which stays to be seen.
    fn observe(&self, changes: libc::c_int) -> bool {
        // SAFETY: all zeros is a value of the structure, which is written.
        unsafe {
            let mut seen: libc::siginfo_t = std::mem::zeroed();
            let options = changes | libc::WNOWAIT;
            let status = libc::waitid(libc::P_PID, self.child.id(), &mut seen, options);
            status == 0 && seen.si_signo != 0
        }
    }

    /// What became of it, now and whenever it is asked again.
    fn ended(&mut self, what: &str, otherwise: &str) -> ContenderError {
        let patience = Instant::now() + Duration::from_millis(200);
        let how = match children::wait_until(&mut self.child, patience) {
            Ok(Some(status)) => format!("its process ended ({status}) while {what}"),
            _ => format!("its process does not answer while {what}: {otherwise}"),
        };
        let lost = ContenderError(self.with_output(how));
        self.lost = Some(lost.clone());
        lost
    }

    fn unexpected(&self, reply: &Reply) -> ContenderError {
        ContenderError(self.with_output(format!("gave an answer to another question: {reply:?}")))
    }

    fn with_output(&self, reason: String) -> String {
        match self.output.shown() {
            Some(output) => format!("{reason}; it printed: {output}"),
            None => reason,
        }
    }

    /// What it has printed, shortened.
    pub fn printed(&self) -> Option<String> {
        self.output.shown()
    }
}

const OWN_THREAD: libc::clockid_t = libc::CLOCK_THREAD_CPUTIME_ID;

fn cpu_time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one structure.
    match unsafe { libc::clock_gettime(clock, &mut time) } {
        0 => Duration::new(time.tv_sec as u64, time.tv_nsec as u32),
        _ => Duration::ZERO,
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has been waited for has left its number to others.
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            children::end(&mut self.child);
        }
    }
}
