//! Races on the CPU device, from buffers to validity verdict.

use std::time::Duration;

use contender::{Kind, Problem};
use device::DeviceKind;
use faults::{Fault, FaultyContender, Scaled};
use gate::{Failure, Gate, GateOptions};
use timing::{race, validate, CacheState, Course, Lane, Limits, Plan, Rotation, Step};

fn plan() -> Plan {
    let mut plan = Plan::new(3);
    plan.warmup = Duration::from_millis(1);
    plan.rule.budget = Duration::from_millis(200);
    plan
}

/// Races the faults against each other on small buffers.
fn run(
    faults: &[Fault],
    plan: &Plan,
    rotation: Rotation,
) -> Result<Vec<timing::Timing>, timing::LaneFailure> {
    let device = device::open(DeviceKind::Cpu).unwrap();
    let problem = Scaled::new(64, 64);
    let gate = Gate::new(&problem, GateOptions::new(plan.seed)).unwrap();
    let course = Course::new(&*device, problem.tensors(), rotation, plan.seed).unwrap();
    let mut lanes = Vec::new();
    for fault in faults {
        let contender = FaultyContender::new("lane", Kind::Own, *fault);
        let mut lane = Lane::new(&contender, &problem, &course, plan.launch).unwrap();
        gate.examine(course.first(), &mut lane.first()).unwrap();
        lanes.push(lane);
    }
    let mut steps = Vec::new();
    let timings = race(
        &course,
        &mut lanes,
        &[(0, 1)][..faults.len().min(2) - 1],
        plan,
        Some(&gate),
        &mut |lane, step| {
            steps.push((lane, step));
        },
    )?;
    assert_eq!(steps[0], (0, Step::WarmUp));
    let samples = steps
        .iter()
        .filter(|(_, step)| *step == Step::Sample)
        .count();
    assert_eq!(
        samples,
        timings
            .iter()
            .map(|timing| timing.samples.len())
            .sum::<usize>()
    );
    for (lane, timing) in lanes.iter_mut().zip(&timings) {
        let validity =
            validate(&course, lane, timing, plan, Limits::default(), Some(&gate)).unwrap();
        assert_eq!(validity.reason, None);
        let floor = Limits {
            floor_us: Some(1e9),
        };
        let impossible = validate(&course, lane, timing, plan, floor, Some(&gate)).unwrap();
        assert!(impossible.reason.unwrap().contains("roofline"));
    }
    Ok(timings)
}

const ROTATE: Rotation = Rotation {
    sets: 3,
    flush: false,
};

#[test]
fn every_lane_has_a_sample_in_every_round_and_some_rounds_are_checked() {
    let timings = run(&[Fault::None; 3], &plan(), ROTATE).unwrap();
    assert_eq!(timings.len(), 3);
    for timing in &timings {
        assert!(timing.samples.len() >= 10);
        assert_eq!(timing.samples.len(), timings[0].samples.len());
        assert!(timing.checked_rounds >= 1);
        assert!(timing.samples.iter().all(|sample| sample.elapsed_us > 0.0));
    }
}

#[test]
fn nobody_is_blamed_for_damage_done_before_the_race() {
    let device = device::open(DeviceKind::Cpu).unwrap();
    let (problem, plan) = (Scaled::new(64, 64), plan());
    let gate = Gate::new(&problem, GateOptions::new(plan.seed)).unwrap();
    let course = Course::new(&*device, problem.tensors(), ROTATE, plan.seed).unwrap();
    // An input, and the guard band behind it, of a set that the gate does not look at.
    let input = course.sets()[1].buffers()[0];
    let end = input.address + input.bytes;
    device.write(end - 4, &[7; 8]).unwrap();
    let honest = FaultyContender::new("honest", Kind::Own, Fault::None);
    let lane = Lane::new(&honest, &problem, &course, plan.launch).unwrap();
    let raced = race(
        &course,
        &mut [lane],
        &[],
        &plan,
        Some(&gate),
        &mut |_, _| {},
    );
    assert!(raced.is_ok(), "{}", raced.unwrap_err());
}

#[test]
fn rounds_can_be_fixed_and_the_cache_hot_or_flushed() {
    let mut fixed = plan();
    fixed.rule.rounds_fixed = Some(4);
    for (cache, rotation) in [
        (
            CacheState::Cold,
            Rotation {
                sets: 2,
                flush: true,
            },
        ),
        (
            CacheState::Hot,
            Rotation {
                sets: 1,
                flush: false,
            },
        ),
    ] {
        fixed.cache = cache;
        let timings = run(&[Fault::None; 2], &fixed, rotation).unwrap();
        assert!(timings.iter().all(|timing| timing.samples.len() == 4));
    }
}

/// Blocks are samples: paired, checked and judged like single executions.
#[test]
fn in_steady_state_a_sample_is_a_block() {
    let mut steady = plan();
    steady.steady = Some(Duration::from_millis(5));
    steady.rule.rounds_fixed = Some(6);
    let start = std::time::Instant::now();
    let timings = run(&[Fault::None; 2], &steady, ROTATE).unwrap();
    assert!(start.elapsed() > 2 * 6 * Duration::from_millis(5));
    for timing in timings {
        assert_eq!(timing.samples.len(), 6);
        assert!(timing
            .samples
            .iter()
            .all(|sample| sample.elapsed_us < 5000.0));
        assert!(timing.checked_rounds >= 1);
    }
    let lost = run(&[Fault::None, Fault::OnlyFirstSet], &steady, ROTATE).unwrap_err();
    assert_eq!(lost.lane, Some(1), "{}", lost.failure);
}

#[test]
fn a_lane_that_idles_when_timed_is_found_by_the_checked_rounds() {
    let lost = run(&[Fault::None, Fault::IdleWhenTimed], &plan(), ROTATE).unwrap_err();
    assert_eq!(lost.lane, Some(1));
    assert!(
        matches!(lost.failure, Failure::Unwritten { .. }),
        "{}",
        lost.failure
    );
}

/// They pass the gate, and every one of them is found by the checks of the race, whether the cache
/// is made cold by rotation or by a flush.
#[test]
fn what_only_passes_the_gate_is_found_in_the_race() {
    let flushed = Rotation {
        sets: 2,
        flush: true,
    };
    for fault in [
        Fault::EveryThirdCall,
        Fault::OnlyFirstSet,
        Fault::CheaperWhenTimed,
        Fault::HalfWhenTimed,
    ] {
        for rotation in [ROTATE, flushed] {
            let lost = run(&[Fault::None, fault], &plan(), rotation).unwrap_err();
            assert_eq!(lost.lane, Some(1), "{fault:?}: {}", lost.failure);
            let named = match fault {
                Fault::CheaperWhenTimed => matches!(lost.failure, Failure::Inaccurate { .. }),
                _ => matches!(lost.failure, Failure::Unwritten { .. }),
            };
            assert!(named, "{fault:?}: {}", lost.failure);
        }
    }
}

/// Where rotation makes the cache cold, a round that is checked is prepared like any other.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_lane_that_works_only_after_a_flush_is_found() {
    let lost = run(&[Fault::None, Fault::SensesFlush], &plan(), ROTATE).unwrap_err();
    assert_eq!(lost.lane, Some(1), "{}", lost.failure);
}

/// How long it was not called says when others are checked, but not whether it is itself.
#[test]
fn a_lane_that_senses_pauses_is_found() {
    let device = device::open(DeviceKind::Cpu).unwrap();
    let problem = Scaled::new(64, 96);
    let mut plan = plan();
    plan.rule.rounds_fixed = Some(200);
    let rotation = Rotation {
        sets: 2,
        flush: true,
    };
    let course = Course::new(&*device, problem.tensors(), rotation, plan.seed).unwrap();
    let mut found = |entropy| {
        plan.entropy = entropy;
        let gate = Gate::new(&problem, GateOptions::new(plan.seed)).unwrap();
        let lane = |fault| {
            let contender = FaultyContender::new("lane", Kind::Own, fault);
            let mut lane = Lane::new(&contender, &problem, &course, plan.launch).unwrap();
            gate.examine(course.first(), &mut lane.first()).unwrap();
            lane
        };
        let mut lanes = [Fault::None; 6].map(lane);
        lanes[5] = lane(Fault::SensesPauses);
        let raced = race(&course, &mut lanes, &[], &plan, Some(&gate), &mut |_, _| ());
        raced.is_err_and(|lost| lost.lane == Some(5))
    };
    // Now and then it is never checked while it slacks.
    let count = (0..5).filter(|entropy| found(*entropy)).count();
    assert!(count >= 3, "found in {count} of 5 races");
}

#[test]
fn a_lane_that_idles_through_a_block_is_invalid() {
    let device = device::open(DeviceKind::Cpu).unwrap();
    let problem = Scaled::new(64, 96);
    let mut steady = plan();
    steady.steady = Some(Duration::from_millis(5));
    steady.rule.rounds_fixed = Some(6);
    let gate = Gate::new(&problem, GateOptions::new(steady.seed)).unwrap();
    let course = Course::new(&*device, problem.tensors(), ROTATE, steady.seed).unwrap();
    for (fault, idles) in [(Fault::Slow, false), (Fault::IdleIfDone, true)] {
        let contender = FaultyContender::new("lane", Kind::Own, fault);
        let lane = Lane::new(&contender, &problem, &course, steady.launch).unwrap();
        let mut lanes = [lane];
        let timings = race(
            &course,
            &mut lanes,
            &[],
            &steady,
            Some(&gate),
            &mut |_, _| (),
        )
        .unwrap();
        let limits = Limits::default();
        let validity = validate(
            &course,
            &mut lanes[0],
            &timings[0],
            &steady,
            limits,
            Some(&gate),
        )
        .unwrap();
        let reason = validity.reason.unwrap_or_default();
        let found = reason.contains("remembers answers");
        assert_eq!(found, idles, "{fault:?}: {reason}");
    }
}

/// Every answer is right, so only the time tells.
#[test]
fn a_lane_that_remembers_answers_is_invalid() {
    let device = device::open(DeviceKind::Cpu).unwrap();
    let problem = Scaled::new(64, 96);
    for cache in [CacheState::Cold, CacheState::Hot] {
        let mut plan = plan();
        plan.cache = cache;
        let gate = Gate::new(&problem, GateOptions::new(plan.seed)).unwrap();
        let rotation = Rotation {
            sets: 1,
            flush: cache == CacheState::Cold,
        };
        let course = Course::new(&*device, problem.tensors(), rotation, plan.seed).unwrap();
        for (fault, remembers) in [
            (Fault::Slow, false),
            (Fault::Memoises, true),
            (Fault::MemoisesHalf, true),
            (Fault::SkipsRepeats, true),
        ] {
            let found = || {
                let contender = FaultyContender::new("lane", Kind::Own, fault);
                let mut lane = Lane::new(&contender, &problem, &course, plan.launch).unwrap();
                gate.examine(course.first(), &mut lane.first()).unwrap();
                let mut lanes = [lane];
                let timings =
                    race(&course, &mut lanes, &[], &plan, Some(&gate), &mut |_, _| ()).unwrap();
                let limits = Limits::default();
                let validity = validate(
                    &course,
                    &mut lanes[0],
                    &timings[0],
                    &plan,
                    limits,
                    Some(&gate),
                )
                .unwrap();
                let reason = validity.reason.unwrap_or_default();
                reason.contains("remembers answers")
            };
            // Other tests share the machine and may hide a difference; none makes one up.
            let races = if remembers { 5 } else { 1 };
            assert_eq!((0..races).any(|_| found()), remembers, "{fault:?}");
        }
    }
}
