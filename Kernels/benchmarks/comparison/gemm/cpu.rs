//! CPU contenders: our threaded product, and matrixmultiply's.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Stream,
    Support,
};
use gemm_cpu::{multiply, multiply_library, Scales, Sizes};
use half::{bf16, f16};
use numeric::DType;
use workloads::{GemmProblem, SCALE_BLOCK};

type Multiply = fn(Sizes, &[f32], &[f32], &mut [f32]);

struct CpuGemm {
    identity: Identity,
    multiply: Multiply,
}

pub fn contenders() -> Vec<Box<dyn Contender<GemmProblem>>> {
    let contender = |name: &str, kind, version: &str, multiply| -> Box<dyn Contender<_>> {
        let identity = Identity {
            name: name.to_owned(),
            kind,
            version: version.to_owned(),
            artifact_sha256: None,
            libraries: Vec::new(),
            timed_region: "widening both operands to f32, one product a group, rounding".to_owned(),
        };
        Box::new(CpuGemm { identity, multiply })
    };
    vec![
        contender("ours", Kind::Own, "in tree", multiply as Multiply),
        contender(
            "matrixmultiply",
            Kind::Baseline,
            "0.3",
            multiply_library as Multiply,
        ),
    ]
}

impl Contender<GemmProblem> for CpuGemm {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, _problem: &GemmProblem, device: &DeviceInfo) -> Support {
        match device.kind {
            DeviceKind::Cpu => Support::Yes,
            DeviceKind::Cuda => Support::No("runs on the CPU only".to_owned()),
        }
    }

    fn bind(
        &self,
        problem: &GemmProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let shape = problem.shape;
        let most_rows = problem.layout.tokens.iter().max().copied().unwrap_or(0);
        Ok(Box::new(BoundGemm {
            problem: problem.clone(),
            buffers: buffers.to_vec(),
            multiply: self.multiply,
            a: vec![0.0; most_rows * shape.k],
            b: vec![0.0; shape.n * shape.k],
            out: vec![0.0; most_rows * shape.n],
        }))
    }
}

struct BoundGemm {
    problem: GemmProblem,
    buffers: Vec<Buffer>,
    multiply: Multiply,
    /// Operands and result of one group in f32.
    a: Vec<f32>,
    b: Vec<f32>,
    out: Vec<f32>,
}

impl Bound for BoundGemm {
    fn enqueue(&mut self, _stream: Stream) -> Result<(), ContenderError> {
        let (n, k) = (self.problem.shape.n, self.problem.shape.k);
        let layout = self.problem.layout.clone();
        for (group, rows) in layout.used_ranges() {
            let m = rows.len();
            self.widen_a(group, rows.start, m);
            self.widen_b(group);
            let sizes = Sizes { m, n, k };
            (self.multiply)(sizes, &self.a[..m * k], &self.b, &mut self.out[..m * n]);
            self.narrow_out(rows.start, m);
        }
        Ok(())
    }
}

/// A tensor's memory as values of a type.
fn read<T>(buffer: &Buffer) -> &'static [T] {
    // SAFETY: the harness keeps the buffer alive and unaliased while the call that it made runs,
    // aligned to 256 bytes; no slice outlives that call; any bits are a value of the types used.
    unsafe { std::slice::from_raw_parts(buffer.address as *const T, buffer.bytes / size_of::<T>()) }
}

fn write<T>(buffer: &Buffer) -> &'static mut [T] {
    // SAFETY: as in `read`; only the result is written, and it is named once per call.
    unsafe {
        std::slice::from_raw_parts_mut(buffer.address as *mut T, buffer.bytes / size_of::<T>())
    }
}

impl BoundGemm {
    fn widen_a(&mut self, group: usize, first_row: usize, rows: usize) {
        let k = self.problem.shape.k;
        let (start, length) = (first_row * k, rows * k);
        let (from, to) = (&self.buffers[GemmProblem::A], &mut self.a[..length]);
        match self.problem.dtype {
            DType::Bf16 => gemm_cpu::widen_bf16(&read::<bf16>(from)[start..][..length], to),
            DType::F16 => gemm_cpu::widen_f16(&read::<f16>(from)[start..][..length], to),
            _ => {
                let scales = Scales {
                    values: &read::<f32>(&self.buffers[GemmProblem::A_SCALES])
                        [self.problem.a_scale_index(0, group, first_row)..],
                    block: SCALE_BLOCK,
                    block_stride: self.problem.a_scale_line(),
                    rows: 1,
                    row_stride: 1,
                };
                gemm_cpu::widen_fp8(&read::<u8>(from)[start..][..length], k, scales, to);
            }
        }
    }

    fn widen_b(&mut self, group: usize) {
        let (n, k) = (self.problem.shape.n, self.problem.shape.k);
        let (start, length) = (group * n * k, n * k);
        let (from, to) = (&self.buffers[GemmProblem::B], &mut self.b[..]);
        match self.problem.dtype {
            DType::Bf16 => gemm_cpu::widen_bf16(&read::<bf16>(from)[start..][..length], to),
            DType::F16 => gemm_cpu::widen_f16(&read::<f16>(from)[start..][..length], to),
            _ => {
                let (deep, wide) = (k / SCALE_BLOCK, n.div_ceil(SCALE_BLOCK));
                let scales = Scales {
                    values: &read::<f32>(&self.buffers[GemmProblem::B_SCALES])
                        [group * wide * deep..],
                    block: SCALE_BLOCK,
                    block_stride: 1,
                    rows: SCALE_BLOCK,
                    row_stride: deep,
                };
                gemm_cpu::widen_fp8(&read::<u8>(from)[start..][..length], k, scales, to);
            }
        }
    }

    fn narrow_out(&self, first_row: usize, rows: usize) {
        let n = self.problem.shape.n;
        let (start, length) = (first_row * n, rows * n);
        let (from, to) = (&self.out[..length], &self.buffers[GemmProblem::OUT]);
        match self.problem.dtype {
            DType::F16 => gemm_cpu::narrow_f16(from, &mut write::<f16>(to)[start..][..length]),
            _ => gemm_cpu::narrow_bf16(from, &mut write::<bf16>(to)[start..][..length]),
        }
    }
}
