//! The supervisor's side of a worker: start it, listen, and if it dies or goes silent, blame the
//! contender that was running and start another.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use children::Leash;

use crate::blame::{self, Outcomes};
use crate::ends::{self, End};
use crate::outcome::Outcome;
use crate::protocol::{self, Event, Machine, Step, Task};

/// Opening a device takes seconds at most; a driver that hangs must not hang the run.
const START_LIMIT: Duration = Duration::from_secs(120);
/// The harness's own steps (inputs, oracle) may take long, but not forever.
const OWN_STEP_LIMIT: Duration = Duration::from_secs(1800);

/// Of each stream of a worker with strangers' code in it. The rest is lost.
const PASSED_ON_BYTES: usize = 64 << 10;

const RESTART_WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    #[error("{0}")]
    Unusable(String),
    #[error("the worker {0} before it was ready; its output is above")]
    NeverReady(String),
    #[error("cannot start the worker: {0}")]
    Start(#[from] io::Error),
    /// The user wants to stop.
    #[error("interrupted by signal {0}")]
    Signal(i32),
}

/// What the supervisor hears.
enum Message {
    Event(Event),
    /// The worker has closed its end of the socket, or sent garbage.
    Closed,
    Signal(i32),
}

pub struct Supervisor {
    arguments: Vec<String>,
    timeout: Duration,
    /// Contenders whose code is not ours and shares the worker's process.
    strangers: Vec<String>,
    inbox: Receiver<(usize, Message)>,
    sender: Sender<(usize, Message)>,
    /// Which of the processes that a workload is measured in.
    process: usize,
    worker: Option<Worker>,
    /// Distinguishes messages of the current worker from late ones of its predecessors.
    generation: usize,
}

struct Worker {
    child: Child,
    socket: UnixStream,
    /// The strangers it has met: what they have left there is theirs alone.
    met: Vec<String>,
}

/// What the worker last reported, and how it ended, if it has.
enum Heard {
    Event(Event),
    Silence,
    End(String),
}

impl Supervisor {
    /// `arguments` are this program's own; workers get the same.
    pub fn new(
        arguments: &[String],
        timeout: Duration,
        strangers: Vec<String>,
    ) -> io::Result<Self> {
        let (sender, inbox) = mpsc::channel();
        let mut signals = signal_hook::iterator::Signals::new([
            signal_hook::consts::SIGINT,
            signal_hook::consts::SIGTERM,
            signal_hook::consts::SIGHUP,
        ])?;
        let of_signals = sender.clone();
        thread::spawn(move || {
            for signal in signals.forever() {
                // The receiver is gone only when the process is about to exit anyway.
                let _ = of_signals.send((0, Message::Signal(signal)));
            }
        });
        let arguments = arguments.to_vec();
        Ok(Self {
            arguments,
            timeout,
            strangers,
            inbox,
            sender,
            process: 0,
            worker: None,
            generation: 0,
        })
    }

    /// Starts a worker and waits until its device is open.
    pub fn start(&mut self) -> Result<Machine, SupervisorError> {
        self.stop();
        self.generation += 1;
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(self.arguments.iter().skip(1))
            .args(["--worker", "--process", &self.process.to_string()])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(io::stderr().as_fd().try_clone_to_owned()?)
            // Not in the terminal's foreground group: the supervisor handles Ctrl-C.
            .leash();
        if !self.strangers.is_empty() {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let mut child = command.spawn()?;
        if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
            pass_on(stdout);
            pass_on(stderr);
        }
        self.listen(ours.try_clone()?);
        self.worker = Some(Worker {
            child,
            socket: ours,
            met: Vec::new(),
        });
        match self.hear(START_LIMIT)? {
            Heard::Event(Event::Ready(machine)) => Ok(*machine),
            Heard::Event(Event::Unusable(reason)) => Err(SupervisorError::Unusable(reason)),
            Heard::Event(_) => Err(SupervisorError::NeverReady(
                "sent an unexpected message".into(),
            )),
            Heard::Silence => Err(SupervisorError::NeverReady(
                "was silent for too long".into(),
            )),
            Heard::End(how) => Err(SupervisorError::NeverReady(how)),
        }
    }

    /// Has another process measure from now on.
    pub fn next_process(&mut self, process: usize) -> Result<(), SupervisorError> {
        self.process = process;
        self.restart()
    }

    /// Replaces a worker that has died or served its turn. A driver still cleaning up after the old
    /// one may refuse at first.
    fn restart(&mut self) -> Result<(), SupervisorError> {
        for wait in RESTART_WAITS {
            match self.start() {
                Ok(_) => return Ok(()),
                Err(SupervisorError::Signal(signal)) => {
                    return Err(SupervisorError::Signal(signal))
                }
                Err(_) => thread::sleep(wait),
            }
        }
        self.start().map(|_| ())
    }

    fn listen(&self, socket: UnixStream) {
        let (sender, generation) = (self.sender.clone(), self.generation);
        thread::spawn(move || {
            for event in protocol::receive(socket).map_while(Result::ok) {
                if sender.send((generation, Message::Event(event))).is_err() {
                    return;
                }
            }
            let _ = sender.send((generation, Message::Closed));
        });
    }

    /// Measures one problem: an outcome for every contender of the task, whatever some of them do.
    pub fn measure(
        &mut self,
        task: &Task,
        on_step: &mut dyn FnMut(&Step),
    ) -> Result<Outcomes, SupervisorError> {
        let strangers = self.strangers.clone();
        blame::race(&task.contenders, &strangers, &mut |contenders| {
            let task = Task {
                contenders: contenders.to_vec(),
                ..task.clone()
            };
            self.race(&task, on_step)
        })
    }

    /// Has contenders raced, again without those that take the worker down.
    fn race(
        &mut self,
        task: &Task,
        on_step: &mut dyn FnMut(&Step),
    ) -> Result<Outcomes, SupervisorError> {
        ends::measure(&task.contenders, &mut |contenders| {
            self.part_from_others(contenders);
            if self.worker.is_none() {
                self.restart()?;
            }
            let task = Task {
                contenders: contenders.to_vec(),
                ..task.clone()
            };
            let mut outcomes = Outcomes::new();
            let end = self.attempt(&task, &mut outcomes, on_step)?;
            if end.is_some() {
                self.stop();
            }
            Ok((outcomes, end))
        })
    }

    /// Ends a worker in which strangers have been that are not in the next race.
    fn part_from_others(&mut self, contenders: &[String]) {
        let met = self.worker.iter().flat_map(|worker| &worker.met);
        let mut others = met.filter(|stranger| !contenders.contains(stranger));
        if others.next().is_some() {
            self.stop();
        }
    }

    /// Gives a task to the worker. If the worker exits or goes silent before finishing, returns whose turn it was and
    /// what to make of it.
    fn attempt(
        &mut self,
        task: &Task,
        outcomes: &mut Outcomes,
        on_step: &mut dyn FnMut(&Step),
    ) -> Result<Option<End>, SupervisorError> {
        let mut step = Step {
            contender: None,
            what: "taking the task".into(),
        };
        if let Some(worker) = &mut self.worker {
            let strangers = self.strangers.iter();
            worker.met = strangers
                .filter(|name| task.contenders.contains(name))
                .cloned()
                .collect();
            // If the worker is gone, the listener notices.
            let _ = protocol::send(&mut worker.socket, task);
        }
        let outcome = loop {
            let limit = if step.contender.is_some() {
                self.timeout
            } else {
                OWN_STEP_LIMIT
            };
            match self.hear(limit)? {
                Heard::Event(Event::Step(next)) => {
                    on_step(&next);
                    step = next;
                }
                Heard::Event(Event::Outcome { contender, outcome }) => {
                    outcomes.insert(contender, outcome);
                }
                Heard::Event(Event::Done) => return Ok(None),
                Heard::Event(event) => {
                    let reason = format!("the worker said {event:?} while {}", step.what);
                    break Outcome::Error(reason);
                }
                Heard::Silence => {
                    let reason =
                        format!("hung: silent for {} s while {}", limit.as_secs(), step.what);
                    break Outcome::Timeout(reason);
                }
                Heard::End(how) => {
                    let reason = format!("the process {how} while {}", step.what);
                    break Outcome::Error(reason);
                }
            }
        };
        let contender = step.contender;
        Ok(Some(End { contender, outcome }))
    }

    /// Waits for the next message from the current worker.
    fn hear(&mut self, limit: Duration) -> Result<Heard, SupervisorError> {
        loop {
            match self.inbox.recv_timeout(limit) {
                Ok((_, Message::Signal(signal))) => return Err(SupervisorError::Signal(signal)),
                Ok((generation, _)) if generation != self.generation => {}
                Ok((_, Message::Event(event))) => return Ok(Heard::Event(event)),
                Ok((_, Message::Closed)) => return Ok(Heard::End(self.reap())),
                Err(RecvTimeoutError::Timeout) => return Ok(Heard::Silence),
                Err(RecvTimeoutError::Disconnected) => unreachable!("a sender is held here"),
            }
        }
    }

    /// How the worker ended, in words.
    fn reap(&mut self) -> String {
        let Some(mut worker) = self.worker.take() else {
            return "had disappeared".into();
        };
        // It may have closed its end without exiting: kill it before waiting.
        thread::sleep(Duration::from_millis(5));
        match worker.child.try_wait() {
            Ok(Some(status)) => return format!("ended ({status})"),
            _ => thread::sleep(Duration::from_millis(200)),
        }
        if let Ok(Some(status)) = worker.child.try_wait() {
            return format!("ended ({status})");
        }
        children::end(&mut worker.child);
        "stopped responding".into()
    }

    fn stop(&mut self) {
        if let Some(mut worker) = self.worker.take() {
            children::end(&mut worker.child);
        }
    }
}

/// Shows the first of what a worker prints, without what would move the cursor.
fn pass_on(mut from: impl Read + Send + 'static) {
    thread::spawn(move || {
        let (mut bytes, mut left) = ([0; 4096], PASSED_ON_BYTES);
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let shown = &bytes[..count.min(left)];
            left -= shown.len();
            let plain = |byte: &u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~' | 0x80..);
            let plain: Vec<u8> = shown.iter().copied().filter(plain).collect();
            // Nobody reads it if this fails.
            let _ = io::stderr().write_all(&plain);
        }
    });
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.stop();
    }
}
