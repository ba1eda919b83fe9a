//! Contenders that were renamed: old result files and command lines keep working.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
struct Aliases {
    /// Old names to new ones.
    contenders: BTreeMap<String, String>,
}

/// What a contender of this name is called today.
pub fn current_name(name: &str) -> &str {
    static ALIASES: OnceLock<Aliases> = OnceLock::new();
    let aliases = ALIASES.get_or_init(|| {
        serde_json::from_str(include_str!("aliases.json")).expect("aliases.json is well formed")
    });
    aliases.contenders.get(name).map_or(name, String::as_str)
}

pub(crate) fn deserialize_name<'de, D: Deserializer<'de>>(text: D) -> Result<String, D::Error> {
    Ok(current_name(&String::deserialize(text)?).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_become_current_ones_and_others_stay() {
        assert_eq!(current_name("ours_mma_sync"), "ours_portable");
        assert_eq!(current_name("quack"), "quack");
    }
}
