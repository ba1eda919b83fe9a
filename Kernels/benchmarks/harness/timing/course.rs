//! The buffers that contenders run on in turn, and how one sample on them is taken.

use device::{
    Cache, Device, DeviceError, DeviceInfo, DeviceKind, Sample, SampleError, SampleMode, Trace,
    Watch,
};
use gate::{BufferSet, Failure, Gate, Poison};
use tensor::{Role, TensorSpec};

use crate::{steady, CacheState, Lane, Plan, Step, Timer};

/// How the cache is made cold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    pub sets: usize,
    /// Flush before each sample, because rotation alone does not evict the inputs.
    pub flush: bool,
}

/// More sets than this cost more in planning than a flush per sample.
const SETS_MAX: usize = 32;
/// Rounds whose fresh inputs the oracle answers for before the race. Few races of a short budget have more.
const ROUNDS_FORESEEN: usize = 20;
/// Share of device memory that buffer sets may use; contenders need workspace too.
const MEMORY_SHARE: f64 = 0.6;

impl Rotation {
    /// Enough sets that their inputs add up to twice the last-level cache, if possible.
    pub fn new(specs: &[TensorSpec], cache: CacheState, info: &DeviceInfo) -> Self {
        let footprint = BufferSet::footprint_bytes(specs) as f64;
        let fitting = (MEMORY_SHARE * info.memory_bytes as f64 / footprint) as usize;
        let in_place = specs.iter().any(|spec| spec.role == Role::InOut);
        let inputs: usize = specs
            .iter()
            .filter(|spec| spec.role.is_read())
            .map(TensorSpec::bytes)
            .sum();
        let needed = (2 * info.l2_bytes as usize).div_ceil(inputs.max(1));
        // At least two sets, so that nobody is right at one address alone.
        let few = fitting.clamp(1, 2);
        if cache == CacheState::Hot {
            Self {
                sets: 1,
                flush: false,
            }
        } else if in_place || needed > SETS_MAX.min(fitting) {
            // In-place tensors are refilled before each sample, which leaves them in the cache.
            Self {
                sets: few,
                flush: true,
            }
        } else {
            Self {
                sets: needed.max(few),
                flush: false,
            }
        }
    }
}

/// All buffer sets of a workload.
pub struct Course<'a> {
    device: &'a dyn Device,
    sets: Vec<BufferSet<'a>>,
    rotation: Rotation,
    flush: bool,
    in_place: bool,
    seed: u64,
}

/// How one sample is taken.
#[derive(Clone, Copy)]
pub(crate) struct Turn<'a> {
    pub set: usize,
    /// In the outputs before the work starts.
    pub poison: Poison,
    /// Refills the inputs with those of this seed.
    pub seed: Option<u64>,
    /// Checks the outputs afterwards.
    pub gate: Option<&'a Gate<'a>>,
}

impl<'a> Course<'a> {
    /// All sets hold the inputs of `seed`: to these the gate knows most answers, so that no set is one on which it sees
    /// less.
    pub fn new(
        device: &'a dyn Device,
        specs: &'a [TensorSpec],
        rotation: Rotation,
        seed: u64,
    ) -> Result<Self, DeviceError> {
        let sets = (0..rotation.sets)
            .map(|_| BufferSet::new(device, specs, seed))
            .collect::<Result<_, _>>()?;
        let in_place = specs.iter().any(|spec| spec.role == Role::InOut);
        Ok(Self {
            device,
            sets,
            rotation,
            // A GPU's cache is flushed even though buffers rotate: otherwise writes of the last sample
            // could be written back during this one.
            flush: rotation.flush || device.info().kind == DeviceKind::Cuda,
            in_place,
            seed,
        })
    }

    /// What fresh inputs may cost a contender that has kept nothing. On a CPU whoever writes them leaves
    /// them in the cache of another core. On an H200 ops of two kernels took up to 1.4 us longer.
    pub(crate) fn moved_inputs_us(&self) -> f64 {
        match self.device.info().kind {
            DeviceKind::Cpu => 5.0,
            DeviceKind::Cuda | DeviceKind::Ptx => 2.0,
        }
    }

    /// Has the gate compute what a race under `plan` is going to ask: the answers to the fresh inputs of the rounds
    /// that every race has.
    pub fn foresee(&self, gate: &Gate, plan: &Plan) {
        gate.foresee(plan.fresh_seeds(ROUNDS_FORESEEN).collect());
    }

    /// The same buffers once more, for a contender that shares none.
    pub fn another(&self) -> Result<Self, DeviceError> {
        Self::new(self.device, self.sets[0].specs(), self.rotation, self.seed)
    }

    /// The seed of the inputs that all sets hold, but in turns with others.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub fn device(&self) -> &'a dyn Device {
        self.device
    }

    pub fn sets(&self) -> &[BufferSet<'a>] {
        &self.sets
    }

    /// Makes all sets whole again: guard bands, own inputs, outputs without an answer.
    pub fn reset(&self) -> Result<(), DeviceError> {
        self.sets.iter().try_for_each(|set| set.load(self.seed))
    }

    /// Whether a run changes its own inputs.
    pub(crate) fn in_place(&self) -> bool {
        self.in_place
    }

    /// The set on which the gate checks contenders.
    pub fn first(&self) -> &BufferSet<'a> {
        &self.sets[0]
    }

    /// Whether executions on one set after the other find a cold cache without a flush.
    pub(crate) fn is_cold_by_rotation(&self) -> bool {
        !self.rotation.flush
    }

    /// One timed sample. Fresh inputs stay in the set until a turn that is on its own.
    pub(crate) fn sample(
        &self,
        lane: &mut Lane,
        turn: &Turn,
        plan: &Plan,
        announce: &mut dyn FnMut(Step),
    ) -> Result<Sample, Failure> {
        if let Some(own) = lane.own_course().filter(|own| !std::ptr::eq(&**own, self)) {
            return own.sample(lane, turn, plan, announce);
        }
        let (set, own_seed) = (&self.sets[turn.set], self.seed);
        let rotates = plan.cache == CacheState::Cold && !self.flush && plan.steady.is_none();
        if plan.cache == CacheState::Hot {
            if set.seed() != own_seed {
                set.refill(own_seed)?;
            }
            lane.enqueue(turn.set, self.device.stream())?;
            self.device.synchronize()?;
        }
        let seed = turn.seed.unwrap_or(own_seed);
        let refilled = turn.seed.is_some() || set.seed() != own_seed;
        match refilled {
            true => {
                announce(Step::Refill);
                set.refill(seed)?;
            }
            false => set.restore()?,
        }
        announce(Step::Sample);
        // Where only rotation makes the cache cold, outputs were poisoned after their last use.
        if !rotates {
            set.poison(turn.poison)?;
        }
        // Not where outputs will be checked: who finds a flushed cache would know.
        let cache = match plan.cache {
            CacheState::Cold if refilled || self.flush => Cache::Cold,
            _ => Cache::AsIs,
        };
        // A process of its own sees its inputs before it is called: not those that are fresh.
        if let (Some(seed), Some(_)) = (turn.seed, lane.own_course()) {
            let inputs = set.withhold(seed.wrapping_add(1))?;
            if !lane.deliver(turn.set, &inputs) {
                set.refill(seed)?;
            }
        }
        let mut watch = turn.gate.and_then(|_| self.watch(set));
        let sample = match plan.steady {
            Some(length) => steady::block(self, lane, length)?,
            None => self.measure(lane, turn.set, plan.timer, cache)?,
        };
        if let Some(watch) = &mut watch {
            watch.look();
        }
        if let Some(gate) = turn.gate {
            announce(Step::Check);
            gate.check_again(set)?;
        }
        if watch.is_some_and(|watch| watch.has_changed()) {
            return Err(Failure::OutOfOrder);
        }
        // The next sample is another's.
        self.device.wait_for_rest();
        // Nor does anybody find an answer to fresh inputs in a set that he can read.
        if rotates || turn.seed.is_some() {
            set.poison(turn.poison)?;
        }
        Ok(sample)
    }

    /// Of outputs that a thread could go on writing to, unseen by a tracer.
    fn watch(&self, set: &BufferSet) -> Option<Watch> {
        let tensors = set.specs().iter().zip(set.buffers());
        let outputs = tensors.filter(|(spec, _)| spec.role.is_written());
        (self.device.info().kind == DeviceKind::Cpu)
            .then(|| Watch::new(outputs.map(|(_, buffer)| *buffer).collect()))
    }

    /// Does the work once, untimed, on inputs of `seed`. Those of `next` are written before that, so that
    /// writing them again costs the same whether they are new or not: no checksum is left to be made.
    pub(crate) fn prime(
        &self,
        lane: &mut Lane,
        set: usize,
        seed: u64,
        next: u64,
    ) -> Result<(), Failure> {
        if let Some(own) = lane.own_course().filter(|own| !std::ptr::eq(&**own, self)) {
            return own.prime(lane, set, seed, next);
        }
        self.sets[set].refill(next)?;
        self.sets[set].refill(seed)?;
        lane.enqueue(set, self.device.stream())?;
        Ok(self.device.synchronize()?)
    }

    fn measure(
        &self,
        lane: &mut Lane,
        set: usize,
        timer: Timer,
        cache: Cache,
    ) -> Result<Sample, Failure> {
        let mode = SampleMode::new(cache);
        let enqueue = &mut |stream| lane.enqueue(set, stream);
        if timer == Timer::Op {
            let sample = self.device.sample(mode, enqueue)?;
            return Ok(Sample {
                elapsed_us: lane.elapsed_us(set).unwrap_or(sample.elapsed_us),
                ..sample
            });
        }
        let mut sample = || -> Result<Sample, Failure> { Ok(self.device.sample(mode, enqueue)?) };
        let (sample, traces) = self.traced(&mut sample)?;
        let elapsed_us = traces.first().and_then(Trace::activity_us);
        Ok(Sample {
            elapsed_us: elapsed_us.ok_or(Failure::Untraced)?,
            clock_mhz: None,
            ..sample
        })
    }

    /// Takes samples under the tracer.
    pub(crate) fn traced<T, E: From<Failure>>(
        &self,
        samples: &mut dyn FnMut() -> Result<T, E>,
    ) -> Result<(T, Vec<Trace>), E> {
        let failure = |error: SampleError| E::from(Failure::from(error));
        self.device.start_trace().map_err(failure)?;
        let taken = samples();
        let traces = self.device.stop_trace().map_err(failure);
        // The work's own error says more than what the tracer makes of it.
        Ok((taken?, traces?))
    }

    /// Fails if a canary or an input of any set has changed.
    pub(crate) fn check_untouched(&self) -> Result<(), Failure> {
        self.sets.iter().try_for_each(BufferSet::check_untouched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contender::DeviceKind;
    use numeric::DType;

    fn info() -> DeviceInfo {
        DeviceInfo {
            kind: DeviceKind::Cuda,
            name: "test".into(),
            uuid: None,
            arch: "sm_90a".into(),
            compute_capability: Some((9, 0)),
            multiprocessors: 4,
            l2_bytes: 50 << 20,
            memory_bytes: 80 << 30,
            shared_bytes_per_block: 0,
            emulated: false,
        }
    }

    fn specs(rows: usize) -> Vec<TensorSpec> {
        vec![
            TensorSpec::input("x", DType::Bf16, &[rows, 1 << 19]),
            TensorSpec::output("y", DType::Bf16, &[rows, 1 << 19]),
        ]
    }

    #[test]
    fn inputs_of_all_sets_are_twice_the_cache() {
        let rotation = Rotation::new(&specs(10), CacheState::Cold, &info());
        assert_eq!(
            rotation,
            Rotation {
                sets: 10,
                flush: false
            }
        );
        let large = Rotation::new(&specs(1000), CacheState::Cold, &info());
        assert_eq!(
            large,
            Rotation {
                sets: 2,
                flush: false
            }
        );
    }

    #[test]
    fn small_and_in_place_problems_are_flushed() {
        let small = Rotation::new(&specs(1), CacheState::Cold, &info());
        assert_eq!(
            small,
            Rotation {
                sets: 2,
                flush: true
            }
        );
        let mut in_place = specs(10);
        in_place[1].role = Role::InOut;
        assert!(Rotation::new(&in_place, CacheState::Cold, &info()).flush);
    }

    #[test]
    fn hot_needs_one_set_and_so_does_a_problem_that_fills_memory() {
        assert_eq!(Rotation::new(&specs(10), CacheState::Hot, &info()).sets, 1);
        assert_eq!(
            Rotation::new(&specs(24_000), CacheState::Cold, &info()).sets,
            1
        );
    }
}
