//! Suites of shapes for grouped GEMMs: the experts of mixture-of-experts models.

use contender::{Workload, SHAPES_SEED};
use numeric::{bits, index_below, uniform};
use serde_json::Value;

use super::shape::{GemmShape, GroupKind, RowLayout};
use crate::suite::{self, axes, suites};
use crate::unseen::{distinct, Draws, SHAPES};

suites! {
    pub enum GroupedGemmSuite {
        Prefill("prefill", "1024 to 8192 tokens per expert, even and uneven"),
        Decode("decode", "16 or 32 tokens per expert, 1 to 256 experts"),
        Masked("masked", "equal space per expert, partly used"),
        Zipf("zipf", "few busy experts, some without tokens"),
        Unseen("unseen", "24 shapes drawn by --shapes-seed, within the ranges of models"),
        Smoke("smoke", "edge cases; fits a CPU"),
    }
}

/// How the tokens of a layer are distributed among its experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spread {
    Even,
    /// Uniform between 0.7 and 1.3 of the mean, as in DeepGEMM's tests.
    Uneven,
    /// Drawn one by one with probability (rank of the expert)^-1.2: few are busy, some are empty.
    Zipf,
}

impl Spread {
    fn name(self) -> &'static str {
        match self {
            Spread::Even => "even",
            Spread::Uneven => "uneven",
            Spread::Zipf => "zipf",
        }
    }

    fn tokens(self, groups: usize, each: usize) -> Vec<usize> {
        match self {
            Spread::Even => vec![each; groups],
            Spread::Uneven => (0..groups as u64)
                .map(|group| {
                    let share = uniform(bits(1, groups as u32, group), 0.7, 1.3);
                    (each as f32 * share) as usize
                })
                .collect(),
            Spread::Zipf => zipf(groups, groups * each),
        }
    }
}

const ZIPF_EXPONENT: f64 = 1.2;

/// `total` tokens over `groups` experts; the busiest experts are spread over the groups.
fn zipf(groups: usize, total: usize) -> Vec<usize> {
    let mut ends = Vec::with_capacity(groups);
    let mut sum = 0.0;
    for rank in 1..=groups {
        sum += (rank as f64).powf(-ZIPF_EXPONENT);
        ends.push(sum);
    }
    let mut expert_of_rank: Vec<usize> = (0..groups).collect();
    for last in (1..groups).rev() {
        let other = index_below(bits(2, groups as u32, last as u64), last as u32 + 1);
        expert_of_rank.swap(last, other as usize);
    }
    let mut tokens = vec![0; groups];
    for token in 0..total as u64 {
        let point = f64::from(uniform(bits(3, groups as u32, token), 0.0, 1.0)) * sum;
        let rank = ends.partition_point(|end| *end < point).min(groups - 1);
        tokens[expert_of_rank[rank]] += 1;
    }
    tokens
}

/// One line of a suite: groups, mean tokens per group, n x k.
type Line = (usize, usize, (usize, usize), Spread);

/// n x k of DeepSeek-V3's and Kimi K2's experts: fused gate-up, and down.
const UP: (usize, usize) = (4096, 7168);
const DOWN: (usize, usize) = (7168, 2048);

const PREFILL: [Line; 8] = [
    (4, 8192, UP, Spread::Even),
    (4, 8192, DOWN, Spread::Even),
    (8, 4096, UP, Spread::Even),
    (8, 4096, DOWN, Spread::Even),
    (8, 4096, UP, Spread::Uneven),
    (8, 4096, DOWN, Spread::Uneven),
    (32, 1024, UP, Spread::Uneven),
    (32, 1024, DOWN, Spread::Uneven),
];
const DECODE: [Line; 8] = [
    (1, 32, UP, Spread::Even),
    (8, 16, UP, Spread::Even),
    (8, 32, DOWN, Spread::Even),
    (32, 16, UP, Spread::Uneven),
    (32, 32, DOWN, Spread::Uneven),
    (64, 32, UP, Spread::Even),
    (256, 16, UP, Spread::Even),
    (256, 16, DOWN, Spread::Uneven),
];
/// Masked layouts have room for this many rows per group.
const MASKED_ROOM: usize = 1024;
const MASKED: [Line; 4] = [
    (8, 32, UP, Spread::Uneven),
    (8, 256, UP, Spread::Uneven),
    (32, 32, DOWN, Spread::Uneven),
    (64, 32, UP, Spread::Uneven),
];
const ZIPF: [Line; 4] = [
    (32, 512, UP, Spread::Zipf),
    (64, 128, UP, Spread::Zipf),
    (64, 128, DOWN, Spread::Zipf),
    (256, 32, DOWN, Spread::Zipf),
];
const SMOKE_SIDES: (usize, usize) = (272, 256);

pub type GroupedWorkload = (GemmShape, RowLayout, Workload);

impl GroupedGemmSuite {
    /// The suite as published.
    pub fn workloads(self) -> Vec<GroupedWorkload> {
        self.drawn(SHAPES_SEED)
    }

    /// The suite, with unseen shapes of a seed.
    pub fn drawn(self, seed: u64) -> Vec<GroupedWorkload> {
        let experts = "experts of DeepSeek-V3 and Kimi K2: n x k 4096x7168 and 7168x2048";
        let lines = |lines: &[Line], provenance: &str| {
            lines
                .iter()
                .map(|&line| self.line(line, provenance))
                .collect()
        };
        match self {
            GroupedGemmSuite::Prefill => lines(
                &PREFILL,
                &format!("{experts}; groups and tokens as in DeepGEMM's tests"),
            ),
            GroupedGemmSuite::Decode => lines(&DECODE, &format!("{experts}; one decode step")),
            GroupedGemmSuite::Masked => lines(
                &MASKED,
                &format!("{experts}; a decode step under a CUDA graph"),
            ),
            GroupedGemmSuite::Zipf => lines(
                &ZIPF,
                &format!("{experts}; popularity of experts by Zipf's law"),
            ),
            GroupedGemmSuite::Unseen => distinct(seed, SHAPES, unseen, |(_, _, workload)| workload),
            GroupedGemmSuite::Smoke => smoke(),
        }
    }

    fn line(self, (groups, each, (n, k), spread): Line, provenance: &str) -> GroupedWorkload {
        let tokens = spread.tokens(groups, each);
        let layout = match self {
            GroupedGemmSuite::Masked => RowLayout::masked(tokens, MASKED_ROOM),
            _ => RowLayout::contiguous(tokens),
        };
        let name = format!("g{groups}m{each}{}_{n}x{k}", spread.name());
        workload(self, name, (n, k), layout, provenance)
    }

    /// Custom even groups.
    pub fn custom(groups: usize, each: usize, n: usize, k: usize) -> GroupedWorkload {
        let layout = RowLayout::contiguous(vec![each; groups]);
        let mut made = Self::given(GemmShape { n, k }, layout);
        made.2.name = format!("g{groups}m{each}even_{n}x{k}");
        made
    }

    /// Custom groups of any kind.
    pub fn given(shape: GemmShape, layout: RowLayout) -> GroupedWorkload {
        let sides = (shape.n, shape.k);
        let mut made = workload(
            Self::Prefill,
            String::new(),
            sides,
            layout,
            "given on the command line",
        );
        made.2.suite = "custom".to_owned();
        made
    }
}

/// A layer of experts, or one GPU's share of it.
fn unseen(draws: Draws) -> GroupedWorkload {
    // Gate and up together, or down.
    let (hidden, expert) = (
        draws.size(0, 2048, 7168, 256),
        draws.size(1, 512, 4096, 128),
    );
    let (n, k) = match draws.once_in(2, 2) {
        true => (2 * expert, hidden),
        false => (hidden, expert),
    };
    let groups = draws.size(3, 2, 256, 1).min(UNSEEN_ELEMENTS / (n * k));
    let each = draws.size(4, 4, 2048, 1).min((1 << 15) / groups);
    let spread = draws.one_of(5, &[Spread::Even, Spread::Uneven, Spread::Zipf]);
    let tokens = spread.tokens(groups, each);
    let most = tokens.iter().max().copied().unwrap_or(0);
    let masked = most <= 256 && draws.once_in(6, 3);
    let layout = match masked {
        true => RowLayout::masked(tokens, most.next_multiple_of(128)),
        false => RowLayout::contiguous(tokens),
    };
    let kind = if masked { "masked" } else { "" };
    let name = format!("g{groups}m{each}{}{kind}_{n}x{k}", spread.name());
    let provenance = "drawn within the ranges of Mixtral, Qwen3, DeepSeek-V3 and Kimi K2 experts";
    workload(GroupedGemmSuite::Unseen, name, (n, k), layout, provenance)
}

/// Elements of the matrices of a drawn layer: 4 GiB of bf16.
const UNSEEN_ELEMENTS: usize = 1 << 31;

/// All edge cases at once: an empty group, one row, whole tiles, one row more; in both layouts.
fn smoke() -> Vec<GroupedWorkload> {
    let tokens = vec![1, 0, 128, 129, 0, 37];
    let provenance = "edge cases of this project";
    let suite = GroupedGemmSuite::Smoke;
    let contiguous = RowLayout::contiguous(tokens.clone());
    let masked = RowLayout::masked(tokens, 256);
    vec![
        workload(
            suite,
            "contiguous".to_owned(),
            SMOKE_SIDES,
            contiguous,
            provenance,
        ),
        workload(suite, "masked".to_owned(), SMOKE_SIDES, masked, provenance),
    ]
}

fn workload(
    suite: GroupedGemmSuite,
    name: String,
    (n, k): (usize, usize),
    layout: RowLayout,
    provenance: &str,
) -> GroupedWorkload {
    let kind = match layout.kind {
        GroupKind::Dense => "dense",
        GroupKind::Contiguous => "contiguous",
        GroupKind::Masked => "masked",
    };
    let axes = axes([
        ("groups", Value::from(layout.groups())),
        ("k", Value::from(k)),
        ("layout", Value::from(kind)),
        ("n", Value::from(n)),
        ("rows", Value::from(layout.rows)),
        ("tokens", Value::from(layout.tokens.clone())),
    ]);
    let workload = suite::workload(suite, name, provenance, axes);
    (GemmShape { n, k }, layout, workload)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::testing::assert_named_once;

    #[test]
    fn unseen_shapes_are_drawn_and_legal() {
        let sizes = |(shape, layout, _): GroupedWorkload| (shape, layout);
        let drawn = |seed| GroupedGemmSuite::Unseen.drawn(seed).into_iter().map(sizes);
        crate::unseen::assert_drawn(|seed| drawn(seed).collect(), 24);
        for (GemmShape { n, k }, layout) in (0..40).flat_map(drawn) {
            assert!(n.is_multiple_of(8) && k.is_multiple_of(128));
            assert!(layout.groups() * n * k <= UNSEEN_ELEMENTS);
            assert!(layout.rows <= 1 << 17 && layout.used_rows() > 0);
        }
    }

    #[test]
    fn names_are_unique_and_axes_say_the_shape() {
        for suite in GroupedGemmSuite::all() {
            let workloads = suite.workloads();
            assert_named_once(suite, workloads.iter().map(|(_, _, workload)| workload));
            for (shape, layout, workload) in &workloads {
                assert_eq!(workload.axes["n"], shape.n);
                assert_eq!(workload.axes["groups"], layout.groups());
                assert_eq!(
                    workload.axes["tokens"].as_array().unwrap().len(),
                    layout.groups()
                );
            }
        }
    }

    #[test]
    fn spreads_have_the_tokens_they_should() {
        let uneven = Spread::Uneven.tokens(8, 1000);
        assert!(uneven.iter().all(|tokens| (700..=1300).contains(tokens)));
        assert!(uneven.iter().collect::<BTreeSet<_>>().len() > 4);
        let zipf = Spread::Zipf.tokens(256, 32);
        assert_eq!(zipf.iter().sum::<usize>(), 8192);
        assert!(zipf.contains(&0), "some experts are empty");
        // The first rank's share of the sum of rank^-1.2 up to 256 is 25 %.
        let most = *zipf.iter().max().unwrap() as f64 / 8192.0;
        assert!((0.23..0.28).contains(&most), "{most}");
    }
}
