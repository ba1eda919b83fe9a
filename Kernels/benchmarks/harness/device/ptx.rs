//! PTX as a device: kernels run in the interpreter, in the process's own memory. There is no clock.

use std::cell::Cell;
use std::time::Duration;

use contender::{Buffer, DeviceInfo, DeviceKind, Stream};
use numeric::DType;
use runtime::{Schedule, Settings, TensorLoads, SCHEDULES};
use serde_json::json;
use tensor::TensorSpec;

use crate::{
    Cache, Comparison, CpuDevice, Device, DeviceError, DeviceState, Enqueue, Facts, Graph, Memory,
    Sample, SampleError, SampleMode, Tiles, Tolerance, Trace,
};

/// The interpreter that the program's kernels are linked to.
pub struct PtxDevice {
    info: DeviceInfo,
    host: CpuDevice,
    executions: Cell<usize>,
    only: Cell<Option<Schedule>>,
}

impl PtxDevice {
    /// Fails if the program has no kernels.
    pub fn open() -> Result<Self, DeviceError> {
        let capability = runtime::compute_capability();
        Ok(Self::of(capability.ok_or(DeviceError::NotEmulated)?))
    }

    /// The same for a program whose kernels may all be brought by its user: it is then of the virtual architecture that
    /// it was built for, such as `compute_90a`, the first of `compute_90a+compute_100a`.
    pub fn open_for(arch: &str) -> Result<Self, DeviceError> {
        let capability = emulated_capability(arch);
        Ok(Self::of(capability.ok_or(DeviceError::NotEmulated)?))
    }

    fn of(capability: u32) -> Self {
        let host = CpuDevice::open();
        let device = Self {
            info: DeviceInfo {
                kind: DeviceKind::Ptx,
                name: "PTX interpreter".to_owned(),
                uuid: None,
                arch: format!("sm_{capability}a"),
                compute_capability: Some((capability / 10, capability % 10)),
                multiprocessors: runtime::multiprocessors_of(capability),
                l2_bytes: 0,
                memory_bytes: host.info().memory_bytes,
                shared_bytes_per_block: runtime::MOST_SHARED,
                emulated: true,
            },
            host,
            executions: Cell::new(0),
            only: Cell::new(None),
        };
        device.schedule();
        device
    }

    /// The same with another number of multiprocessors.
    pub fn of_size(mut self, multiprocessors: u32) -> Self {
        self.info.multiprocessors = multiprocessors;
        self.schedule();
        self
    }

    /// From now on under this schedule alone, or what a test sets; none for all of them in turn.
    pub fn keep_to(&self, schedule: Option<Schedule>) {
        self.only.set(schedule);
        self.schedule();
    }

    /// Every execution comes under the next schedule, so that the gate's runs see all of them.
    fn schedule(&self) {
        let next = SCHEDULES[self.executions.get() % SCHEDULES.len()];
        runtime::set(Settings {
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            multiprocessors: self.info.multiprocessors,
            // What PTX allows, and kernels of others rely on.
            tensor_loads: TensorLoads::AtFirstUse,
            ..Settings::under(self.only.get().unwrap_or(next))
        });
    }
}

/// The compute capability that a program emulates, 90 or 100, if it was built for a virtual architecture.
pub fn emulated_capability(arch: &str) -> Option<u32> {
    let built = || {
        let first = arch.split('+').next()?;
        let digits = first.strip_prefix("compute_")?.trim_end_matches('a');
        digits.parse().ok()
    };
    runtime::compute_capability().or_else(built)
}

fn no_clock<T>() -> Result<T, SampleError> {
    Err(DeviceError::NoClock.into())
}

impl Device for PtxDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError> {
        let memory = self.host.allocate(bytes)?;
        let address = memory.address();
        // SAFETY: it is withdrawn before the memory is freed, and nobody borrows it during a launch.
        unsafe { runtime::lend(address, bytes) };
        let release = move || {
            runtime::withdraw(address);
            drop(memory);
        };
        Ok(Memory::new(address, bytes, Box::new(release)))
    }

    fn fill(
        &self,
        address: usize,
        spec: &TensorSpec,
        tensor: u32,
        seed: u64,
    ) -> Result<(), DeviceError> {
        self.host.fill(address, spec, tensor, seed)
    }

    fn set_bytes(&self, address: usize, bytes: usize, value: u8) -> Result<(), DeviceError> {
        self.host.set_bytes(address, bytes, value)
    }

    fn first_bytes_not(
        &self,
        ranges: &[Buffer],
        value: u8,
    ) -> Result<Vec<Option<usize>>, DeviceError> {
        self.host.first_bytes_not(ranges, value)
    }

    fn read(&self, address: usize, out: &mut [u8]) -> Result<(), DeviceError> {
        self.host.read(address, out)
    }

    fn write(&self, address: usize, from: &[u8]) -> Result<(), DeviceError> {
        self.host.write(address, from)
    }

    fn copy(&self, to: usize, from: usize, bytes: usize) -> Result<(), DeviceError> {
        self.host.copy(to, from, bytes)
    }

    fn checksums(&self, ranges: &[Buffer]) -> Result<Vec<u64>, DeviceError> {
        self.host.checksums(ranges)
    }

    fn compare(
        &self,
        actual: usize,
        reference: usize,
        dtype: DType,
        tiles: Tiles,
        limit: Tolerance,
    ) -> Result<Vec<Comparison>, DeviceError> {
        self.host.compare(actual, reference, dtype, tiles, limit)
    }

    /// Whoever asks is about to enqueue: the work comes under the next schedule.
    fn stream(&self) -> Stream {
        if self.only.get().is_none() {
            self.schedule();
        }
        self.executions.set(self.executions.get() + 1);
        self.host.stream()
    }

    /// Work is done when it was enqueued.
    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn sample(&self, _mode: SampleMode, _enqueue: &mut Enqueue) -> Result<Sample, SampleError> {
        no_clock()
    }

    fn capture(&self, _enqueue: &mut Enqueue) -> Result<Box<dyn Graph>, SampleError> {
        no_clock()
    }

    fn writes_out_of_order(
        &self,
        watched: &[Buffer],
        value: u8,
        length: Duration,
        enqueue: &mut Enqueue,
    ) -> Result<bool, SampleError> {
        self.host
            .writes_out_of_order(watched, value, length, enqueue)
    }

    fn start_trace(&self) -> Result<(), SampleError> {
        no_clock()
    }

    fn stop_trace(&self) -> Result<Vec<Trace>, SampleError> {
        no_clock()
    }

    fn trace_obstacle(&self) -> Option<String> {
        Some(DeviceError::NoClock.to_string())
    }

    fn profile(
        &self,
        _label: &str,
        _cache: Cache,
        _enqueue: &mut Enqueue,
    ) -> Result<(), SampleError> {
        no_clock()
    }

    fn state(&self) -> DeviceState {
        DeviceState::default()
    }

    fn ways(&self) -> usize {
        SCHEDULES.len()
    }

    fn execute_in(&self, way: usize) {
        self.keep_to(Some(SCHEDULES[way % SCHEDULES.len()]));
    }

    /// The schedules are all that a contender has passed before it is counted.
    fn take_counters(&self) -> Option<Facts> {
        let kernels: Vec<_> = runtime::take_reports()
            .into_iter()
            .map(|(kernel, report)| json!({"kernel": kernel, "counters": report.counters}))
            .collect();
        let schedules = SCHEDULES.map(|schedule| format!("{schedule:?}"));
        Some(Facts::from([
            ("kernels".to_owned(), kernels.into()),
            ("schedules".to_owned(), schedules[..].into()),
        ]))
    }

    fn timer_overhead_us(&self) -> Result<f64, DeviceError> {
        Ok(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_kernels_there_is_no_device() {
        assert!(matches!(PtxDevice::open(), Err(DeviceError::NotEmulated)));
        let none = PtxDevice::open_for("none");
        assert!(matches!(none, Err(DeviceError::NotEmulated)));
        for (arch, capability) in [
            ("compute_100a", (10, 0)),
            ("compute_90a+compute_100a", (9, 0)),
        ] {
            let built = PtxDevice::open_for(arch).unwrap();
            assert_eq!(built.info().compute_capability, Some(capability));
        }
    }
}
