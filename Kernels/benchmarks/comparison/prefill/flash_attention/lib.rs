//! FlashAttention-4 and FlashAttention-2; see Kernels/baselines/flash_attention/README.md for how.

use contender::{
    bound, contender, released, Binding, Contender, ContenderError, Contenders, DeviceInfo,
    DeviceKind, Facts, Identity, Pinned, Problem, Releases, Tensors,
};
use flash_attention::{Attention, UniquePtr, Workspace};
use numeric::DType;
use on_demand::{CuteLibrary, Recipe, Variant, Wanted};
use workloads::{PrefillProblem, PrefillShape};

pub fn contenders() -> Contenders<PrefillProblem> {
    let identity = |name, version: &str, sha256| {
        let region = "one kernel, which also writes the log-sum-exp of each row";
        Identity::baseline(name, version, sha256, region)
    };
    let artifacts = flash_attention::artifacts();
    // A build for both architectures has one archive each; the row's arch says which one ran.
    let fourth = artifacts.first().map(|first| {
        let sha256 = Some(first.sha256.clone()).filter(|_| artifacts.len() == 1);
        let identity = identity("flash_attention_4", &first.version, sha256);
        of_release(identity, None)
    });
    let second = identity(
        "flash_attention_2",
        flash_attention::FLASH_ATTENTION_2_VERSION,
        Some(flash_attention::FLASH_ATTENTION_2_SHA256.to_owned()),
    );
    let second = contender(second, DeviceKind::Cuda, unsupported_2, bind_2);
    fourth.into_iter().chain([second]).collect()
}

/// FlashAttention-4 of a release that the lock pins; none if it does not.
fn at(release: &str) -> Option<Box<dyn Contender<PrefillProblem>>> {
    let own = contenders().into_iter().next()?.identity().clone();
    let identity = own.at(release);
    if release == own.release() {
        return Some(of_release(identity, None));
    }
    let others = &Recipe::FlashAttention4.releases()?.others;
    let release = others.iter().find(|known| *known == release)?;
    Some(of_release(identity, Some(release)))
}

/// Another one than that of the archives.
type Release = Option<&'static str>;

/// Of another release there is what is built on demand.
fn of_release(identity: Identity, release: Release) -> Box<dyn Contender<PrefillProblem>> {
    let releases = Recipe::FlashAttention4.releases().map(|known| Releases {
        pinned: Pinned {
            others: known.others.clone(),
            pin: known.pin_command(),
        },
        at,
    });
    released(
        identity,
        DeviceKind::Cuda,
        move |problem, device| unsupported_4(problem, device, release),
        move |problem, arch| missing_4(problem, arch, release),
        move |problem, tensors, device| bind_4(problem, tensors, device, release),
        releases,
    )
}

/// What neither of the two supports.
fn unsupported(problem: &PrefillProblem) -> Option<String> {
    if problem.dtype() != DType::Bf16 {
        Some(format!("{} is not built in; use bf16", problem.dtype()))
    } else if problem.op.has_lse() {
        Some("writes the log-sum-exp as [heads, total_q]; the op is [total_q, heads]".to_owned())
    } else if problem.shape.value_dim.is_some() {
        let dims = problem.shape.dims();
        Some(format!(
            "head dim {dims} is not built in; values must be as wide as keys"
        ))
    } else {
        None
    }
}

/// Whether all sequences have the same lengths: then the library's dense entry point is used.
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

/// Validation ensures that lengths fit in 31 bits.
fn attention(
    problem: &PrefillProblem,
    tensors: &Tensors,
    lse: usize,
) -> Result<Attention, ContenderError> {
    let shape = &problem.shape;
    Ok(Attention {
        q: tensors.address("q")?,
        k: tensors.address("k")?,
        v: tensors.address("v")?,
        starts_q: tensors.address("cu_q")?,
        starts_kv: tensors.address("cu_kv")?,
        out: tensors.address("out")?,
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
    })
}

fn lse_workspace(problem: &PrefillProblem) -> Result<UniquePtr<Workspace>, ContenderError> {
    let rows = problem.shape.total_q() * problem.shape.heads;
    flash_attention::allocate_workspace(rows * size_of::<f32>()).map_err(ContenderError::new)
}

/// A FlashAttention-4 kernel: its name, and the library if it was built on demand.
struct Exported {
    name: String,
    built: Option<&'static CuteLibrary>,
}

fn kernel_name(shape: &PrefillShape) -> String {
    let lengths = if is_dense(shape) { "dense" } else { "varlen" };
    let mask = if shape.causal { "causal" } else { "full" };
    let ratio = shape.heads / shape.kv_heads;
    format!("fwd_{lengths}_{mask}_bf16_d{}_g{ratio}", shape.head_dim)
}

/// The variant that has the kernels of a shape, if the recipe builds for the arch.
fn variant(shape: &PrefillShape, arch: &str, release: Release) -> Option<Wanted> {
    let variant = Variant::Group {
        head_dim: shape.head_dim,
        group: shape.heads / shape.kv_heads,
    };
    Recipe::FlashAttention4.version(arch)?;
    let wanted = Wanted::new(Recipe::FlashAttention4, arch, variant);
    Some(wanted.of_release(release))
}

/// The kernel for the device, linked or built on demand, or why there is none.
fn exported(
    shape: &PrefillShape,
    device: &DeviceInfo,
    release: Release,
) -> Result<Exported, String> {
    let (name, count) = (kernel_name(shape), device.multiprocessors);
    let is_linked =
        |name: &str| release.is_none() && flash_attention::has_kernel(major(device), name);
    if let Some(name) = for_multiprocessors(&name, count, is_linked) {
        return Ok(Exported { name, built: None });
    }
    let wanted = variant(shape, &device.arch, release);
    let wanted = wanted.ok_or_else(|| format!("this build has no kernels for {}", device.arch))?;
    let library = CuteLibrary::open(&wanted).map_err(|missing| missing.to_string())?;
    let found = for_multiprocessors(&name, count, |name| library.kernel(name).is_ok());
    match (found, library.kernel(&name)) {
        (Some(name), _) => Ok(Exported {
            name,
            built: Some(library),
        }),
        (None, Err(reason)) => Err(format!("{reason}, with {count} multiprocessors")),
        (None, Ok(_)) => unreachable!("a kernel that is there is found"),
    }
}

fn missing_4(problem: &PrefillProblem, arch: &str, release: Release) -> Option<Vec<String>> {
    let (shape, major) = (&problem.shape, if arch == "sm_90a" { 9 } else { 10 });
    let name = kernel_name(shape);
    // With the count of some device compiled in, too.
    let is_linked = |count| {
        let linked = |name: &str| flash_attention::has_kernel(major, name);
        for_multiprocessors(&name, count, linked).is_some()
    };
    let linked = release.is_none() && [132, 148, 152].into_iter().any(is_linked);
    if unsupported(problem).is_some() || linked {
        return None;
    }
    let wanted = variant(shape, arch, release)?;
    let lacks = CuteLibrary::open(&wanted).is_err();
    lacks.then(|| wanted.arguments())
}

/// A kernel, or its variant with the SM count compiled in, which is only for that count.
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

fn unsupported_4(
    problem: &PrefillProblem,
    device: &DeviceInfo,
    release: Release,
) -> Option<String> {
    /// Below this the library uses another config on sm_100, which is not exported.
    const MINIMUM_PACKED_ROWS: usize = 257;
    let shape = &problem.shape;
    let packed_rows = longest(&shape.q_lens) * (shape.heads / shape.kv_heads);
    let few = major(device) >= 10 && packed_rows < MINIMUM_PACKED_ROWS;
    unsupported(problem)
        .or_else(|| exported(shape, device, release).err())
        .or_else(|| {
            few.then(|| {
                format!(
                    "{packed_rows} query rows with the heads of a group; kernels are exported for \
                     {MINIMUM_PACKED_ROWS} and more"
                )
            })
        })
}

fn bind_4(
    problem: &PrefillProblem,
    tensors: &Tensors,
    device: &DeviceInfo,
    release: Release,
) -> Binding {
    let lse = lse_workspace(problem)?;
    let Exported { name, built } =
        exported(&problem.shape, device, release).map_err(ContenderError::new)?;
    let kernel = match built {
        None => {
            flash_attention::load_kernel(major(device), &name).map_err(|error| error.to_string())
        }
        Some(library) => flash_attention::load_built(library, &name),
    };
    let kernel = kernel.map_err(ContenderError::new)?;
    let attention = attention(problem, tensors, lse.address())?;
    let dense = is_dense(&problem.shape);
    let mut facts = Facts::from([("kernel".to_owned(), name.into())]);
    if let Some(library) = built {
        let sha256 = library.built.record.archive_sha256.clone();
        facts.insert("built_on_demand".to_owned(), sha256.into());
        let version = library.built.record.version.clone();
        facts.insert("version".to_owned(), version.into());
    }
    Ok(bound(facts, move |stream| {
        let _alive = &lse;
        if dense {
            kernel.launch_dense(&attention, stream)
        } else {
            kernel.launch_varlen(&attention, stream)
        }
    }))
}

/// FlashAttention-2's dense entry point splits keys if there are too few tiles for the device (its
/// num_splits_heuristic returns 1 from 80 % of two blocks per SM on). Split-KV kernels are not
/// built in, nor dense ones for head dim 64 or without a mask, which no suite needs; the
/// variable-length entry point serves those shapes.
fn is_dense_2(shape: &PrefillShape, device: &DeviceInfo) -> bool {
    const TILE_ROWS: usize = 64;
    let tiles = longest(&shape.q_lens).div_ceil(TILE_ROWS) * shape.batch() * shape.heads;
    is_dense(shape)
        && shape.causal
        && shape.head_dim == 128
        && 10 * tiles >= 8 * 2 * device.multiprocessors as usize
}

fn unsupported_2(problem: &PrefillProblem, _device: &DeviceInfo) -> Option<String> {
    let shape = &problem.shape;
    if let Some(reason) = unsupported(problem) {
        Some(reason)
    } else if ![64, 128].contains(&shape.head_dim) {
        let dims = shape.dims();
        Some(format!("head dim {dims} is not built in; use 64 or 128"))
    } else if longest(&shape.q_lens) == 1 {
        Some("one query per sequence: the library would call its decode kernels".to_owned())
    } else {
        None
    }
}

fn bind_2(problem: &PrefillProblem, tensors: &Tensors, device: &DeviceInfo) -> Binding {
    let lse = lse_workspace(problem)?;
    let attention = attention(problem, tensors, lse.address())?;
    let dense = is_dense_2(&problem.shape, device);
    let entry = if dense { "mha_fwd" } else { "mha_varlen_fwd" };
    let facts = Facts::from([("entry".to_owned(), entry.into())]);
    Ok(bound(facts, move |stream| {
        let _alive = &lse;
        flash_attention::launch_flash_attention_2(&attention, dense, stream)
    }))
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
