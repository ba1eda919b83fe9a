//! When `tcgen05.ld` reads tensor memory, and when its registers hold something.

use super::tensor_forms::warp;
use super::{execute, threads, SCHEDULES};
use crate::{Error, Launch, Schedule, TensorLoads, Watch};

const POISON: u32 = 0x7fc0_dead;
const LATE: Schedule = Schedule::Late { seed: 1 };

/// The registers %r20 and %r21 of the fourth thread after `body`: columns 0 and 1 of its lane hold 3000 and 3001 first.
fn fourth(body: &str, tensor_loads: TensorLoads, launch: Launch) -> Result<[u32; 2], Error> {
    let mut buffers = [vec![0; 2048], vec![0; 64]];
    let launch = Launch {
        tensor_loads,
        ..launch
    };
    execute(&warp(body, 2), &launch, &mut buffers)?;
    Ok([buffers[1][6], buffers[1][7]])
}

fn found(body: &str, tensor_loads: TensorLoads, schedule: Schedule) -> [u32; 2] {
    let launch = Launch {
        schedule,
        races: Watch::Off,
        ..threads(32)
    };
    fourth(body, tensor_loads, launch).unwrap_or_else(|error| panic!("{schedule:?}: {error}"))
}

const LOAD: &str = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r20, %r21}, [%r7];";
const WAIT: &str = "tcgen05.wait::ld.sync.aligned;";
const OVERWRITE: &str = "mov.u32 %r30, 7; mov.u32 %r31, 8;
    tcgen05.st.sync.aligned.32x32b.x2.b32 [%r7], {%r30, %r31}; tcgen05.wait::st.sync.aligned;";

#[test]
fn a_use_waits_where_that_is_the_rule() {
    assert_eq!(
        found(LOAD, TensorLoads::AfterWait, LATE),
        [POISON, POISON],
        "a missing wait shows"
    );
    for schedule in SCHEDULES {
        let values = found(LOAD, TensorLoads::AtFirstUse, schedule);
        assert_eq!(values, [3000, 3001], "{schedule:?}");
    }
    // A register that is written again keeps what was written last.
    let body = format!("{LOAD} mov.u32 %r20, 5; {WAIT}");
    assert_eq!(found(&body, TensorLoads::AtFirstUse, LATE), [5, 3001]);
}

#[test]
fn tensor_memory_is_read_late() {
    let under = |body: &str, schedule| found(body, TensorLoads::AtFirstUse, schedule);
    let body = format!("{LOAD} {OVERWRITE} {WAIT}");
    assert_eq!(under(&body, Schedule::AtOnce), [3000, 3001]);
    for rule in [TensorLoads::AfterWait, TensorLoads::AtFirstUse] {
        assert_eq!(found(&body, rule, LATE), [7, 8], "{rule:?}");
    }
    assert_eq!(
        under(&format!("{LOAD} {WAIT} {OVERWRITE}"), LATE),
        [3000, 3001]
    );
    // The use of one register completes the whole load.
    let body = format!("{LOAD} add.u32 %r32, %r21, 1; {OVERWRITE} {WAIT}");
    assert_eq!(under(&body, LATE), [3000, 3001]);
}

#[test]
fn every_column_goes_to_a_register() {
    let load = LOAD.replace("{%r20, %r21}", "{_, %r21}");
    let error = fourth(&load, TensorLoads::AfterWait, threads(32)).unwrap_err();
    assert!(
        error.to_string().contains("a result that is a sink"),
        "{error}"
    );
}

#[test]
fn a_use_does_not_order_tensor_memory() {
    let error = fourth(LOAD, TensorLoads::AtFirstUse, threads(32)).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("race: ") && error.contains("the read by tcgen05.ld of warp"),
        "{error}"
    );
}
