//! A serving system in steps: which prompts enter together, and which requests decode together.
//!
//! Continuous batching. Every step takes the same time. At its start requests enter in order of arrival
//! as long as there is room. A prompt is prefilled in the step in which its request enters, and gives the
//! first token; in every later step the request decodes one more, and leaves after its last. While
//! nobody runs the time until the next arrival is skipped.

use super::requests::Request;

/// What the system has room for.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Requests that run at the same time.
    pub batch: usize,
    /// Tokens of prompts that enter in one step; a longer prompt enters alone.
    pub prefill_tokens: u64,
    pub step_us: u64,
}

pub enum Event<'a> {
    /// Prompts that enter together.
    Prefill(&'a [u64]),
    /// Steps in which the same requests decode.
    Decode(Span<'a>),
}

/// The requests of consecutive steps.
pub struct Span<'a> {
    first: u64,
    pub steps: u64,
    running: &'a [Running],
}

impl Span<'_> {
    /// Tokens in the cache of each request in one of the steps, including the new one.
    pub fn lengths(&self, step: u64) -> Vec<u64> {
        let length = |run: &Running| run.prompt + (self.first + step - run.entered);
        self.running.iter().map(length).collect()
    }
}

struct Running {
    prompt: u64,
    entered: u64,
    /// The last step in which it runs.
    last: u64,
}

/// Tells all events in order. `requests` are in order of arrival.
pub fn replay(requests: &[Request], room: &Room, mut tell: impl FnMut(Event)) {
    let start = requests.first().map_or(0, |request| request.arrival_us);
    let arrival = |request: &Request| (request.arrival_us - start).div_ceil(room.step_us);
    let mut waiting = requests.iter().peekable();
    let mut running: Vec<Running> = Vec::new();
    let (mut step, mut leaves) = (0, u64::MAX);
    loop {
        if leaves <= step {
            running.retain(|run| run.last >= step);
            leaves = running
                .iter()
                .map(|run| run.last + 1)
                .min()
                .unwrap_or(u64::MAX);
        }
        if running.is_empty() {
            match waiting.peek() {
                Some(next) => step = step.max(arrival(next)),
                None => return,
            }
        }
        let before = running.len();
        let mut prompts = Vec::new();
        let mut tokens = 0;
        while let Some(next) = waiting.peek() {
            let fits = prompts.is_empty() || tokens + next.prompt <= room.prefill_tokens;
            if running.len() == room.batch || arrival(next) > step || !fits {
                break;
            }
            tokens += next.prompt;
            prompts.push(next.prompt);
            let last = step + next.output.max(1) - 1;
            leaves = leaves.min(last + 1);
            running.push(Running {
                prompt: next.prompt,
                entered: step,
                last,
            });
            waiting.next();
        }
        // Until somebody leaves, enters, or decodes for the first time.
        let enters = waiting
            .peek()
            .filter(|_| running.len() < room.batch)
            .map(|next| arrival(next).max(step + 1));
        let mut end = enters.map_or(leaves, |enters| enters.min(leaves));
        if !prompts.is_empty() {
            tell(Event::Prefill(&prompts));
            end = step + 1;
        }
        if before > 0 {
            tell(Event::Decode(Span {
                first: step,
                steps: end - step,
                running: &running[..before],
            }));
        }
        step = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `p` and the prompts, or `d` and the lengths, of every step that has such.
    fn told(requests: &[(u64, u64, u64)], batch: usize, prefill_tokens: u64) -> Vec<String> {
        let request = |&(arrival_us, prompt, output): &(u64, u64, u64)| Request {
            arrival_us,
            prompt,
            output,
        };
        let requests: Vec<Request> = requests.iter().map(request).collect();
        let room = Room {
            batch,
            prefill_tokens,
            step_us: 10,
        };
        let mut told = Vec::new();
        replay(&requests, &room, |event| match event {
            Event::Prefill(prompts) => told.push(format!("p{prompts:?}")),
            Event::Decode(span) => {
                told.extend((0..span.steps).map(|step| format!("d{:?}", span.lengths(step))));
            }
        });
        told
    }

    #[test]
    fn requests_enter_decode_and_leave() {
        // The second arrives during step 1 and enters step 2.
        let two = [(0, 100, 4), (11, 50, 2)];
        let expected = ["p[100]", "d[101]", "p[50]", "d[102]", "d[103, 51]"];
        assert_eq!(told(&two, 8, u64::MAX), expected);
        // With one slot it waits for the first.
        let expected = ["p[100]", "d[101]", "d[102]", "d[103]", "p[50]", "d[51]"];
        assert_eq!(told(&two, 1, u64::MAX), expected);
        // A request of one token, or of none, is prefill only; idle time is skipped.
        let short = [(0, 5, 1), (0, 6, 0), (1_000_000, 7, 1)];
        assert_eq!(told(&short, 8, u64::MAX), ["p[5, 6]", "p[7]"]);
        assert!(told(&[], 8, 1).is_empty());
    }

    #[test]
    fn prompts_enter_as_far_as_their_tokens_fit() {
        let burst = [(0, 60, 1), (0, 50, 1), (0, 40, 1), (0, 900, 1)];
        assert_eq!(told(&burst, 8, 100), ["p[60]", "p[50, 40]", "p[900]"]);
    }

    #[test]
    fn a_long_wait_is_one_span() {
        let requests =
            [(0, 1, 1 << 24), (1 << 60, 1, 1)].map(|(arrival_us, prompt, output)| Request {
                arrival_us,
                prompt,
                output,
            });
        let room = Room {
            batch: 2,
            prefill_tokens: u64::MAX,
            step_us: 1,
        };
        let mut steps = Vec::new();
        replay(&requests, &room, |event| {
            if let Event::Decode(span) = event {
                steps.push(span.steps);
            }
        });
        assert_eq!(steps, [(1 << 24) - 1]);
    }
}
