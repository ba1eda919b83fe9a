//! Writes the table of docs/SUPPORT.md, contenders by shapes of today's open models, and checks that it is the one
//! there. Contenders that load a library or ask the driver are left out: what they say depends on the machine.

use std::collections::BTreeMap;
use std::fmt::Write;

use contender::{Contenders, DeviceInfo, DeviceKind, Problem, Support};
use models::{known_models, Model};
use numeric::DType;
use reference::rope::Pairs;
use workloads::{
    Activation, DecodeProblem, DecodeShape, DecodeSuite, GemmProblem, GemmShape, GemmSuite,
    GroupedGemmSuite, KvLayout, KvType, MlaDecodeProblem, MlaShape, MlaSuite, NormOp, NormProblem,
    NormSuite, NormTypes, Pass, PrefillOp, PrefillProblem, PrefillSuite, RopeShape, RowLayout,
    RowShape, TrainingOp, TrainingProblem, TrainingShape, TrainingSuite, SCALE_BLOCK,
};

const ARCH: &str = "sm_90a";
/// They are asked on the machine that has their libraries; our attention asks the device for its limits.
const LEFT_OUT: [(&str, &str); 8] = [
    ("", "cublaslt"),
    ("", "cudnn"),
    ("", "transformer_engine"),
    ("prefill", "ours"),
    ("decode", "ours"),
    ("mla_decode", "ours"),
    ("gemm", "ours"),
    ("grouped_gemm", "ours"),
];
/// Tokens of every shape.
const TOKENS: usize = 4096;
const START: &str = "\
# Who takes which shape

For sm_90a in bf16, 4096 tokens, at the sizes of the models in
`Kernels/benchmarks/models/models.json`; decode is one new token over a cache of 4096 in pages. Written by
`//Kernels/benchmarks/comparison:support_test`, which fails if the contenders say something else; it needs no GPU, and
shows nothing of speed or correctness. Left out is who can only be asked on a machine with a GPU: cuBLASLt, cuDNN,
Transformer Engine, our attention and our matrix products. A product is that of a feed-forward layer's gate and up
projections, as columns by depth.

`yes`: linked in. `built`: a command away, which the row of a bench says and `--build-missing` runs
([ARTIFACTS.md](ARTIFACTS.md)); the library may still refuse the size, and the row then says that. A number: not
supported, for the reason below the tables.
";

fn device() -> DeviceInfo {
    DeviceInfo {
        kind: DeviceKind::Cuda,
        name: "NVIDIA H200".to_owned(),
        uuid: None,
        arch: ARCH.to_owned(),
        compute_capability: Some((9, 0)),
        multiprocessors: 132,
        l2_bytes: 50 << 20,
        memory_bytes: 141 << 30,
        shared_bytes_per_block: 227 << 10,
        emulated: false,
    }
}

/// A problem with the models that have it.
struct Line<P> {
    shape: String,
    problem: P,
    models: Vec<String>,
}

/// A line for each distinct problem that a model has, in the order of their sizes.
fn lines<P, K: Ord>(
    sizes: impl Fn(&Model) -> Option<K>,
    line: impl Fn(&K) -> (String, P),
) -> Vec<Line<P>> {
    let mut distinct: BTreeMap<K, Vec<String>> = BTreeMap::new();
    for model in known_models() {
        if let Some(sizes) = sizes(&model) {
            distinct.entry(sizes).or_default().push(model.name);
        }
    }
    let each = distinct.into_iter().map(|(sizes, models)| {
        let (shape, problem) = line(&sizes);
        Line {
            shape,
            problem,
            models,
        }
    });
    each.collect()
}

#[derive(Default)]
struct Table {
    text: String,
    reasons: Vec<String>,
    shapes: usize,
}

impl Table {
    fn section<P: Problem>(&mut self, op: &str, contenders: Contenders<P>, lines: Vec<Line<P>>) {
        let left_out = |name: &str| {
            let mut rules = LEFT_OUT.iter();
            rules.any(|(ops, names)| op.starts_with(ops) && name.starts_with(names))
        };
        let contenders: Vec<_> = contenders
            .into_iter()
            .filter(|contender| contender.identity().kind != contender::Kind::Reference)
            .filter(|contender| !left_out(&contender.identity().name))
            .collect();
        let names: Vec<&str> = contenders
            .iter()
            .map(|contender| contender.identity().name.as_str())
            .collect();
        let (heads, rules) = (names.join(" | "), "---|".repeat(names.len()));
        let _ = write!(
            self.text,
            "\n## {op}\n\n| shape | {heads} | models |\n|---|{rules}---|\n"
        );
        for line in lines {
            self.shapes += 1;
            let cells: Vec<String> = contenders
                .iter()
                .map(
                    |contender| match contender.supports(&line.problem, &device()) {
                        Support::Yes => "yes".to_owned(),
                        Support::No(_) if contender.missing(&line.problem, ARCH).is_some() => {
                            "built".to_owned()
                        }
                        Support::No(reason) => self.reason(reason),
                    },
                )
                .collect();
            let models = match &line.models[..] {
                [first, second, third, rest @ ..] if !rest.is_empty() => {
                    format!("{first}, {second}, {third} and {} more", rest.len())
                }
                few => few.join(", "),
            };
            let _ = writeln!(
                self.text,
                "| {} | {} | {models} |",
                line.shape,
                cells.join(" | ")
            );
        }
    }

    /// The number of a reason, which is new or not.
    fn reason(&mut self, reason: String) -> String {
        let known = self.reasons.iter().position(|known| *known == reason);
        let place = known.unwrap_or_else(|| {
            self.reasons.push(reason);
            self.reasons.len() - 1
        });
        (place + 1).to_string()
    }
}

fn norm(op: NormOp, columns: usize) -> (String, NormProblem) {
    let shape = RowShape {
        rows: TOKENS,
        columns,
    };
    let (shape, workload) = NormSuite::custom(shape);
    let types = NormTypes {
        activation: DType::Bf16,
        weight: DType::Bf16,
    };
    let problem = NormProblem::new(op, shape, types, workload);
    (columns.to_string(), problem)
}

fn training(op: TrainingOp, shape: TrainingShape) -> TrainingProblem {
    let (shape, workload) = TrainingSuite::custom(shape);
    TrainingProblem::new(op, shape, DType::Bf16, workload)
}

/// Attention heads, where every layer keeps keys and values as they are.
fn heads(model: &Model) -> Option<(usize, usize, usize)> {
    let heads = (model.head_dim, model.heads, model.kv_heads);
    let heads = (heads.0 as usize, heads.1 as usize, heads.2 as usize);
    model.latent.is_none().then_some(heads)
}

/// Elements of a key and of a value, then heads as prefill has them, where latents are expanded.
fn prefill_heads(model: &Model) -> Option<(usize, usize, usize, usize)> {
    let value_dim = model
        .latent
        .as_ref()
        .map_or(model.head_dim, |latent| latent.value);
    let heads = [model.head_dim, value_dim, model.heads, model.kv_heads];
    Some(heads.map(|size| size as usize).into())
}

/// A step of decode over pages of one size.
fn decode((dim, heads, kv_heads): (usize, usize, usize), page_size: usize) -> DecodeProblem {
    let shape = DecodeShape {
        lengths: vec![TOKENS],
        q_len: 1,
        heads,
        kv_heads,
        head_dim: dim,
        page_size,
        layout: KvLayout::default(),
        kv_type: KvType::Same,
    };
    let workload = DecodeSuite::custom(&shape);
    DecodeProblem::new(shape, DType::Bf16, workload)
}

/// The same over latent rows.
fn mla_decode(heads: usize, page_size: usize) -> MlaDecodeProblem {
    let shape = MlaShape {
        lengths: vec![TOKENS],
        q_len: 1,
        heads,
        page_size,
        kv_type: KvType::Same,
    };
    let workload = MlaSuite::custom(&shape);
    MlaDecodeProblem::new(shape, DType::Bf16, workload)
}

/// The gate and up projections, of an expert or of a model without; FP8 takes whole blocks of scales.
fn projections(model: &Model, of_experts: bool, dtype: DType) -> Option<(usize, usize)> {
    let experts = model.experts.as_ref();
    let width = experts.map_or(model.intermediate, |experts| experts.intermediate);
    let (n, k) = (2 * width as usize, model.hidden as usize);
    let exists = dtype != DType::F8E4M3 || k.is_multiple_of(SCALE_BLOCK);
    (exists && experts.is_some() == of_experts).then_some((n, k))
}

/// By tokens of each group, or of one dense product.
fn product((n, k): (usize, usize), groups: Option<usize>, dtype: DType) -> (String, GemmProblem) {
    let shape = GemmShape { n, k };
    let layout = match groups {
        Some(groups) => RowLayout::contiguous(vec![TOKENS / groups; groups]),
        None => RowLayout::dense(TOKENS),
    };
    let workload = match groups {
        Some(_) => GroupedGemmSuite::given(shape, layout.clone()).2,
        None => GemmSuite::custom(TOKENS, n, k).2,
    };
    let problem = GemmProblem::new(shape, layout, dtype, workload);
    (format!("{n} x {k}"), problem.expect("a product"))
}

fn table() -> Table {
    let cuda = DeviceKind::Cuda;
    let mut table = Table {
        text: START.to_owned(),
        ..Table::default()
    };
    let hidden = |model: &Model| Some(model.hidden as usize);
    for op in [NormOp::RmsNormForward, NormOp::RmsNormBackward] {
        let lines = lines(hidden, |columns| norm(op, *columns));
        table.section(&op.to_string(), norms_contenders::contenders(cuda), lines);
    }
    let op = NormOp::CrossEntropyForwardBackward;
    let vocabulary = |model: &Model| Some(model.vocabulary as usize);
    let logits = lines(vocabulary, |columns| norm(op, *columns));
    table.section(&op.to_string(), norms_contenders::contenders(cuda), logits);
    let op = TrainingOp::Activation(Activation::SwiGlu, Pass::Forward);
    let experts = |model: &Model| {
        let experts = model.experts.as_ref();
        Some(experts.map_or(model.intermediate, |experts| experts.intermediate) as usize)
    };
    let rows = lines(experts, |&columns| {
        let shape = TrainingShape::Rows(RowShape {
            rows: TOKENS,
            columns,
        });
        (columns.to_string(), training(op, shape))
    });
    table.section(&op.to_string(), training_contenders::contenders(cuda), rows);
    let op = TrainingOp::Rope(Pairs::HalfSplit, Pass::Forward);
    let rope = lines(heads, |&(dim, query_heads, key_heads)| {
        let shape = TrainingShape::Rope(RopeShape {
            batch: 1,
            sequence: TOKENS,
            query_heads,
            key_heads,
            dim,
        });
        (
            format!("{query_heads}/{key_heads} heads of {dim}"),
            training(op, shape),
        )
    });
    table.section(&op.to_string(), training_contenders::contenders(cuda), rope);
    let prefill = lines(prefill_heads, |&(dim, value_dim, query, key)| {
        let sizes = [1, TOKENS, TOKENS, query, key, dim];
        let (shape, workload) =
            PrefillSuite::from_sizes(sizes, Some(value_dim)).expect("a prefill");
        let named = format!("{query}/{key} heads of {}", shape.dims());
        let problem = PrefillProblem::new(PrefillOp::Prefill, shape, DType::Bf16, workload);
        (named, problem.expect("a prefill"))
    });
    let op = PrefillOp::Prefill.name();
    table.section(op, prefill_contenders::contenders(cuda), prefill);
    for page_size in [16, 64] {
        let steps = lines(heads, |&sizes| {
            let (dim, query, key) = sizes;
            let named = format!("{query}/{key} heads of {dim}");
            (named, decode(sizes, page_size))
        });
        let op = format!("decode, pages of {page_size}");
        table.section(&op, decode_contenders::contenders(cuda), steps);
    }
    for page_size in [32, 64] {
        let latent = |model: &Model| model.latent.as_ref().map(|_| model.heads as usize);
        let steps = lines(latent, |&heads| {
            (format!("{heads} heads"), mla_decode(heads, page_size))
        });
        let op = format!("mla_decode, pages of {page_size}");
        table.section(&op, mla_contenders::contenders(cuda), steps);
    }
    for dtype in [DType::Bf16, DType::F8E4M3] {
        let dense = |model: &Model| projections(model, false, dtype);
        let products = lines(dense, |&sides| product(sides, None, dtype));
        let op = format!("gemm, {dtype}");
        table.section(&op, gemm_contenders::contenders(cuda), products);
        let experts = |model: &Model| projections(model, true, dtype);
        let products = lines(experts, |&sides| product(sides, Some(8), dtype));
        let op = format!("grouped_gemm, {dtype}, 8 experts");
        table.section(&op, gemm_contenders::contenders(cuda), products);
    }
    table.text.push_str("\n## Reasons\n\n");
    for (place, reason) in table.reasons.iter().enumerate() {
        let _ = writeln!(table.text, "{}. {reason}", place + 1);
    }
    table
}

#[test]
fn the_published_table_is_what_contenders_say() {
    let table = table();
    assert!(table.shapes >= 60, "{} shapes", table.shapes);
    let published = std::env::var("SUPPORT").expect("the BUILD file names the table");
    let published = std::fs::read_to_string(published).expect("the table");
    if published == table.text {
        return;
    }
    let folder = std::env::var("TEST_UNDECLARED_OUTPUTS_DIR").expect("Bazel runs this");
    std::fs::write(format!("{folder}/SUPPORT.md"), &table.text).expect("the new table");
    panic!(
        "docs/SUPPORT.md is not what contenders say: cp \
         bazel-testlogs/Kernels/benchmarks/comparison/support_test/test.outputs/SUPPORT.md docs/"
    );
}
