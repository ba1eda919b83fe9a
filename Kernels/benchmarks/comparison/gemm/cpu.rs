//! CPU contenders: our threaded product, and the sgemm of OpenBLAS and of the crate `gemm`.

use std::ops::Range;

use contender::{contender, ContenderError, Contenders, DeviceKind, Identity, Kind, Problem};
use gemm_cpu::{multiply, multiply_bf16, multiply_library, narrow, BlockFormat, Scales, Sizes};
use host::Plain;
use numeric::DType;
use openblas::Library;
use shared::cpu::{bf16, bind_work, Work};
use shared::memory::{In, Memory};
use workloads::{GemmProblem, ScaleTiles, SCALE_BLOCK};

type Multiply = fn(Sizes, &[f32], &[f32], &mut [f32]);

pub fn contenders() -> Contenders<GemmProblem> {
    let region = "widening both operands to f32, one product per group, rounding";
    let ours = Identity::in_tree(
        "ours",
        Kind::Own,
        "one product per group: of bf16 as it is where the CPU has AMX or AVX-512 BF16, else of \
         operands widened to f32, rounded",
    );
    let contender = |identity, multiply: Multiply, absent: fn() -> Option<String>| {
        contender(
            identity,
            DeviceKind::Cpu,
            move |_problem, _device| absent(),
            move |problem, tensors, _device| {
                bind_work(tensors, |memory| bind(problem, memory, multiply))
            },
        )
    };
    let records = Library::get().map_or(Vec::new(), |library| library.records().to_vec());
    let openblas = Identity::loaded("openblas", records, region);
    let gemm_crate = Identity::baseline("gemm_crate", "0.19", None, region);
    vec![
        contender::contender(
            ours,
            DeviceKind::Cpu,
            |_problem, _device| None,
            |problem: &GemmProblem, tensors, _device| {
                bind_work(tensors, |memory| {
                    match problem.dtype() == DType::Bf16 && narrow::is_available() {
                        true => bind_narrow(problem, memory),
                        false => bind(problem, memory, multiply),
                    }
                })
            },
        ),
        contender(openblas, multiply_openblas, || {
            Library::get().err().map(|error| error.to_string())
        }),
        contender(gemm_crate, multiply_library, || None),
    ]
}

fn multiply_openblas(Sizes { m, n, k }: Sizes, a: &[f32], b: &[f32], out: &mut [f32]) {
    let library = Library::get().expect("the contender is unsupported without it");
    library.use_threads(host::threads());
    library.multiply([m, n, k], a, b, out);
}

/// The products of bf16 without widening.
fn bind_narrow(problem: &GemmProblem, memory: &Memory) -> Work {
    let (layout, n, k) = (problem.layout.clone(), problem.shape.n, problem.shape.k);
    let (a, b) = (memory.read::<bf16>("a")?, memory.read::<bf16>("b")?);
    let mut out = memory.write::<bf16>("out")?;
    Ok(Box::new(move || {
        for (group, rows) in layout.used_ranges() {
            let m = rows.len();
            let (a, b) = (&a[rows.start * k..][..m * k], &b[group * n * k..][..n * k]);
            let out = &mut out[rows.start * n..][..m * n];
            multiply_bf16(Sizes { m, n, k }, a, b, out);
        }
    }))
}

fn bind(problem: &GemmProblem, memory: &Memory, multiply: Multiply) -> Work {
    let (shape, layout) = (problem.shape, problem.layout.clone());
    let (n, k) = (shape.n, shape.k);
    let (widen_a, widen_b) = operands(problem, memory)?;
    let mut narrow = result(problem, memory)?;
    // Operands and result of one group in f32.
    let most_rows = layout.tokens.iter().max().copied().unwrap_or(0);
    let (mut a, mut b) = (vec![0.0; most_rows * k], vec![0.0; n * k]);
    let mut out = vec![0.0; most_rows * n];
    Ok(Box::new(move || {
        for (group, rows) in layout.used_ranges() {
            let m = rows.len();
            let (a, out) = (&mut a[..m * k], &mut out[..m * n]);
            widen_a(group, rows.start, a);
            widen_b(group, group * n, &mut b);
            multiply(Sizes { m, n, k }, a, &b, out);
            narrow(rows.start * n..rows.end * n, out);
        }
    }))
}

/// Widens rows of an operand: a group's rows from the first on, as many as fit.
type Widen = Box<dyn Fn(usize, usize, &mut [f32])>;

fn operands(problem: &GemmProblem, memory: &Memory) -> Result<(Widen, Widen), ContenderError> {
    fn of<T: Plain>(operand: In<T>, k: usize, widen: fn(&[T], &mut [f32])) -> Widen {
        Box::new(move |_group, row, out| widen(&operand[row * k..][..out.len()], out))
    }
    let (n, k, layout) = (problem.shape.n, problem.shape.k, problem.layout.clone());
    Ok(match problem.dtype() {
        DType::Bf16 => (
            of(memory.read("a")?, k, gemm_cpu::widen_bf16),
            of(memory.read("b")?, k, gemm_cpu::widen_bf16),
        ),
        DType::F16 => (
            of(memory.read("a")?, k, gemm_cpu::widen_f16),
            of(memory.read("b")?, k, gemm_cpu::widen_f16),
        ),
        DType::Fp8Ue8m0 | DType::Mxfp8 | DType::Nvfp4 | DType::Mxfp4 => (
            block_scaled(problem, memory, ("a", "a_scales"), layout.tiles_of_a())?,
            block_scaled(problem, memory, ("b", "b_scales"), layout.tiles_of_b(n))?,
        ),
        _ => {
            let (deep, wide) = (k / SCALE_BLOCK, n.div_ceil(SCALE_BLOCK));
            let (a, b) = (memory.read::<u8>("a")?, memory.read::<u8>("b")?);
            let (a_scales, b_scales) = (memory.read("a_scales")?, memory.read("b_scales")?);
            let widen_a = move |group, row, out: &mut [f32]| {
                let scales = Scales {
                    values: &a_scales[layout.a_scale_index(deep, 0, group, row)..],
                    block: SCALE_BLOCK,
                    block_stride: layout.scale_lines().1,
                    rows: 1,
                    row_stride: 1,
                };
                gemm_cpu::widen_fp8(&a[row * k..][..out.len()], k, scales, out);
            };
            let widen_b = move |group, row, out: &mut [f32]| {
                let scales = Scales {
                    values: &b_scales[group * wide * deep..],
                    block: SCALE_BLOCK,
                    block_stride: 1,
                    rows: SCALE_BLOCK,
                    row_stride: deep,
                };
                gemm_cpu::widen_fp8(&b[row * k..][..out.len()], k, scales, out);
            };
            (Box::new(widen_a), Box::new(widen_b))
        }
    })
}

/// An operand of FP8 with UE8M0 scales, MXFP8, NVFP4 or MXFP4; that of NVFP4's `a` has the tensors' scale too.
fn block_scaled(
    problem: &GemmProblem,
    memory: &Memory,
    (name, scales): (&str, &str),
    tiles: ScaleTiles,
) -> Result<Widen, ContenderError> {
    let k = problem.shape.k;
    let codes = memory.read::<u8>(name)?;
    let scales = memory.read::<u8>(scales)?;
    let of_powers = match problem.dtype() {
        DType::Fp8Ue8m0 => Some((BlockFormat::Fp8Ue8m0, 1, 128)),
        DType::Mxfp8 => Some((BlockFormat::Mxfp8, 1, 32)),
        DType::Mxfp4 => Some((BlockFormat::Mxfp4, 2, 32)),
        _ => None,
    };
    if let Some((format, packing, shared)) = of_powers {
        return Ok(Box::new(move |_group, row, out| {
            let scale = |line, block| {
                let code = scales[tiles.place(row + line, block, k / shared)];
                DType::F8E8M0.decode_one(&[code]) as f32
            };
            let from = &codes[row * k / packing..][..out.len() / packing];
            gemm_cpu::widen_blocks(from, k, format, scale, out);
        }));
    }
    let of_tensor = match name {
        "a" => Some(memory.read::<f32>("tensor_scale")?),
        _ => None,
    };
    Ok(Box::new(move |_group, row, out| {
        let of_tensor = of_tensor.as_ref().map_or(1.0, |scale| scale[0]);
        let scale = |line, block| {
            let code = scales[tiles.place(row + line, block, k / 16)];
            host::e4m3::decode(code) * of_tensor
        };
        let from = &codes[row * k / 2..][..out.len() / 2];
        gemm_cpu::widen_blocks(from, k, BlockFormat::Nvfp4, scale, out);
    }))
}

/// Rounds elements of the result.
type Narrow = Box<dyn FnMut(Range<usize>, &[f32])>;

fn result(problem: &GemmProblem, memory: &Memory) -> Result<Narrow, ContenderError> {
    Ok(match problem.dtype() {
        DType::F16 => {
            let mut out = memory.write("out")?;
            Box::new(move |range, from| gemm_cpu::narrow_f16(from, &mut out[range]))
        }
        _ => {
            let mut out = memory.write("out")?;
            Box::new(move |range, from| gemm_cpu::narrow_bf16(from, &mut out[range]))
        }
    })
}
