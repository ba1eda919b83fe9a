//! Today's open models: `models.json`, one line each with its source, and how to find one in it.

use serde::Deserialize;

const MODELS: &str = include_str!("models.json");

/// A decoder; all counts are of the whole model on one device.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    pub name: String,
    /// Where all of its numbers come from.
    pub source: String,
    pub layers: u64,
    pub hidden: u64,
    pub heads: u64,
    pub kv_heads: u64,
    pub head_dim: u64,
    /// Width of the dense feed-forward layers.
    pub intermediate: u64,
    pub vocabulary: u64,
    /// Queries and keys are normalised, head by head.
    #[serde(default)]
    pub head_norms: bool,
    /// Norms after attention and feed-forward as well as before.
    #[serde(default)]
    pub norms_around: bool,
    /// The operation between the projections of the feed-forward layers.
    #[serde(default = "silu")]
    pub activation: String,
    /// Layers with rotary embeddings, if not all.
    pub rope_layers: Option<u64>,
    pub experts: Option<Experts>,
    pub latent: Option<Latent>,
    pub window: Option<Window>,
}

fn silu() -> String {
    "silu_and_mul".to_owned()
}

/// A mixture of experts, in all layers but the first dense ones.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experts {
    pub count: u64,
    pub per_token: u64,
    pub intermediate: u64,
    pub shared: u64,
    pub dense_layers: u64,
}

/// Multi-head latent attention: ranks of queries and of keys and values, dimensions of rope and values.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latent {
    pub query_rank: u64,
    pub rank: u64,
    pub rope: u64,
    pub value: u64,
}

/// Layers that attend to the last tokens only.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    pub layers: u64,
    pub tokens: u64,
}

pub fn known_models() -> Vec<Model> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Known {
        models: Vec<Model>,
    }
    let known: Known = serde_json::from_str(MODELS).expect("models.json is sound");
    known.models
}

/// The error names all models that there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is not a known model; there are {known}")]
pub struct UnknownModel {
    name: String,
    known: String,
}

pub fn find_model(name: &str) -> Result<Model, UnknownModel> {
    let models = known_models();
    match models.iter().find(|model| model.name == name) {
        Some(model) => Ok(model.clone()),
        None => {
            let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
            Err(UnknownModel {
                name: name.to_owned(),
                known: names.join(", "),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_is_consistent_and_named_once() {
        let models = known_models();
        for model in &models {
            assert_eq!(model.heads % model.kv_heads, 0, "{}", model.name);
            assert!(
                model.source.starts_with("config.json of "),
                "{}",
                model.name
            );
            assert!(model
                .experts
                .as_ref()
                .is_none_or(|experts| experts.dense_layers < model.layers));
            assert!(model
                .window
                .as_ref()
                .is_none_or(|window| window.layers < model.layers));
            assert_eq!(
                models
                    .iter()
                    .filter(|other| other.name == model.name)
                    .count(),
                1
            );
        }
        assert!(find_model("llama-9")
            .unwrap_err()
            .to_string()
            .contains("llama-3.1-8b"));
    }
}
