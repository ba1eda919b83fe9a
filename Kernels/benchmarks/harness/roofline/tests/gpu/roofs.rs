//! The roofs of a real GPU: the arithmetic is really done, and the numbers are plausible.

#[cfg(not(feature = "cuda"))]
#[test]
fn skipped_without_cuda() {
    workspace::say!("SKIPPED: built without CUDA (arch none)");
}

#[cfg(feature = "cuda")]
mod gpu {
    use device::{CudaDevice, Device, DeviceError};
    use numeric::DType;

    fn with_gpu(test: impl FnOnce(&CudaDevice)) {
        static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match CudaDevice::open() {
            Ok(cuda) => test(&cuda),
            Err(absent @ DeviceError::Unavailable { .. }) => workspace::say!("SKIPPED: {absent}"),
            Err(error) => panic!("{error}"),
        }
    }

    /// With all operands 1, each accumulator is the number of products added to it, whatever the layout
    /// in shared memory: no instruction was skipped.
    #[test]
    fn every_tensor_core_product_is_computed() {
        with_gpu(|cuda| {
            if cuda.info().compute_capability != Some((9, 0)) {
                workspace::say!("SKIPPED: no Hopper GPU");
                return;
            }
            let (bytes, steps, accumulators) = (roofline_cuda::tensor_operand_bytes(), 3, 128);
            let operands = cuda.allocate(bytes).unwrap();
            let out = cuda.allocate(3 * 128 * 4).unwrap();
            for (dtype, code) in [(DType::Bf16, 0), (DType::F16, 1), (DType::F8E4M3, 2)] {
                let ones = dtype.encode(&vec![1.0; bytes / dtype.size_bytes()]);
                cuda.write(operands.address(), &ones).unwrap();
                cuda.set_bytes(out.address(), out.bytes(), 0xFF).unwrap();
                let (source, sink) = (operands.address(), out.address());
                // SAFETY: both allocations outlive the work, which `read` below waits for.
                unsafe {
                    roofline_cuda::tensor_steps(code, 1, 3, steps, source, sink, cuda.stream().0)
                }
                .unwrap();
                let mut sums = vec![0; out.bytes()];
                cuda.read(out.address(), &mut sums).unwrap();
                // A thread's accumulators hold 64 x 256 / 128 of the products of a warpgroup.
                let flops = roofline_cuda::tensor_flops_per_step(code) * u64::from(steps);
                let expected = flops as f64 / 2.0 / 128.0;
                assert!(
                    DType::F32.decode(&sums).iter().all(|sum| *sum == expected),
                    "{dtype}: {} of {accumulators} accumulators, {expected} expected",
                    DType::F32.decode(&sums)[0]
                );
            }
        });
    }

    #[test]
    fn the_roofs_are_possible() {
        with_gpu(|cuda| {
            let measured = roofline::measure(cuda).unwrap();
            for peak in &measured.peaks {
                println!("{peak:?}");
                assert!(peak.value > 0.1 && peak.value < 20_000.0, "{peak:?}");
            }
            println!("{:?}", measured.notes);
            let of = |name: &str| {
                measured
                    .peaks
                    .iter()
                    .find(|peak| peak.name == name)
                    .unwrap()
            };
            let (ours, driver) = (of("hbm_copy").value, of("hbm_memcpy").value);
            assert!(
                ours > 0.98 * driver,
                "copy {ours} TB/s, cudaMemcpy {driver} TB/s"
            );
        });
    }
}
