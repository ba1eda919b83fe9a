//! The operations of a model's step, each with its shape and how often it runs.

use super::Model;

/// Which tokens a step processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// All tokens of new prompts.
    Prefill,
    /// One new token of each sequence.
    Decode,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Phase::Prefill => "prefill",
            Phase::Decode => "decode",
        }
    }
}

/// One operation of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub name: &'static str,
    pub op: String,
    /// Shapes as `choose` takes them: the first that was measured counts.
    pub shapes: Vec<String>,
    /// Runs per step.
    pub runs: u64,
    /// Whether it belongs to the layers, not to the ends of the model.
    pub in_layers: bool,
}

/// Sizes of pages that servers use, the most usual first.
const PAGES: [u64; 4] = [16, 64, 32, 128];

struct Parts(Vec<Part>);

impl Parts {
    fn add(&mut self, runs: u64, name: &'static str, op: &str, shape: String) {
        self.any_of(runs, name, op, vec![shape]);
    }

    fn any_of(&mut self, runs: u64, name: &'static str, op: &str, shapes: Vec<String>) {
        if runs > 0 {
            self.0.push(Part {
                name,
                op: op.to_owned(),
                shapes,
                runs,
                in_layers: true,
            });
        }
    }

    fn gemm(&mut self, runs: u64, name: &'static str, m: u64, n: u64, k: u64) {
        self.add(runs, name, "gemm", format!("m={m},n={n},k={k}"));
    }

    fn rows(&mut self, runs: u64, name: &'static str, op: &str, rows: u64, columns: u64) {
        self.add(runs, name, op, format!("rows={rows},columns={columns}"));
    }
}

/// The parts of one step, in order. Embedding, sampling, communication and gaps between kernels are not in it.
pub fn parts(model: &Model, phase: Phase, batch: u64, context: u64) -> Vec<Part> {
    let (layers, hidden) = (model.layers, model.hidden);
    let tokens = match phase {
        Phase::Prefill => batch * context,
        Phase::Decode => batch,
    };
    let mut parts = Parts(Vec::new());
    let norm = if model.norms_around {
        "rmsnorm_fwd"
    } else {
        "fused_add_rmsnorm"
    };
    parts.rows(layers, "norm before attention", norm, tokens, hidden);
    match &model.latent {
        None => heads_attention(&mut parts, model, phase, batch, context),
        Some(_) => latent_attention(&mut parts, model, phase, batch, context),
    }
    if model.norms_around {
        parts.rows(layers, "norm after attention", norm, tokens, hidden);
    }
    parts.rows(layers, "norm before feed-forward", norm, tokens, hidden);
    feed_forward(&mut parts, model, tokens);
    if model.norms_around {
        parts.rows(layers, "norm after feed-forward", norm, tokens, hidden);
    }
    let inside = parts.0.len();
    parts.rows(1, "last norm", "rmsnorm_fwd", tokens, hidden);
    parts.gemm(1, "logits", batch, model.vocabulary, hidden);
    parts.0[inside..]
        .iter_mut()
        .for_each(|part| part.in_layers = false);
    parts.0
}

fn heads_attention(parts: &mut Parts, model: &Model, phase: Phase, batch: u64, context: u64) {
    let Model {
        layers,
        hidden,
        heads,
        kv_heads,
        head_dim,
        ..
    } = *model;
    let (sequence, tokens) = match phase {
        Phase::Prefill => (context, batch * context),
        Phase::Decode => (1, batch),
    };
    let rope_layers = model.rope_layers.unwrap_or(layers);
    parts.gemm(
        layers,
        "query, key, value",
        tokens,
        (heads + 2 * kv_heads) * head_dim,
        hidden,
    );
    if model.head_norms {
        let rows = tokens * (heads + kv_heads);
        parts.rows(rope_layers, "head norms", "rmsnorm_fwd", rows, head_dim);
    }
    let rope = format!(
        "batch={batch},sequence={sequence},query_heads={heads},key_heads={kv_heads},dim={head_dim}"
    );
    parts.add(rope_layers, "rope", "rope_fwd", rope);
    let all = format!("heads={heads},kv_heads={kv_heads},head_dim={head_dim}");
    let attention = match phase {
        Phase::Prefill => vec![format!(
            "batch={batch},q_len={context},cache_len=0,causal=true,{all}"
        )],
        Phase::Decode => {
            let shape = |page| {
                format!("batch={batch},context={context},q_len=1,layout=nhd,page_size={page},{all}")
            };
            PAGES.map(shape).to_vec()
        }
    };
    let windowed = model
        .window
        .as_ref()
        .filter(|window| context > window.tokens);
    let windowed_layers = windowed.map_or(0, |window| window.layers);
    let op = phase.name();
    parts.any_of(layers - windowed_layers, "attention", op, attention.clone());
    if let Some(window) = windowed {
        let shapes = attention
            .iter()
            .map(|shape| format!("{shape},window={}", window.tokens));
        parts.any_of(
            windowed_layers,
            "attention in a window",
            op,
            shapes.collect(),
        );
    }
    parts.gemm(
        layers,
        "output projection",
        tokens,
        hidden,
        heads * head_dim,
    );
}

fn latent_attention(parts: &mut Parts, model: &Model, phase: Phase, batch: u64, context: u64) {
    let Model {
        layers,
        hidden,
        heads,
        ..
    } = *model;
    let Some(latent) = &model.latent else { return };
    let (sequence, tokens) = match phase {
        Phase::Prefill => (context, batch * context),
        Phase::Decode => (1, batch),
    };
    let plain = model.head_dim - latent.rope;
    parts.gemm(
        layers,
        "down to the ranks",
        tokens,
        latent.query_rank + latent.rank + latent.rope,
        hidden,
    );
    parts.rows(
        layers,
        "norm of queries",
        "rmsnorm_fwd",
        tokens,
        latent.query_rank,
    );
    parts.rows(
        layers,
        "norm of the latent",
        "rmsnorm_fwd",
        tokens,
        latent.rank,
    );
    parts.gemm(
        layers,
        "queries",
        tokens,
        heads * model.head_dim,
        latent.query_rank,
    );
    let rope = format!(
        "batch={batch},sequence={sequence},query_heads={heads},key_heads=1,dim={}",
        latent.rope
    );
    parts.add(layers, "rope", "rope_fwd", rope);
    match phase {
        Phase::Decode => {
            let each = |n: u64, k: u64| format!("batch={heads},m={tokens},n={n},k={k}");
            parts.add(
                layers,
                "queries into the latent",
                "batched_gemm",
                each(latent.rank, plain),
            );
            let shape = |page| {
                format!("batch={batch},context={context},q_len=1,heads={heads},page_size={page}")
            };
            parts.any_of(
                layers,
                "latent attention",
                "mla_decode",
                [64, 32].map(shape).to_vec(),
            );
            parts.add(
                layers,
                "values out of the latent",
                "batched_gemm",
                each(latent.value, latent.rank),
            );
        }
        Phase::Prefill => {
            parts.gemm(
                layers,
                "keys and values",
                tokens,
                heads * (plain + latent.value),
                latent.rank,
            );
            // An axis only where values are not as wide as keys.
            let values = match latent.value == model.head_dim {
                true => String::new(),
                false => format!(",value_dim={}", latent.value),
            };
            let all = format!("heads={heads},kv_heads={heads},head_dim={}", model.head_dim);
            let shape =
                format!("batch={batch},q_len={context},cache_len=0,causal=true,{all}{values}");
            parts.add(layers, "attention", "prefill", shape);
        }
    }
    parts.gemm(
        layers,
        "output projection",
        tokens,
        hidden,
        heads * latent.value,
    );
}

fn feed_forward(parts: &mut Parts, model: &Model, tokens: u64) {
    let (hidden, act) = (model.hidden, model.activation.as_str());
    let dense_layers = model
        .experts
        .as_ref()
        .map_or(model.layers, |experts| experts.dense_layers);
    parts.gemm(
        dense_layers,
        "gate and up",
        tokens,
        2 * model.intermediate,
        hidden,
    );
    parts.rows(dense_layers, "activation", act, tokens, model.intermediate);
    parts.gemm(dense_layers, "down", tokens, hidden, model.intermediate);
    let Some(experts) = &model.experts else {
        return;
    };
    let (layers, width) = (model.layers - dense_layers, experts.intermediate);
    let routed = tokens * experts.per_token;
    parts.gemm(layers, "router", tokens, experts.count, hidden);
    let routing = format!(
        "tokens={tokens},experts={},per_token={}",
        experts.count, experts.per_token
    );
    parts.add(layers, "routing and permutation", "moe_routing", routing);
    let grouped = |n: u64, k: u64| format!("tokens={routed},groups={},n={n},k={k}", experts.count);
    parts.add(
        layers,
        "experts' gate and up",
        "grouped_gemm",
        grouped(2 * width, hidden),
    );
    parts.rows(layers, "experts' activation", act, routed, width);
    parts.add(
        layers,
        "experts' down",
        "grouped_gemm",
        grouped(hidden, width),
    );
    if experts.shared > 0 {
        let width = width * experts.shared;
        parts.gemm(layers, "shared gate and up", tokens, 2 * width, hidden);
        parts.rows(layers, "shared activation", act, tokens, width);
        parts.gemm(layers, "shared down", tokens, hidden, width);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::find_model;

    fn shapes(name: &str, phase: Phase, batch: u64, context: u64, op: &str) -> Vec<(u64, String)> {
        let parts = parts(&find_model(name).unwrap(), phase, batch, context);
        let of_op = parts.into_iter().filter(|part| part.op == op);
        of_op
            .map(|mut part| (part.runs, part.shapes.remove(0)))
            .collect()
    }

    /// The projections that `workloads/gemm/suites.rs` has of these models.
    #[test]
    fn projections_are_those_of_the_suites() {
        let llama = shapes("llama-3.1-8b", Phase::Decode, 16, 8192, "gemm");
        let sides = [
            "6144,k=4096",
            "4096,k=4096",
            "28672,k=4096",
            "4096,k=14336",
            "128256,k=4096",
        ];
        let expected: Vec<String> = sides.iter().map(|side| format!("m=16,n={side}")).collect();
        assert_eq!(
            llama
                .iter()
                .map(|(_, shape)| shape.clone())
                .collect::<Vec<_>>(),
            expected
        );
        assert_eq!(
            llama.iter().map(|(runs, _)| *runs).collect::<Vec<_>>(),
            [32, 32, 32, 32, 1]
        );
        let large = shapes("llama-3.1-70b", Phase::Prefill, 1, 8192, "gemm");
        for side in ["10240,k=8192", "57344,k=8192", "8192,k=28672"] {
            assert!(
                large.contains(&(80, format!("m=8192,n={side}"))),
                "{large:?}"
            );
        }
        let deep = shapes("deepseek-v3", Phase::Prefill, 1, 4096, "gemm");
        for (runs, side) in [
            (61, "2112,k=7168"),
            (61, "24576,k=1536"),
            (61, "32768,k=512"),
            (61, "7168,k=16384"),
            (58, "4096,k=7168"),
            (58, "7168,k=2048"),
            (3, "36864,k=7168"),
        ] {
            assert!(
                deep.contains(&(runs, format!("m=4096,n={side}"))),
                "{side}: {deep:?}"
            );
        }
    }

    #[test]
    fn windows_count_only_where_the_context_is_longer() {
        let full = |context| shapes("gpt-oss-120b", Phase::Decode, 8, context, "decode");
        assert_eq!(
            full(128).iter().map(|(runs, _)| *runs).collect::<Vec<_>>(),
            [36]
        );
        let long = full(8192);
        assert_eq!(
            long.iter().map(|(runs, _)| *runs).collect::<Vec<_>>(),
            [18, 18]
        );
        assert!(long[1].1.ends_with("window=128"));
        assert_eq!(
            shapes("kimi-k2", Phase::Decode, 8, 8192, "mla_decode")[0].0,
            61
        );
        assert_eq!(
            shapes("gemma-3-27b", Phase::Decode, 8, 8192, "rmsnorm_fwd")[0].0,
            62
        );
    }
}
