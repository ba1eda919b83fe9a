//! What DeepGEMM compiles into a kernel besides n and k.

use std::fmt;
use std::str::FromStr;

/// FP8 e4m3 has a scale per 128 of k, MXFP8 and MXFP4 one per 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GemmOperands {
    Bf16,
    Fp8,
    Mxfp8,
    Mxfp4,
}

impl GemmOperands {
    const ALL: [Self; 4] = [Self::Bf16, Self::Fp8, Self::Mxfp8, Self::Mxfp4];

    fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
            Self::Mxfp8 => "mxfp8",
            Self::Mxfp4 => "mxfp4",
        }
    }
}

/// Where the rows of a product's groups are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GemmLayout {
    Dense,
    Contiguous,
    /// With the number of groups, which is compiled in too.
    Masked(usize),
}

/// Types, layout and tile, as in `fp8-dense-128x160-5-2x1`: rows and columns of a tile, stages, and how many blocks of
/// a cluster there are along rows and columns; `-transposed` where it computes that product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GemmKernel {
    pub operands: GemmOperands,
    pub layout: GemmLayout,
    pub block_m: usize,
    pub block_n: usize,
    pub stages: usize,
    pub cluster_m: usize,
    pub cluster_n: usize,
    pub transposed: bool,
}

const TRANSPOSED: &str = "-transposed";

impl fmt::Display for GemmKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operands = self.operands.name();
        let layout = match self.layout {
            GemmLayout::Dense => "dense".to_owned(),
            GemmLayout::Contiguous => "contiguous".to_owned(),
            GemmLayout::Masked(groups) => format!("masked{groups}"),
        };
        let (m, n, stages) = (self.block_m, self.block_n, self.stages);
        let (rows, columns) = (self.cluster_m, self.cluster_n);
        let transposed = if self.transposed { TRANSPOSED } else { "" };
        write!(
            f,
            "{operands}-{layout}-{m}x{n}-{stages}-{rows}x{columns}{transposed}"
        )
    }
}

/// The words of a kernel, which are its name.
impl FromStr for GemmKernel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).ok_or_else(|| {
            format!(
                "`{text}` is not a kernel of DeepGEMM; expected types, layout, tile, stages and cluster, like \
                 fp8-dense-128x160-5-2x1 or bf16-masked8-64x128-8-1x2; a row that lacks one says which"
            )
        })
    }
}

fn parse(text: &str) -> Option<GemmKernel> {
    // A size that a kernel can have.
    let size = |text: &str, most: usize| {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit());
        let size: usize = text.parse().ok()?;
        (plain && (1..=most).contains(&size)).then_some(size)
    };
    let pair = |text: &str, most: usize| {
        let (first, second) = text.split_once('x')?;
        Some((size(first, most)?, size(second, most)?))
    };
    let plain = text.strip_suffix(TRANSPOSED);
    let words: Vec<&str> = plain.unwrap_or(text).split('-').collect();
    let [operands, layout, tile, stages, cluster] = words.try_into().ok()?;
    let mut known = GemmOperands::ALL.into_iter();
    let operands = known.find(|known| known.name() == operands)?;
    let layout = match layout {
        "dense" => GemmLayout::Dense,
        "contiguous" => GemmLayout::Contiguous,
        other => GemmLayout::Masked(size(other.strip_prefix("masked")?, 1 << 12)?),
    };
    let ((block_m, block_n), (cluster_m, cluster_n)) = (pair(tile, 256)?, pair(cluster, 2)?);
    let stages = size(stages, 32)?;
    Some(GemmKernel {
        operands,
        layout,
        block_m,
        block_n,
        stages,
        cluster_m,
        cluster_n,
        transposed: plain.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::GemmKernel;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in [
            "fp8-dense-128x160-5-2x1",
            "bf16-contiguous-128x256-3-1x2",
            "fp8-masked64-64x192-6-1x1",
            "mxfp4-dense-16x128-11-1x2-transposed",
        ] {
            let kernel: GemmKernel = name.parse().unwrap();
            assert_eq!(kernel.to_string(), name);
        }
    }

    #[test]
    fn anything_else_is_refused_with_an_example() {
        for text in [
            "",
            "fp8",
            "fp4-dense-128x160-5-2x1",
            "fp8-sparse-128x160-5-2x1",
            "fp8-masked-64x192-6-1x1",
            "fp8-dense-128x160-5-2x1-",
            "fp8-dense-128x160-5-2x1-transposed-transposed",
            "fp8-dense-0x160-5-2x1",
            "fp8-dense-128x512-5-2x1",
            "fp8-dense-+128x160-5-2x1",
            "fp8-dense-128x160-5-2x1;rm",
        ] {
            let message = text.parse::<GemmKernel>().unwrap_err();
            assert!(
                message.contains("like fp8-dense-128x160-5-2x1"),
                "{message}"
            );
        }
    }
}
