//! Our contenders on problems that are drawn, through the benches' own gate. Every run of the tests has a few;
//! `RANDOM_PROBLEMS` and `RANDOM_SEED` ask for others.

use std::env::var;
use std::ops::Range;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use ::drawn::Draw;
use ::gate::{BufferSet, Gate, GateOptions};
use contender::{Contender, Contenders, Kind, Problem, Support};
use device::{Device, PtxDevice};

use crate::account;

const SEED: u64 = 20;

/// From this stream comes the number of multiprocessors: few, so that blocks take several tiles, and odd ones, which
/// pairs and clusters do not divide.
const DEVICE_STREAM: u32 = 1 << 20;
const MULTIPROCESSORS: [u32; 8] = [1, 2, 3, 4, 5, 6, 7, 9];

/// The reference and portable kernels may decline a problem, ours must solve it.
///
/// # Panics
/// With all failures, and how to run each again.
pub fn assert_right<P: Problem>(
    contenders: &Contenders<P>,
    few: u64,
    problem: impl Fn(&Draw) -> P,
) {
    // The interpreter's settings are the process's: tests take turns.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (seed, cases) = asked(few);
    let mut failures = Vec::new();
    for case in cases.clone() {
        let draw = Draw { seed, case };
        let problem = problem(&draw);
        let multiprocessors = draw.one_of(DEVICE_STREAM, &MULTIPROCESSORS);
        let device = PtxDevice::open_for(env!("HEAD_TO_HEAD_ARCH"))
            .unwrap_or_else(|error| panic!("{error}"))
            .of_size(multiprocessors);
        for contender in contenders {
            let examined = catch_unwind(AssertUnwindSafe(|| {
                examine(&device, &**contender, &problem)
            }));
            account::add_of_others(&runtime::take_reports());
            if let Err(reason) = examined.unwrap_or_else(|panic| Err(words_of(&*panic))) {
                let (name, op, dtype) = (&contender.identity().name, problem.op(), problem.dtype());
                let axes = serde_json::json!(problem.workload().axes);
                failures.push(format!(
                    "RANDOM_SEED={seed} RANDOM_PROBLEMS={case}..{}: {name}, {op} {dtype} {axes} on \
                     {multiprocessors} multiprocessors: {reason}",
                    case + 1
                ));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} failures in problems {cases:?} of seed {seed}:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn examine<P: Problem>(
    device: &PtxDevice,
    contender: &dyn Contender<P>,
    problem: &P,
) -> Result<(), String> {
    match contender.supports(problem, device.info()) {
        Support::Yes => {}
        Support::No(_) if contender.identity().name != "ours" => return Ok(()),
        Support::No(reason) => return Err(format!("does not support it: {reason}")),
    }
    let options = GateOptions {
        units: 24,
        units_second: 8,
        ..GateOptions::new(SEED)
    };
    let gate = Gate::new(problem, options).map_err(|failure| failure.to_string())?;
    let set = BufferSet::new(device, problem.tensors(), SEED).map_err(|error| error.to_string())?;
    let mut bound = contender
        .bind(problem, set.buffers(), device.info())
        .map_err(|error| error.to_string())?;
    let examined = match contender.identity().kind {
        Kind::Reference => gate.examine_reference(&set, &mut *bound),
        _ => gate.examine(&set, &mut *bound),
    };
    examined.map(drop).map_err(|failure| failure.to_string())
}

/// The seed, and which of its problems: so many, or a range.
fn asked(few: u64) -> (u64, Range<u64>) {
    let seed = var("RANDOM_SEED").map_or(SEED, |seed| number(&seed));
    let cases = match var("RANDOM_PROBLEMS") {
        Err(_) => 0..few,
        Ok(text) => match text.split_once("..") {
            Some((first, end)) => number(first)..number(end),
            None => 0..number(&text),
        },
    };
    (seed, cases)
}

fn number(text: &str) -> u64 {
    let number = text.parse();
    number.unwrap_or_else(|_| {
        panic!("`{text}` is not a number; RANDOM_PROBLEMS is one, or a range like 7..9")
    })
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("panicked").to_owned()
}
