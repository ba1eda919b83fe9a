//! Shapes of attention: their lengths are in tensors that the trace stores.

use super::case::{left_out, Case, Refusal};
use super::shape::Shape;
use serde_json::json;

/// Heads of queries and of keys, and elements of a head.
fn heads(case: &Case) -> Result<[usize; 3], Refusal> {
    let heads = case.size(&["num_qo_heads"])?;
    let kv_heads = case.size(&["num_kv_heads"])?;
    let head_dim = case.size(&["head_dim"])?;
    if !heads.is_multiple_of(kv_heads) {
        return left_out(format!(
            "{heads} heads are not a multiple of {kv_heads} KV heads"
        ));
    }
    Ok([heads, kv_heads, head_dim])
}

/// Cached tokens of each sequence: its pages, of which the last may be part full.
fn cached(case: &Case, page_size: usize) -> Result<Vec<usize>, Refusal> {
    let pages = case.lengths("kv_indptr")?;
    if page_size == 1 {
        return Ok(pages);
    }
    if !case.has_input("kv_last_page_len") {
        return left_out(format!(
            "pages of {page_size} tokens and no 'kv_last_page_len': its lengths are unknown"
        ));
    }
    let last = case.integers("kv_last_page_len")?;
    // Some definitions pad it to the length of the offsets.
    if last.len() < pages.len() {
        return left_out(format!(
            "{} sequences but {} elements in 'kv_last_page_len'",
            pages.len(),
            last.len()
        ));
    }
    let token = |(&pages, &last): (&usize, &i64)| match usize::try_from(last) {
        _ if pages == 0 => Ok(0),
        Ok(last) if (1..=page_size).contains(&last) => {
            let full = (pages - 1).checked_mul(page_size);
            let tokens = full.and_then(|full| full.checked_add(last));
            tokens.ok_or_else(|| Refusal::LeftOut(format!("{pages} pages of {page_size} tokens")))
        }
        _ => left_out(format!(
            "a last page of {last} tokens; pages have {page_size}"
        )),
    };
    pages.iter().zip(&last).map(token).collect()
}

/// The lengths of a batch that decodes one token per sequence.
fn decoded(case: &Case, page_size: usize) -> Result<Vec<usize>, Refusal> {
    let lengths = cached(case, page_size)?;
    if let Some(sequence) = lengths.iter().position(|&length| length == 0) {
        return left_out(format!("sequence {sequence} has no cached tokens"));
    }
    let queries = case.size(&["batch_size", "total_q"])?;
    if queries != lengths.len() {
        return left_out(format!("{queries} queries of {} sequences", lengths.len()));
    }
    Ok(lengths)
}

fn total(lengths: &[usize]) -> usize {
    lengths
        .iter()
        .fold(0, |sum, &length| sum.saturating_add(length))
}

/// The type of a cache as the benches' shapes name it.
fn kv_dtype(case: &Case, queries: &str, keys: &str) -> Result<&'static str, Refusal> {
    let inputs = &case.definition.inputs;
    match (inputs.get(queries), inputs.get(keys)) {
        (Some(queries), Some(keys)) if queries.dtype != keys.dtype => {
            match keys.bench_dtype().map_err(Refusal::LeftOut)? {
                "fp8_e4m3" => Ok("fp8_e4m3"),
                other => left_out(format!("keys of type {other} and queries of another")),
            }
        }
        _ => Ok("same"),
    }
}

pub fn decode(case: &Case) -> Result<Shape, Refusal> {
    let [heads, kv_heads, head_dim] = heads(case)?;
    let page_size = case.size(&["page_size"])?;
    let kv_dtype = kv_dtype(case, "q", "k_cache")?;
    let axes = case
        .definition
        .inputs
        .get("k_cache")
        .and_then(|keys| keys.shape.as_deref())
        .unwrap_or_default();
    let place = |name| axes.iter().position(|axis| axis == name);
    let layout = match (place("num_kv_heads"), place("page_size")) {
        (Some(head), Some(token)) if head < token => "hnd",
        _ => "nhd",
    };
    let lengths = decoded(case, page_size)?;
    let label = format!("b{}_kv{}", lengths.len(), total(&lengths));
    let members = json!({"lengths": lengths, "heads": heads, "kv_heads": kv_heads,
        "head_dim": head_dim, "page_size": page_size, "layout": layout, "kv_dtype": kv_dtype});
    Ok(Shape::new(label, members))
}

pub fn mla_decode(case: &Case) -> Result<Shape, Refusal> {
    let heads = case.size(&["num_qo_heads"])?;
    let page_size = case.size(&["page_size"])?;
    let width = [case.size(&["head_dim_ckv"])?, case.size(&["head_dim_kpe"])?];
    if width != [512, 64] {
        let [latent, rotary] = width;
        return left_out(format!(
            "{latent} latent and {rotary} rotary elements; the bench has 512 and 64"
        ));
    }
    let lengths = decoded(case, page_size)?;
    let label = format!("b{}_kv{}", lengths.len(), total(&lengths));
    let members = json!({"lengths": lengths, "heads": heads, "page_size": page_size,
        "kv_dtype": kv_dtype(case, "q_nope", "ckv_cache")?});
    Ok(Shape::new(label, members))
}

pub fn ragged_prefill(case: &Case) -> Result<Shape, Refusal> {
    let kv_lens = case.lengths("kv_indptr")?;
    prefill(case, kv_lens)
}

/// The bench keeps keys and values in one piece.
pub fn paged_prefill(case: &Case) -> Result<Shape, Refusal> {
    let page_size = case.size(&["page_size"])?;
    let mut shape = prefill(case, cached(case, page_size)?)?;
    shape.note = format!(", there in pages of {page_size}");
    Ok(shape)
}

fn prefill(case: &Case, kv_lens: Vec<usize>) -> Result<Shape, Refusal> {
    let [heads, kv_heads, head_dim] = heads(case)?;
    let q_lens = case.lengths("qo_indptr")?;
    let mut words = case.definition.name.split('_');
    // FlashInfer-Bench names what a definition fixes.
    let causal = match words.find(|word| matches!(*word, "causal" | "noncausal")) {
        Some(word) => word == "causal",
        None => return left_out("its name says neither 'causal' nor 'noncausal'"),
    };
    if q_lens.len() != kv_lens.len() {
        return left_out(format!(
            "{} sequences of queries and {} of keys",
            q_lens.len(),
            kv_lens.len()
        ));
    }
    for (sequence, (&queries, &keys)) in q_lens.iter().zip(&kv_lens).enumerate() {
        if (causal && queries > keys) || (queries > 0 && keys == 0) {
            return left_out(format!(
                "sequence {sequence} has {queries} queries and {keys} keys"
            ));
        }
    }
    let (queries, keys) = (total(&q_lens), total(&kv_lens));
    if queries == 0 {
        return left_out("no sequence has a query");
    }
    let label = format!("b{}_q{queries}_kv{keys}", q_lens.len());
    let members = json!({"q_lens": q_lens, "kv_lens": kv_lens, "heads": heads,
        "kv_heads": kv_heads, "head_dim": head_dim, "causal": causal});
    Ok(Shape::new(label, members))
}
