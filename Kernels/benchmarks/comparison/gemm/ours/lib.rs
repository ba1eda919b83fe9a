//! Our kernels.

use contender::{ContenderError, Contenders, Problem, Tensors};
use gemm::{Layout, Product};
use our_contender::{dtype, Ours, Variant};
use workloads::{GemmProblem, GroupKind};

/// The plain kernel runs at about a hundredth of the tensor cores' rate: beyond this many
/// operations it would take longer than everything else combined.
const MOST_PLAIN_FLOPS: f64 = 4e12;

pub fn contenders() -> Contenders<GemmProblem> {
    let family = Ours {
        timed: "one kernel, on Hopper the fastest of up to eight that are tried when tensors are bound; FP8 and FP4 \
                operands and their scales are inputs",
        obstacle,
        op,
        check: |product, variant| gemm::choice(product, variant).map(drop),
        plan: gemm::plan,
    };
    vec![
        family.ours_measured(gemm::measured_plan),
        family.first(),
        family.portable(gemm::choice),
        family.plain(),
    ]
}

fn obstacle(problem: &GemmProblem, variant: Variant) -> Option<String> {
    let flops = problem.cost().flops;
    let too_slow = variant == Variant::Plain && flops > MOST_PLAIN_FLOPS;
    too_slow.then(|| format!("{flops:.1e} operations; the limit is {MOST_PLAIN_FLOPS:.0e}"))
}

fn op(problem: &GemmProblem, tensors: &Tensors) -> Result<Product, ContenderError> {
    let layout = &problem.layout;
    let (rows, kind, index) = match layout.kind {
        GroupKind::Dense => (layout.rows, Layout::Dense, 0),
        GroupKind::Contiguous => (
            layout.rows,
            Layout::Contiguous,
            tensors.address("group_of_row")?,
        ),
        GroupKind::Masked => {
            let rows = layout.rows / layout.groups();
            (rows, Layout::Masked, tensors.address("rows_of_group")?)
        }
    };
    Ok(Product {
        a: tensors.address("a")?,
        b: tensors.address("b")?,
        out: tensors.address("out")?,
        a_scales: tensors.address_or_null("a_scales"),
        b_scales: tensors.address_or_null("b_scales"),
        tensor_scale: tensors.address_or_null("tensor_scale"),
        index,
        rows,
        n: problem.shape.n,
        k: problem.shape.k,
        groups: layout.groups(),
        dtype: dtype(problem.dtype())?,
        layout: kind,
        expected_rows: layout.used_rows().div_ceil(layout.used_groups().max(1)),
    })
}
