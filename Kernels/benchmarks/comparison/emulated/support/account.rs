//! What a gate's kernels did, as JSON beside its log: `counters.json` in the test's outputs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use machine::{Counters, Report};
use serde_json::json;

struct Account {
    /// Of each kernel, under the first schedule alone: how long others spin says nothing.
    kernels: BTreeMap<String, Counters>,
    executed: BTreeSet<String>,
    thread_instructions: u64,
    other_time: Duration,
}

static ACCOUNT: Mutex<Account> = Mutex::new(Account {
    kernels: BTreeMap::new(),
    executed: BTreeSet::new(),
    thread_instructions: 0,
    other_time: Duration::ZERO,
});

/// Adds launches of our kernels; where Bazel gives a folder for outputs, the file there is up to date afterwards.
pub fn add(reports: &[(String, Report)], counts: bool) {
    static PRESENT: OnceLock<BTreeMap<String, u64>> = OnceLock::new();
    let present =
        || PRESENT.get_or_init(|| runtime::forms().unwrap_or_else(|error| panic!("{error}")));
    record(reports, counts, Whose::Ours, present);
}

/// The same of others' kernels, of which those that do not run need not be known.
pub fn add_of_others(reports: &[(String, Report)]) {
    static NONE: BTreeMap<String, u64> = BTreeMap::new();
    record(reports, true, Whose::KnownRight, || &NONE);
}

/// Whether kernels prove the forms that they execute, being right on hardware.
#[derive(PartialEq)]
enum Whose {
    Ours,
    KnownRight,
}

fn record(
    reports: &[(String, Report)],
    counts: bool,
    whose: Whose,
    present: impl Fn() -> &'static BTreeMap<String, u64>,
) {
    let mut account = ACCOUNT.lock().unwrap_or_else(PoisonError::into_inner);
    for (kernel, report) in reports {
        let forms = &report.counters.forms;
        account.executed.extend(forms.keys().cloned());
        if counts {
            let kernel = account.kernels.entry(kernel.clone()).or_default();
            kernel.add(&report.counters);
        } else {
            // Outside of products, and without the race detector.
            account.thread_instructions += report.counters.thread_instructions;
            account.other_time += report.other_time;
        }
    }
    let Some(folder) = std::env::var_os("TEST_UNDECLARED_OUTPUTS_DIR") else {
        return;
    };
    let rate = account.thread_instructions as f64 / account.other_time.as_secs_f64();
    let file = json!({
        "test": std::env::var("TEST_TARGET").unwrap_or_default(),
        "compute_capability": crate::compute_capability(),
        "known_right": whose == Whose::KnownRight,
        "thread_instructions_per_second": rate.round(),
        "kernels": account.kernels,
        "executed": account.executed,
        "present": present(),
    });
    let path = PathBuf::from(folder).join("counters.json");
    std::fs::write(&path, format!("{file:#}\n"))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// The forms of every kernel that is linked in.
fn present() -> &'static BTreeMap<String, u64> {
    static PRESENT: OnceLock<BTreeMap<String, u64>> = OnceLock::new();
    PRESENT.get_or_init(|| runtime::forms().unwrap_or_else(|error| panic!("{error}")))
}

/// Every form of the linked kernels has a test with known results.
pub fn assert_proven() {
    let unproven: Vec<_> = present()
        .keys()
        .filter(|form| machine::proof(form).is_none())
        .collect();
    assert!(
        unproven.is_empty(),
        "nothing proves {unproven:?}: add them to the tests in Kernels/emulator/machine/scenarios"
    );
}
