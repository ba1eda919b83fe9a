//! FlashAttention-4 and FlashAttention-2: Kernels/baselines/flash_attention/README.md says from what.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Stream, Support,
};
use flash_attention::{Attention, Kernel, UniquePtr, Workspace};
use numeric::DType;
use workloads::{PrefillProblem, PrefillShape};

use super::Contenders;

const TIMED_REGION: &str = "one kernel, which also writes the log-sum-exp of each row";

pub fn contenders() -> Contenders {
    let mut contenders: Contenders = Vec::new();
    let artifacts = flash_attention::artifacts();
    if let Some(first) = artifacts.first() {
        // A build for both architectures has an archive for each; the arch of the row says which.
        let digest = Some(first.sha256.clone()).filter(|_| artifacts.len() == 1);
        let identity = identity("flash_attention_4", &first.version, digest);
        contenders.push(Box::new(FlashAttention4 { identity }));
    }
    let sdist = flash_attention::FLASH_ATTENTION_2_SHA256.to_owned();
    let version = flash_attention::FLASH_ATTENTION_2_VERSION;
    let identity = identity("flash_attention_2", version, Some(sdist));
    contenders.push(Box::new(FlashAttention2 { identity }));
    contenders
}

fn identity(name: &str, version: &str, artifact_sha256: Option<String>) -> Identity {
    Identity {
        name: name.to_owned(),
        kind: Kind::Baseline,
        version: version.to_owned(),
        artifact_sha256,
        libraries: Vec::new(),
        timed_region: TIMED_REGION.to_owned(),
    }
}

/// What neither of the two does.
fn unsupported(problem: &PrefillProblem, device: &DeviceInfo) -> Option<String> {
    if device.kind != DeviceKind::Cuda {
        Some("runs on CUDA only".to_owned())
    } else if problem.dtype != DType::Bf16 {
        Some(format!("{} is not built in; bf16 is", problem.dtype))
    } else if problem.op.has_lse() {
        Some("writes the log-sum-exp as [heads, total_q], the op wants [total_q, heads]".to_owned())
    } else {
        None
    }
}

/// Whether every sequence has the same lengths: then the library's dense entry is the one to call.
fn is_dense(shape: &PrefillShape) -> bool {
    let same = |lengths: &[usize]| lengths.iter().all(|&length| length == lengths[0]);
    same(&shape.q_lens) && same(&shape.kv_lens)
}

fn longest(lengths: &[usize]) -> usize {
    lengths.iter().copied().max().unwrap_or(0)
}

fn major(device: &DeviceInfo) -> i32 {
    device
        .compute_capability
        .map_or(0, |(major, _)| major as i32)
}

/// Numbers are places in the problem's list of tensors; lengths fit in 31 bits by its validation.
fn attention(problem: &PrefillProblem, buffers: &[Buffer], lse: usize) -> Attention {
    let shape = &problem.shape;
    let at = |tensor: usize| buffers[tensor].address;
    Attention {
        q: at(0),
        k: at(1),
        v: at(2),
        starts_q: at(3),
        starts_kv: at(4),
        out: at(5),
        lse,
        batch: shape.batch() as i32,
        total_q: shape.total_q() as i32,
        total_kv: shape.total_kv() as i32,
        longest_q: longest(&shape.q_lens) as i32,
        longest_kv: longest(&shape.kv_lens) as i32,
        heads: shape.heads as i32,
        kv_heads: shape.kv_heads as i32,
        head_dim: shape.head_dim as i32,
        causal: shape.causal,
        scale: problem.scale,
    }
}

fn lse_workspace(problem: &PrefillProblem) -> Result<UniquePtr<Workspace>, ContenderError> {
    let rows = problem.shape.total_q() * problem.shape.heads;
    flash_attention::allocate_workspace(rows * size_of::<f32>()).map_err(ContenderError::new)
}

struct FlashAttention4 {
    identity: Identity,
}

impl FlashAttention4 {
    fn kernel_name(shape: &PrefillShape) -> String {
        let lengths = if is_dense(shape) { "dense" } else { "varlen" };
        let mask = if shape.causal { "causal" } else { "full" };
        let ratio = shape.heads / shape.kv_heads;
        format!("fwd_{lengths}_{mask}_bf16_d{}_g{ratio}", shape.head_dim)
    }

    /// What is exported of that name for the device, or why nothing is.
    fn exported(shape: &PrefillShape, device: &DeviceInfo) -> Result<String, String> {
        let name = Self::kernel_name(shape);
        let is_exported = |name: &str| flash_attention::has_kernel(major(device), name);
        for_multiprocessors(&name, device.multiprocessors, is_exported).ok_or_else(|| {
            format!(
                "{name} is not among the kernels exported for {} with {} multiprocessors",
                device.arch, device.multiprocessors
            )
        })
    }
}

/// A kernel, or its variant with the multiprocessor count compiled in, which is for that count alone.
fn for_multiprocessors(
    name: &str,
    count: u32,
    is_exported: impl Fn(&str) -> bool,
) -> Option<String> {
    let variant = format!("{name}_{count}_multiprocessors");
    [name.to_owned(), variant]
        .into_iter()
        .find(|name| is_exported(name))
}

impl Contender<PrefillProblem> for FlashAttention4 {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &PrefillProblem, device: &DeviceInfo) -> Support {
        /// Below it the library takes another config on sm_100, which is not exported.
        const MINIMUM_PACKED_ROWS: usize = 257;
        let shape = &problem.shape;
        let packed_rows = longest(&shape.q_lens) * (shape.heads / shape.kv_heads);
        if let Some(reason) = unsupported(problem, device) {
            Support::No(reason)
        } else if let Err(reason) = Self::exported(shape, device) {
            Support::No(reason)
        } else if major(device) >= 10 && packed_rows < MINIMUM_PACKED_ROWS {
            Support::No(format!(
                "{packed_rows} query rows with the heads of a group; kernels are exported for \
                 {MINIMUM_PACKED_ROWS} and more"
            ))
        } else {
            Support::Yes
        }
    }

    fn bind(
        &self,
        problem: &PrefillProblem,
        buffers: &[Buffer],
        device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let lse = lse_workspace(problem)?;
        let name = Self::exported(&problem.shape, device).map_err(ContenderError::new)?;
        let kernel = flash_attention::load_kernel(major(device), &name);
        Ok(Box::new(Bound4 {
            kernel: kernel.map_err(ContenderError::new)?,
            attention: attention(problem, buffers, lse.address()),
            dense: is_dense(&problem.shape),
            name,
            _lse: lse,
        }))
    }
}

struct Bound4 {
    kernel: UniquePtr<Kernel>,
    attention: Attention,
    dense: bool,
    name: String,
    _lse: UniquePtr<Workspace>,
}

impl Bound for Bound4 {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        if self.dense {
            self.kernel.launch_dense(&self.attention, stream)
        } else {
            self.kernel.launch_varlen(&self.attention, stream)
        }
        .map_err(ContenderError::new)
    }

    fn facts(&self) -> Facts {
        Facts::from([("kernel".to_owned(), self.name.clone().into())])
    }
}

struct FlashAttention2 {
    identity: Identity,
}

impl FlashAttention2 {
    /// The library's dense entry splits keys where there are too few tiles for the device (its
    /// num_splits_heuristic gives 1 from 80 % of two blocks a multiprocessor on). Kernels for splits are
    /// not built in, nor dense ones for head dim 64 or without a mask, which no suite needs; the
    /// variable-length entry serves those shapes.
    fn is_dense(shape: &PrefillShape, device: &DeviceInfo) -> bool {
        const TILE_ROWS: usize = 64;
        let tiles = longest(&shape.q_lens).div_ceil(TILE_ROWS) * shape.batch() * shape.heads;
        is_dense(shape)
            && shape.causal
            && shape.head_dim == 128
            && 10 * tiles >= 8 * 2 * device.multiprocessors as usize
    }
}

impl Contender<PrefillProblem> for FlashAttention2 {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &PrefillProblem, device: &DeviceInfo) -> Support {
        let shape = &problem.shape;
        if let Some(reason) = unsupported(problem, device) {
            Support::No(reason)
        } else if ![64, 128].contains(&shape.head_dim) {
            Support::No(format!(
                "head dim {} is not built in; 64 and 128 are",
                shape.head_dim
            ))
        } else if longest(&shape.q_lens) == 1 {
            Support::No(
                "one query a sequence: the library would call its decode kernels".to_owned(),
            )
        } else {
            Support::Yes
        }
    }

    fn bind(
        &self,
        problem: &PrefillProblem,
        buffers: &[Buffer],
        device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let lse = lse_workspace(problem)?;
        Ok(Box::new(Bound2 {
            attention: attention(problem, buffers, lse.address()),
            dense: Self::is_dense(&problem.shape, device),
            _lse: lse,
        }))
    }
}

struct Bound2 {
    attention: Attention,
    dense: bool,
    _lse: UniquePtr<Workspace>,
}

impl Bound for Bound2 {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        flash_attention::launch_flash_attention_2(&self.attention, self.dense, stream)
            .map_err(ContenderError::new)
    }

    fn facts(&self) -> Facts {
        let entry = if self.dense {
            "mha_fwd"
        } else {
            "mha_varlen_fwd"
        };
        Facts::from([("entry".to_owned(), entry.into())])
    }
}

#[cfg(test)]
mod tests {
    use super::for_multiprocessors;

    #[test]
    fn a_kernel_with_a_count_compiled_in_is_for_that_count() {
        let exported = [
            "fwd_dense_causal",
            "fwd_dense_full_148_multiprocessors",
            "fwd_dense_full_152_multiprocessors",
        ];
        let find =
            |name, count| for_multiprocessors(name, count, |other| exported.contains(&other));
        for count in [148, 152, 160] {
            assert_eq!(
                find("fwd_dense_causal", count).as_deref(),
                Some(exported[0])
            );
        }
        let full = "fwd_dense_full";
        assert_eq!(find(full, 148).as_deref(), Some(exported[1]));
        assert_eq!(find(full, 152).as_deref(), Some(exported[2]));
        assert_eq!(find(full, 160), None);
        assert_eq!(find(full, 15), None);
    }

    #[test]
    fn kernels_for_b200_and_gb200_are_exported_and_for_no_other_count() {
        let is_exported = |name: &str| flash_attention::has_kernel(10, name);
        let linked = flash_attention::artifacts();
        let full = "fwd_dense_full_bf16_d128_g8";
        for _ in linked.iter().filter(|archive| archive.major == 10) {
            for (count, exported) in [(132, false), (148, true), (152, true), (160, false)] {
                let found = for_multiprocessors(full, count, is_exported);
                assert_eq!(found.is_some(), exported, "{count}");
            }
        }
    }
}
