//! Which bench takes an op_type, and how its axes and inputs become that bench's shape.

use super::attention::{decode, mla_decode, paged_prefill, ragged_prefill};
use super::case::{left_out, Case, Refusal};
use super::definition::Definition;
use super::shape::Shape;
use serde_json::json;

pub struct Road {
    pub bench: &'static str,
    /// The operation, where the bench has several that take such shapes.
    pub op: Option<&'static str>,
    /// The input whose type is the bench's `--dtype`; the names in use.
    typed_by: &'static [&'static str],
    pub shape: fn(&Case) -> Result<Shape, Refusal>,
}

impl Road {
    /// The error says why no bench takes it.
    pub fn of(definition: &Definition) -> Result<Road, String> {
        let has = |input: &str| definition.inputs.contains_key(input);
        let said = |word: &str| definition.name.split('_').any(|part| part == word);
        let road = |bench, op, typed_by, shape| {
            Ok(Road {
                bench,
                op,
                typed_by,
                shape,
            })
        };
        const HIDDEN: &[&str] = &["hidden_states", "input", "x"];
        match &*definition.op_type {
            "rmsnorm" if has("residual") => {
                road("bench_norms", Some("fused_add_rmsnorm"), HIDDEN, rows)
            }
            "rmsnorm" => road("bench_norms", Some("rmsnorm_fwd"), HIDDEN, rows),
            "fused_add_rmsnorm" => road("bench_norms", Some("fused_add_rmsnorm"), HIDDEN, rows),
            "gemm" => road("bench_gemm", None, &["A"], gemm),
            "grouped_gemm" => road("bench_grouped_gemm", None, &["A"], grouped_gemm),
            "gqa_paged" if has("qo_indptr") => road("bench_prefill", None, &["q"], paged_prefill),
            "gqa_paged" => road("bench_decode", None, &["q"], decode),
            "gqa_ragged" => road("bench_prefill", None, &["q"], ragged_prefill),
            "mla_paged" if has("qo_indptr") => {
                Err("no bench has MLA prefill; mla_paged is taken for decode".to_owned())
            }
            "mla_paged" => road("bench_mla_decode", None, &["q_nope"], mla_decode),
            "rope" if said("neox") => road("bench_training_ops", Some("rope_fwd"), &["q"], rope),
            "rope" if said("gptj") => {
                let op = Some("rope_interleaved_fwd");
                road("bench_training_ops", op, &["q"], rope)
            }
            "rope" => {
                Err("its name says neither 'neox' nor 'gptj', the pairs to rotate".to_owned())
            }
            "moe" => Err(
                "the rows of each expert follow from its routing, which the trace does not store"
                    .to_owned(),
            ),
            other => Err(format!("no bench supports op_type '{other}'")),
        }
    }

    /// The bench and its options, but for the shapes.
    pub fn command(&self, definition: &Definition) -> Result<String, String> {
        let mut command = self.bench.to_owned();
        if let Some(op) = self.op {
            command += &format!(" --op {op}");
        }
        let inputs = &definition.inputs;
        if let Some(tensor) = self.typed_by.iter().find_map(|name| inputs.get(*name)) {
            command += &format!(" --dtype {}", tensor.bench_dtype()?);
        }
        Ok(command)
    }
}

fn rows(case: &Case) -> Result<Shape, Refusal> {
    let rows = case.size(&["batch_size", "num_tokens", "seq_len", "M"])?;
    let columns = case.size(&["hidden_size", "N"])?;
    let config = format!("{rows}x{columns}");
    let shape = Shape::new(config.clone(), json!({"rows": rows, "columns": columns}));
    Ok(Shape {
        config: Some(config),
        ..shape
    })
}

fn gemm(case: &Case) -> Result<Shape, Refusal> {
    let (m, n, k) = (case.size(&["M"])?, case.size(&["N"])?, case.size(&["K"])?);
    let config = format!("{m}x{n}x{k}");
    let shape = Shape::new(config.clone(), json!({"m": m, "n": n, "k": k}));
    Ok(Shape {
        config: Some(config),
        ..shape
    })
}

/// Groups of offsets lie one after another; without offsets all groups have as many rows.
fn grouped_gemm(case: &Case) -> Result<Shape, Refusal> {
    let (n, k) = (case.size(&["N"])?, case.size(&["K"])?);
    let offsets = ["m_indptr", "seg_indptr"];
    if let Some(input) = offsets.into_iter().find(|input| case.has_input(input)) {
        let tokens = case.lengths(input)?;
        let rows: usize = tokens.iter().sum();
        if rows == 0 {
            return left_out("all its groups are empty");
        }
        let label = format!("g{}_rows{rows}_{n}x{k}", tokens.len());
        let members = json!({"tokens": tokens, "n": n, "k": k, "layout": "contiguous"});
        return Ok(Shape::new(label, members));
    }
    let a = case.definition.inputs.get("A");
    let axes = a.and_then(|tensor| tensor.shape.as_deref());
    if axes.is_none_or(|axes| axes != ["G", "M", "K"]) {
        return left_out(
            "the rows of each group are in neither 'm_indptr', 'seg_indptr' nor A[G, M, K]",
        );
    }
    const GROUPS_MAX: usize = 1 << 16;
    let (groups, rows) = (case.size(&["G"])?, case.size(&["M"])?);
    if groups > GROUPS_MAX {
        return left_out(format!("{groups} groups; at most {GROUPS_MAX}"));
    }
    let label = format!("g{groups}_rows{}_{n}x{k}", groups.saturating_mul(rows));
    let members = json!({"tokens": vec![rows; groups], "n": n, "k": k, "layout": "masked",
        "rows_per_group": rows});
    Ok(Shape::new(label, members))
}

fn rope(case: &Case) -> Result<Shape, Refusal> {
    let tokens = case.size(&["num_tokens"])?;
    let (query, key) = (case.size(&["num_qo_heads"])?, case.size(&["num_kv_heads"])?);
    let (dim, rotary) = (case.size(&["head_size"])?, case.size(&["rotary_dim"])?);
    if rotary != dim {
        return left_out(format!(
            "it rotates {rotary} of {dim} elements; the bench rotates whole heads"
        ));
    }
    let label = format!("{tokens}x{query}x{key}x{dim}");
    let members = json!({"batch": 1, "sequence": tokens, "query_heads": query, "key_heads": key,
        "dim": dim});
    let mut shape = Shape::new(label, members);
    shape.note = ", positions in order".to_owned();
    Ok(shape)
}
