//! The worker's channel to the supervisor.

use std::os::unix::net::UnixStream;

use crate::outcome::Outcome;
use crate::protocol::{self, Event, Step};

pub struct Voice {
    socket: UnixStream,
}

impl Voice {
    pub fn new(socket: UnixStream) -> Self {
        Self { socket }
    }

    pub fn say(&mut self, event: &Event) {
        if protocol::send(&mut self.socket, event).is_err() {
            // Nobody is listening any more.
            std::process::exit(1);
        }
    }

    pub fn step(&mut self, contender: Option<&str>, what: &str) {
        let contender = contender.map(str::to_owned);
        self.say(&Event::Step(Step {
            contender,
            what: what.to_owned(),
        }));
    }

    pub fn outcome(&mut self, contender: &str, outcome: Outcome) {
        self.say(&Event::Outcome {
            contender: contender.to_owned(),
            outcome,
        });
    }
}
