//! What the gates share: schedules, inputs, device memory of a type, and comparisons.

mod account;
pub mod drawn;
mod gate;
pub mod kinds;
mod mutants;
pub mod paged;

pub use account::assert_proven;
pub use bridge::{Dtype, Variant};
pub use gate::Table;
pub use mutants::{assert_mutants, assert_value_mutants, Kind, Survivor};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use bridge::{Plan, UniquePtr};
use half::bf16;
use machine::{Report, Schedule, TensorLoads, Watch, SCHEDULES};
use runtime::{Fault, Memory, Settings};

/// Settings and reports are the process's: tests take turns.
static TURN: Mutex<()> = Mutex::new(());

/// Runs a case under one schedule, on a device of few multiprocessors so that blocks take several tiles.
pub fn under(schedule: Schedule, case: impl FnOnce()) {
    run_case(Settings::under(schedule), case);
}

/// Runs a case on devices whose multiprocessors no share divides, and with one that no pair of blocks has, as slices of
/// a card may be: where work comes and goes at once, and late.
pub fn on_uneven_devices(case: impl Fn()) {
    for multiprocessors in [5, 6, 7] {
        for schedule in [Schedule::AtOnce, Schedule::Late { seed: 1 }] {
            let settings = Settings {
                multiprocessors,
                ..Settings::under(schedule)
            };
            let reports = run_case(settings, &case);
            assert!(!reports.is_empty(), "nothing ran on {multiprocessors}");
        }
    }
}

fn run_case(settings: Settings, case: impl FnOnce()) -> Vec<(String, Report)> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    runtime::set(settings);
    runtime::take_reports();
    case();
    runtime::take_reports()
}

/// The forms of instructions that a case executes.
pub fn forms_of(case: impl FnOnce()) -> BTreeSet<String> {
    counts_of(case).into_keys().collect()
}

/// The same with how many threads executed each.
pub fn counts_of(case: impl FnOnce()) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (_, report) in run_case(Settings::under(Schedule::AtOnce), case) {
        for (form, count) in report.counters.forms {
            *counts.entry(form).or_default() += count;
        }
    }
    counts
}

/// By which rules kernels are judged.
#[derive(Clone, Copy)]
pub struct Rules {
    pub races: Watch,
    pub tensor_loads: TensorLoads,
}

/// Ours by the strictest.
impl From<Watch> for Rules {
    fn from(races: Watch) -> Self {
        Self {
            races,
            tensor_loads: TensorLoads::AfterWait,
        }
    }
}

/// Every schedule; the first is watched for races, since what is found does not depend on the schedule.
fn ways(rules: impl Into<Rules>) -> impl Iterator<Item = Settings> {
    let Rules {
        races,
        tensor_loads,
    } = rules.into();
    SCHEDULES.into_iter().map(move |schedule| Settings {
        tensor_loads,
        races: if schedule == SCHEDULES[0] {
            races
        } else {
            Watch::Off
        },
        ..Settings::under(schedule)
    })
}

pub fn under_every_schedule(case: impl Fn()) {
    under_every_schedule_watching(Watch::All, case);
}

/// The same, for kernels that drop rows of their products from `row` on.
pub fn under_every_schedule_dropping_rows_from(row: u32, case: impl Fn()) {
    under_every_schedule_watching(Watch::AllButRowsFrom(row), case);
}

fn under_every_schedule_watching(races: Watch, case: impl Fn()) {
    for way in ways(races) {
        let schedule = way.schedule;
        let reports = run_case(way, &case);
        assert!(!reports.is_empty(), "nothing ran under {schedule:?}");
        account::add(&reports, schedule == SCHEDULES[0]);
    }
}

/// What a case says of a fault planted in its PTX; none where it survives.
fn complaint(way: Settings, case: &impl Fn()) -> Option<String> {
    let payload = catch_unwind(AssertUnwindSafe(|| run_case(way, case))).err()?;
    let text = payload
        .downcast_ref::<String>()
        .map_or_else(String::new, String::clone);
    assert!(!text.contains("to plant a fault in"), "{text}");
    Some(text)
}

/// Plants a fault in the PTX of a case that is right without it: some schedule must find it out by its values alone.
pub fn assert_caught(fault: (&'static str, &'static str), case: impl Fn()) {
    let caught = ways(Watch::Off).any(|way| {
        let fault = Some(Fault::Everywhere(fault.0, fault.1));
        complaint(Settings { fault, ..way }, &case).is_some()
    });
    assert!(
        caught,
        "nobody noticed {:?} in the place of {:?}",
        fault.1, fault.0
    );
}

/// Plants a fault that is a race: it is named under every schedule, with both accesses.
pub fn assert_race(fault: (&'static str, &'static str), words: &str, case: impl Fn()) {
    assert_named(fault, case, |text| {
        let places = text.matches("PTX line").count();
        text.contains("race: ") && text.contains(words) && places == 2
    });
}

/// The same for an access to another block's memory before it has begun, or has initialised its barriers.
pub fn assert_too_early(fault: (&'static str, &'static str), case: impl Fn()) {
    assert_named(fault, case, |text| {
        text.contains("which may not have begun") || text.contains("no mbarrier was initialised")
    });
}

fn assert_named(
    fault: (&'static str, &'static str),
    case: impl Fn(),
    is_named: impl Fn(&str) -> bool,
) {
    for schedule in SCHEDULES {
        let way = Settings {
            races: Watch::All,
            fault: Some(Fault::Everywhere(fault.0, fault.1)),
            ..Settings::under(schedule)
        };
        let text = complaint(way, &case).unwrap_or_default();
        assert!(
            is_named(&text),
            "{schedule:?}: {:?} in the place of {:?}: {text}",
            fault.1,
            fault.0
        );
    }
}

/// Enqueues a plan, which the interpreter runs at once; the error it found, if it did.
///
/// # Panics
/// If there is no plan.
pub fn run<E: Display>(plan: Result<UniquePtr<Plan>, E>) -> Result<(), String> {
    let plan = plan.unwrap_or_else(|error| panic!("no plan: {error}"));
    // SAFETY: the interpreter finishes before it returns, and checks every access.
    unsafe { plan.enqueue(0) }.map_err(|error| error.to_string())
}

/// The SM that runs kernels.
fn compute_capability() -> Option<u32> {
    device::emulated_capability(env!("HEAD_TO_HEAD_ARCH"))
}

/// Whether kernels for Hopper alone are built.
pub fn is_hopper() -> bool {
    compute_capability() == Some(90)
}

/// Whether kernels for Blackwell alone are built; families without one run their portable ones.
pub fn is_blackwell() -> bool {
    compute_capability() == Some(100)
}

/// Values from -1 to 1 that a seed repeats, rounded to bf16.
pub fn inputs(seed: u64, count: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let value = (state >> 40) as f64 / (1u64 << 23) as f64 - 1.0;
        f64::from(bf16::from_f64(value))
    };
    std::iter::repeat_with(next).take(count).collect()
}

pub fn upload(values: &[f64]) -> Memory {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| bf16::from_f64(*value).to_le_bytes())
        .collect();
    of_type("bf16", Memory::from_bytes(&bytes))
}

pub fn room(count: usize) -> Memory {
    of_type("bf16", Memory::new(2 * count))
}

/// Room for singles.
pub fn room_for_singles(count: usize) -> Memory {
    of_type("f32", Memory::new(4 * count))
}

/// Memory of which a recording of launches knows what it holds.
pub fn of_type(dtype: &'static str, memory: Memory) -> Memory {
    runtime::describe(memory.address(), dtype);
    memory
}

pub fn download(memory: &Memory) -> Vec<f64> {
    let bytes = memory.to_bytes();
    bytes
        .chunks_exact(2)
        .map(|pair| f64::from(bf16::from_le_bytes([pair[0], pair[1]])))
        .collect()
}

/// Every value within a share of its own size and an absolute bound; NaN is within nothing.
pub fn assert_close(what: &str, found: &[f64], wanted: &[f64], relative: f64, absolute: f64) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let bound = relative * wanted.abs() + absolute;
        assert!(
            (found - wanted).abs() <= bound,
            "{what}[{at}] is {found}, not {wanted} within {bound}"
        );
    }
}

/// Half a unit in the last place of bf16, and what sums of f32 lose.
pub const BF16: f64 = 0.005;
