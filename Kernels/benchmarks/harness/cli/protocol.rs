//! The protocol between supervisor and worker: one JSON value per line, over a socket that is the
//! worker's standard input. Standard output stays free for whatever contenders print.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use device::{DeviceInfo, DeviceState};
use libraries::Library;
use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;

/// Supervisor to worker. The worker exits at the end of the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Index into the selection's problems.
    pub problem: usize,
    /// The problem there, as the supervisor has it: a workload file may have changed since.
    pub expected: String,
    /// Which of the protocol's processes this is.
    pub process: usize,
    /// Names of the contenders to measure.
    pub contenders: Vec<String>,
    /// Upcoming problems, in order, whose plans can be made ahead.
    pub coming: Vec<usize>,
}

/// Worker to supervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The device is open.
    Ready(Box<Machine>),
    /// The device cannot be opened; the worker exits.
    Unusable(String),
    /// What is about to happen, and what to blame if nothing more is heard.
    Step(Step),
    /// Final for this task.
    Outcome { contender: String, outcome: Outcome },
    /// Every contender of the task has its outcome.
    Done,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Whose code runs; none for the harness's own.
    pub contender: Option<String>,
    pub what: String,
}

/// The device as the worker sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub info: DeviceInfo,
    pub state: DeviceState,
    pub timer_overhead_us: f64,
    /// Why timers cannot be cross-checked; none if they can.
    pub cross_check_obstacle: Option<String>,
    /// The libraries it loaded for measuring.
    pub libraries: Vec<Library>,
}

/// Writes one message as a line.
pub fn send<T: Serialize>(socket: &mut UnixStream, message: &T) -> io::Result<()> {
    let mut line = serde_json::to_string(message)?;
    line.push('\n');
    socket.write_all(line.as_bytes())
}

/// Reads messages until the stream ends or one is unreadable.
pub fn receive<T: for<'a> Deserialize<'a>>(
    socket: UnixStream,
) -> impl Iterator<Item = io::Result<T>> {
    BufReader::new(socket)
        .lines()
        .map(|line| Ok(serde_json::from_str(&line?)?))
}

/// The worker's end of the socket.
pub fn worker_socket() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_in_order_until_the_end_of_the_stream() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let step = Step {
            contender: Some("a\nb".into()),
            what: "being timed".into(),
        };
        let outcome = Outcome::Error("no".into());
        let events = [
            Event::Step(step),
            Event::Outcome {
                contender: "a".into(),
                outcome,
            },
            Event::Done,
        ];
        for event in &events {
            send(&mut ours, event).unwrap();
        }
        ours.write_all(b"nonsense\n").unwrap();
        drop(ours);
        let mut received = receive::<Event>(theirs);
        for event in events {
            assert_eq!(received.next().unwrap().unwrap(), event);
        }
        assert!(received.next().unwrap().is_err());
        assert!(received.next().is_none());
    }
}
