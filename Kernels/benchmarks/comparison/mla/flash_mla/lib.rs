//! FlashMLA's dense decoding on sm_90a; see Kernels/baselines/flash_mla/README.md for how.

use contender::{
    bound, contender, Binding, ContenderError, Contenders, DeviceInfo, DeviceKind, Facts, Identity,
    Problem, Tensors, PLAN_US,
};
use flash_mla::{PageTable, Step, PAGE_SIZE};
use numeric::DType;
use workloads::{KvType, MlaDecodeProblem};

pub fn contenders() -> Contenders<MlaDecodeProblem> {
    let identity = Identity::baseline(
        "flash_mla",
        flash_mla::VERSION,
        Some(flash_mla::WHEEL_SHA256.to_owned()),
        "the attention kernel, which also writes the log-sum-exp of each row, and the one that combines partial \
         results; scheduled in bind",
    );
    vec![contender(identity, DeviceKind::Cuda, unsupported, bind)]
}

/// Validation ensures that sizes fit in 31 bits.
fn step(problem: &MlaDecodeProblem) -> Step {
    let shape = &problem.shape;
    Step {
        batch: shape.batch() as i32,
        q_len: shape.q_len as i32,
        heads: shape.heads as i32,
        pool_pages: problem.table.pool_pages as i32,
        scale: problem.scale,
    }
}

fn unsupported(problem: &MlaDecodeProblem, device: &DeviceInfo) -> Option<String> {
    let shape = &problem.shape;
    if let Some(obstacle) = device.obstacle_to_machine_code() {
        Some(obstacle)
    } else if device.arch != "sm_90a" {
        Some(format!("only for sm_90a; this is {}", device.arch))
    } else if !flash_mla::is_built() {
        Some("not in this build; build with --config=sm90a".to_owned())
    } else if problem.dtype() != DType::Bf16 {
        let dtype = problem.dtype();
        Some(format!("its {dtype} kernel is not wired up; use bf16"))
    } else if shape.kv_type == KvType::Fp8 {
        Some("its bf16 kernel does not read FP8 caches".to_owned())
    } else if shape.page_size != PAGE_SIZE {
        let page_size = shape.page_size;
        Some(format!(
            "pages of {page_size} tokens; its kernel takes {PAGE_SIZE}"
        ))
    } else if !flash_mla::fits(&step(problem), device.multiprocessors as i32) {
        Some("2^31 elements of partial results or more".to_owned())
    } else if shape.q_len > 1 {
        problem.table.shorter_than(shape.q_len)
    } else {
        None
    }
}

fn bind(problem: &MlaDecodeProblem, tensors: &Tensors, _device: &DeviceInfo) -> Binding {
    let table = &problem.table;
    table.validate().map_err(ContenderError::new)?;
    let addresses = flash_mla::Tensors {
        q: tensors.address("q")?,
        cache: tensors.address("cache")?,
        out: tensors.address("out")?,
    };
    let pages = PageTable {
        lengths: &table.lengths,
        indptr: &table.indptr,
        indices: &table.indices,
    };
    // SAFETY: the problem describes its tensors, and the harness keeps them while a contender is bound.
    let planned = unsafe { flash_mla::plan(&step(problem), &addresses, &pages) };
    let planned = planned.map_err(ContenderError::new)?;
    let plan_us = (flash_mla::plan_microseconds(&planned) * 10.0).round() / 10.0;
    let facts = Facts::from([
        ("kernel".to_owned(), flash_mla::kernel_name(&planned).into()),
        (PLAN_US.to_owned(), plan_us.into()),
    ]);
    Ok(bound(facts, move |stream| {
        flash_mla::enqueue(&planned, stream)
    }))
}

#[cfg(test)]
mod tests {
    use contender::Support;
    use workloads::{MlaShape, MlaSuite};

    use super::*;

    fn h200() -> DeviceInfo {
        DeviceInfo {
            kind: DeviceKind::Cuda,
            name: "NVIDIA H200".to_owned(),
            uuid: None,
            arch: "sm_90a".to_owned(),
            compute_capability: Some((9, 0)),
            multiprocessors: 132,
            l2_bytes: 50 << 20,
            memory_bytes: 141 << 30,
            shared_bytes_per_block: 227 << 10,
            emulated: false,
        }
    }

    fn shape() -> MlaShape {
        MlaShape {
            lengths: vec![65, 1, 200],
            q_len: 1,
            heads: 128,
            page_size: PAGE_SIZE,
            kv_type: KvType::Same,
        }
    }

    /// Why the contender does not take the shape; empty if it does.
    fn reason(shape: MlaShape, device: &DeviceInfo) -> String {
        let workload = MlaSuite::custom(&shape);
        let problem = MlaDecodeProblem::new(shape, DType::Bf16, workload);
        match contenders()[0].supports(&problem, device) {
            Support::Yes => String::new(),
            Support::No(reason) => reason,
        }
    }

    #[track_caller]
    fn assert_refused(shape: MlaShape, device: &DeviceInfo, words: &str) {
        let reason = reason(shape, device);
        assert!(reason.contains(words), "{words:?} in {reason:?}");
    }

    #[test]
    fn other_devices_are_refused() {
        let arch = "sm_100a".to_owned();
        let b200 = DeviceInfo { arch, ..h200() };
        assert_refused(shape(), &b200, "only for sm_90a; this is sm_100a");
        let emulated = true;
        let interpreter = DeviceInfo { emulated, ..h200() };
        assert_refused(shape(), &interpreter, "machine code");
    }

    #[test]
    fn its_build_takes_any_heads_lengths_and_new_tokens() {
        if !flash_mla::is_built() {
            assert_refused(shape(), &h200(), "--config=sm90a");
            return;
        }
        for heads in [1, 5, 16, 128] {
            let shape = MlaShape { heads, ..shape() };
            assert_eq!(reason(shape, &h200()), "");
        }
        let lengths = vec![0, 300];
        assert_eq!(reason(MlaShape { lengths, ..shape() }, &h200()), "");
        let (lengths, q_len) = (vec![64, 2], 2);
        let two = MlaShape {
            lengths,
            q_len,
            ..shape()
        };
        assert_eq!(reason(two, &h200()), "");
    }

    #[test]
    fn what_the_kernel_does_not_take_is_refused() {
        if !flash_mla::is_built() {
            return;
        }
        for page_size in [32, 128] {
            let shape = MlaShape {
                page_size,
                ..shape()
            };
            let words = format!("pages of {page_size} tokens; its kernel takes 64");
            assert_refused(shape, &h200(), &words);
        }
        let kv_type = KvType::Fp8;
        assert_refused(MlaShape { kv_type, ..shape() }, &h200(), "FP8");
        let short = MlaShape {
            q_len: 3,
            ..shape()
        };
        assert_refused(short, &h200(), "sequence 1 has 1 tokens");
        let many = MlaShape {
            lengths: vec![16; 2100],
            q_len: 16,
            ..shape()
        };
        assert_refused(many, &h200(), "2^31 elements");
    }
}
