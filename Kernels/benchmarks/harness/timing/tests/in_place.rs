//! A problem updated in place: every sample starts from the inputs, checked or not, cold or hot.

use std::time::Duration;

use contender::{
    Bound, Buffer, Contender, ContenderError, Cost, DeviceInfo, Identity, Kind, Math, Problem,
    Slice, Statement, Stream, Support, Workload,
};
use device::DeviceKind;
use gate::{Gate, GateOptions};
use numeric::DType;
use tensor::{Inputs, TensorSpec};
use timing::{race, CacheState, Course, Lane, Plan, Rotation};

/// `total[i] += step[i]`, with a count of the elements as a second output.
struct Accumulate(Statement);

const ELEMENTS: usize = 500;

impl Accumulate {
    fn new() -> Self {
        let workload = Workload {
            name: "500".into(),
            suite: "smoke".into(),
            provenance: "made up".into(),
            ..Workload::default()
        };
        let tensors = vec![
            TensorSpec::in_out("total", DType::F32, &[ELEMENTS]),
            TensorSpec::input("step", DType::F32, &[ELEMENTS]),
            TensorSpec::output("count", DType::I32, &[1]),
        ];
        Self(Statement {
            op: "accumulate",
            dtype: DType::F32,
            workload,
            tensors,
        })
    }
}

impl Problem for Accumulate {
    fn statement(&self) -> &Statement {
        &self.0
    }

    fn cost(&self) -> Cost {
        Cost {
            flops: 500.0,
            read_bytes: 4000.0,
            written_bytes: 2004.0,
            math: Math::Fp32,
        }
    }

    fn units(&self) -> usize {
        1
    }

    fn oracle(&self, inputs: &Inputs, _unit: usize) -> Vec<Slice> {
        let (total, step) = (inputs.range(0, 0, ELEMENTS), inputs.range(1, 0, ELEMENTS));
        let values = total
            .iter()
            .zip(&step)
            .map(|(total, step)| total + step)
            .collect();
        vec![
            Slice {
                tensor: 0,
                start: 0,
                values,
            },
            Slice {
                tensor: 2,
                start: 0,
                values: vec![ELEMENTS as f64],
            },
        ]
    }

    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        let mut slices = self.oracle(inputs, unit);
        for value in &mut slices[0].values {
            *value = DType::F32.round(*value);
        }
        slices
    }
}

struct Adder {
    identity: Identity,
    counts: bool,
}

impl Adder {
    fn new(counts: bool) -> Self {
        let identity = Identity::in_tree("adder", Kind::Own, "everything");
        Self { identity, counts }
    }
}

impl Contender<Accumulate> for Adder {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, _: &Accumulate, _: &DeviceInfo) -> Support {
        Support::Yes
    }

    fn bind(
        &self,
        _: &Accumulate,
        buffers: &[Buffer],
        _: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let [total, step, count] = [0, 1, 2].map(|tensor| buffers[tensor].address);
        Ok(Box::new(BoundAdder {
            total,
            step,
            count: self.counts.then_some(count),
        }))
    }
}

struct BoundAdder {
    total: usize,
    step: usize,
    count: Option<usize>,
}

impl Bound for BoundAdder {
    fn enqueue(&mut self, _: Stream) -> Result<(), ContenderError> {
        // SAFETY: the harness gives live buffers of the problem's sizes and waits for this call.
        unsafe {
            let total = std::slice::from_raw_parts_mut(self.total as *mut f32, ELEMENTS);
            let step = std::slice::from_raw_parts(self.step as *const f32, ELEMENTS);
            total
                .iter_mut()
                .zip(step)
                .for_each(|(total, step)| *total += step);
            if let Some(count) = self.count {
                (count as *mut i32).write(ELEMENTS as i32);
            }
        }
        Ok(())
    }
}

#[test]
fn every_sample_starts_from_the_inputs() {
    let device = device::open(DeviceKind::Cpu).unwrap();
    let problem = Accumulate::new();
    for cache in [CacheState::Cold, CacheState::Hot] {
        let mut plan = Plan::new(5);
        plan.cache = cache;
        plan.warmup = Duration::from_millis(1);
        plan.rule.rounds_fixed = Some(40);
        let rotation = Rotation::new(problem.tensors(), cache, device.info());
        assert_eq!(rotation.flush, cache == CacheState::Cold);
        let gate = Gate::new(&problem, GateOptions::new(plan.seed)).unwrap();
        let course = Course::new(&*device, problem.tensors(), rotation, plan.seed).unwrap();
        let mut lane = Lane::new(&Adder::new(true), &problem, &course, plan.launch).unwrap();
        let errors = gate.examine(course.first(), &mut lane.first()).unwrap();
        let names: Vec<&str> = errors.iter().map(|errors| errors.tensor.as_str()).collect();
        assert_eq!(names, ["total", "count"]);
        let timings = race(
            &course,
            &mut [lane],
            &[],
            &plan,
            Some(&gate),
            &mut |_, _| (),
        )
        .unwrap();
        assert!(timings[0].checked_rounds >= 1);
    }
}

#[test]
fn an_unwritten_integer_is_found() {
    let device = device::open(DeviceKind::Cpu).unwrap();
    let problem = Accumulate::new();
    let plan = Plan::new(5);
    let gate = Gate::new(&problem, GateOptions::new(plan.seed)).unwrap();
    let rotation = Rotation {
        sets: 1,
        flush: true,
    };
    let course = Course::new(&*device, problem.tensors(), rotation, plan.seed).unwrap();
    let mut lane = Lane::new(&Adder::new(false), &problem, &course, plan.launch).unwrap();
    let failure = gate.examine(course.first(), &mut lane.first()).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "left 1 elements of 'count' unwritten, the first at 'count'[0] (unit 0), the oracle says 5e2"
    );
}
