//! Roofs of a GPU: HBM streams, fp32 and tensor-core peaks.

use std::fmt;

use device::{ContenderError, Device, Memory, Stream};
use numeric::DType;
use tensor::{Fill, TensorSpec};

use crate::peak::{best_of, Amount, Peak};
use crate::{Measured, RooflineError};

/// Size of each of the three arrays, and their maximum share of the card's memory.
const ARRAY_BYTES: u64 = 1 << 30;
const MEMORY_SHARE: u64 = 8;

/// Steps of the arithmetic kernels: about a millisecond, long enough for the timer, too short to heat up.
const FP32_STEPS: u32 = 4000;
const TENSOR_STEPS: u32 = 500;

const THREADS: [u32; 3] = [256, 512, 1024];
const UNROLLS: [u32; 4] = [1, 2, 4, 8];
/// Blocks per multiprocessor; 0 is one tile per block.
const WAVES: [u32; 5] = [0, 1, 2, 4, 8];

/// How a pass over memory is launched.
#[derive(Clone, Copy)]
struct MemoryShape {
    threads: u32,
    unroll: u32,
    waves: u32,
    /// Whether accesses carry the streaming hint.
    hinted: bool,
}

impl fmt::Display for MemoryShape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} threads x {} vectors, ",
            self.threads, self.unroll
        )?;
        match self.waves {
            0 => write!(formatter, "one tile per block")?,
            waves => write!(formatter, "{waves} blocks per SM")?,
        }
        write!(
            formatter,
            "{}",
            if self.hinted { ", streaming hint" } else { "" }
        )
    }
}

#[derive(Clone, Copy)]
struct Driver;

impl fmt::Display for Driver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cudaMemcpyAsync")
    }
}

/// Blocks per multiprocessor and threads of the fp32 kernel.
#[derive(Clone, Copy)]
struct Fp32Shape {
    blocks: u32,
    threads: u32,
}

impl fmt::Display for Fp32Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} threads, {} blocks per SM",
            self.threads, self.blocks
        )
    }
}

/// How tensor cores are kept busy.
#[derive(Clone, Copy, PartialEq)]
enum TensorShape {
    Warpgroups(u32),
    TensorMemory,
}

impl fmt::Display for TensorShape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorShape::Warpgroups(count) => {
                write!(formatter, "wgmma m64n256, {count} warpgroups per SM")
            }
            TensorShape::TensorMemory => write!(formatter, "tcgen05 m128n256, one thread per SM"),
        }
    }
}

/// The ways of a generation; none if it has no kernel.
fn tensor_shapes(device: &dyn Device) -> Vec<TensorShape> {
    match device.info().compute_capability {
        Some((9, 0)) => [1, 2, 3].map(TensorShape::Warpgroups).to_vec(),
        Some((10, 0)) => vec![TensorShape::TensorMemory],
        _ => Vec::new(),
    }
}

/// Kinds of traffic with their codes and arrays moved.
const TRAFFIC: [(&str, u32, u64); 3] =
    [("hbm_copy", 0, 2), ("hbm_triad", 1, 3), ("hbm_read", 2, 1)];

/// Tensor-core types with their codes; named as in `numeric`.
const TENSOR: [(DType, u32); 3] = [(DType::Bf16, 0), (DType::F16, 1), (DType::F8E4M3, 2)];
/// Those whose scales tensor cores apply, which tcgen05 alone does.
const SCALED: [(DType, u32); 1] = [(DType::Nvfp4, 3)];

pub(crate) fn measure(device: &dyn Device) -> Result<Measured, RooflineError> {
    let mut measured = Measured {
        peaks: memory(device)?,
        notes: Vec::new(),
    };
    measured.peaks.push(fp32(device)?);
    let shapes = tensor_shapes(device);
    if shapes.is_empty() {
        measured.notes.push(format!(
            "tensor-core peaks are measured with wgmma on sm_90a and tcgen05 on sm_100a, not on {}",
            device.info().arch
        ));
    } else {
        let scaled = match shapes.contains(&TensorShape::TensorMemory) {
            true => &SCALED[..],
            false => &[],
        };
        for &(dtype, code) in TENSOR.iter().chain(scaled) {
            measured.peaks.push(tensor(device, &shapes, dtype, code)?);
        }
    }
    Ok(measured)
}

/// Memory filled with seeded values, which do not compress.
fn noise(
    device: &dyn Device,
    bytes: usize,
    dtype: DType,
    seed: u64,
) -> Result<Memory, RooflineError> {
    let memory = device.allocate(bytes)?;
    let spec = TensorSpec::input("noise", dtype, &[bytes / dtype.size_bytes()]);
    device.fill(memory.address(), &spec, 0, seed)?;
    Ok(memory)
}

fn memory(device: &dyn Device) -> Result<Vec<Peak>, RooflineError> {
    let info = device.info();
    let most = (info.memory_bytes / MEMORY_SHARE).next_power_of_two() / 2;
    let bytes = ARRAY_BYTES.min(most);
    let arrays: Vec<Memory> = (0..3)
        .map(|seed| noise(device, bytes as usize, DType::F32, seed))
        .collect::<Result<_, _>>()?;
    let [out, a, b] = [0, 1, 2].map(|index| arrays[index].address());
    let shapes: Vec<MemoryShape> = THREADS
        .into_iter()
        .flat_map(|threads| UNROLLS.map(|unroll| (threads, unroll)))
        .flat_map(|(threads, unroll)| WAVES.map(|waves| (threads, unroll, waves)))
        .flat_map(|(threads, unroll, waves)| {
            [false, true].map(|hinted| MemoryShape {
                threads,
                unroll,
                waves,
                hinted,
            })
        })
        .collect();
    let mut peaks = Vec::new();
    for (name, code, moved) in TRAFFIC {
        let amount = |_| Amount::Bytes((moved * bytes) as f64);
        let run = |shape: MemoryShape, stream: Stream| {
            let blocks = shape.waves * info.multiprocessors;
            // SAFETY: the arrays outlive the samples, each of which waits for the stream.
            unsafe {
                roofline_cuda::memory_pass(
                    code,
                    shape.hinted,
                    shape.threads,
                    shape.unroll,
                    blocks,
                    out,
                    a,
                    b,
                    bytes,
                    stream.0,
                )
            }
            .map_err(ContenderError::new)
        };
        peaks.push(best_of(device, name, &shapes, amount, run)?);
    }
    let amount = |_| Amount::Bytes((2 * bytes) as f64);
    let run = |_: Driver, stream: Stream| {
        // SAFETY: as above.
        unsafe { roofline_cuda::memcpy_pass(out, a, bytes, stream.0) }.map_err(ContenderError::new)
    };
    peaks.push(best_of(device, "hbm_memcpy", &[Driver], amount, run)?);
    Ok(peaks)
}

fn fp32(device: &dyn Device) -> Result<Peak, RooflineError> {
    let sms = device.info().multiprocessors;
    let shapes = [(2, 512), (4, 512), (2, 1024), (8, 256)]
        .map(|(blocks, threads)| Fp32Shape { blocks, threads });
    let threads = |shape: Fp32Shape| u64::from(sms * shape.blocks * shape.threads);
    let most = shapes.map(threads).into_iter().max().unwrap_or(0);
    let out = device.allocate(most as usize * size_of::<f32>())?;
    let operands = device.allocate(2 * size_of::<f32>())?;
    // A map with a fixed point inside the range: values stay finite and keep changing.
    let values = [0.999_f32.to_le_bytes(), 0.001_7_f32.to_le_bytes()].concat();
    device.write(operands.address(), &values)?;
    let per_thread = roofline_cuda::fp32_flops_per_step() * u64::from(FP32_STEPS);
    best_of(
        device,
        "fp32",
        &shapes,
        |shape| Amount::Flops((per_thread * threads(shape)) as f64),
        |shape, stream| {
            let blocks = sms * shape.blocks;
            let (operands, out) = (operands.address(), out.address());
            // SAFETY: both allocations outlive the samples.
            unsafe {
                roofline_cuda::fp32_steps(
                    blocks,
                    shape.threads,
                    FP32_STEPS,
                    operands,
                    out,
                    stream.0,
                )
            }
            .map_err(ContenderError::new)
        },
    )
}

fn tensor(
    device: &dyn Device,
    shapes: &[TensorShape],
    dtype: DType,
    code: u32,
) -> Result<Peak, RooflineError> {
    let sms = device.info().multiprocessors;
    let bytes = roofline_cuda::tensor_operand_bytes();
    let bytes = bytes.max(roofline_cuda::tensor_memory_operand_bytes());
    let operands = device.allocate(bytes)?;
    let fill = match dtype.is_pair() {
        true => Fill::Index { below: 1 << 8 },
        false => Fill::Uniform {
            low: -1.0,
            high: 1.0,
        },
    };
    let spec = TensorSpec::input("operands", dtype, &[bytes / dtype.size_bytes()]).filled(fill);
    device.fill(operands.address(), &spec, 0, 1)?;
    let out = device.allocate(sms as usize * 3 * 128 * size_of::<f32>())?;
    let per_step = |shape| match shape {
        TensorShape::Warpgroups(count) => {
            u64::from(count) * roofline_cuda::tensor_flops_per_step(code)
        }
        TensorShape::TensorMemory => roofline_cuda::tensor_memory_flops_per_step(code),
    };
    best_of(
        device,
        &format!("tensor_{dtype}"),
        shapes,
        |shape| Amount::Flops((per_step(shape) * u64::from(sms * TENSOR_STEPS)) as f64),
        |shape, stream| {
            let (operands, out) = (operands.address(), out.address());
            let (steps, stream) = (TENSOR_STEPS, stream.0);
            // SAFETY: both allocations outlive the samples.
            unsafe {
                match shape {
                    TensorShape::Warpgroups(count) => {
                        roofline_cuda::tensor_steps(code, sms, count, steps, operands, out, stream)
                    }
                    TensorShape::TensorMemory => {
                        roofline_cuda::tensor_memory_steps(code, sms, steps, operands, out, stream)
                    }
                }
            }
            .map_err(ContenderError::new)
        },
    )
}
