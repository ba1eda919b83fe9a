//! A translation unit's PTX, and which of several SMs it is emulated for.

use std::sync::OnceLock;

/// What an object registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    Text(String),
    /// It has PTX, but not for the SM that is emulated, by its number.
    Elsewhere(u32),
    /// There is no PTX that can be read, and why.
    Unreadable(String),
}

impl Unit {
    /// Of the texts in a fat binary, that of the SM that is emulated; the first where nobody has chosen one.
    pub fn new(texts: Result<Vec<String>, String>, emulated: Option<u32>) -> Self {
        let texts = match texts {
            Ok(texts) => texts,
            Err(reason) => return Self::Unreadable(reason),
        };
        let wanted = |text: &&String| emulated.is_none() || target(text) == emulated;
        match (texts.iter().find(wanted), emulated) {
            (Some(text), _) => Self::Text(text.clone()),
            (None, Some(sm)) => Self::Elsewhere(sm),
            (None, None) => Self::Unreadable("a fat binary without PTX".to_owned()),
        }
    }

    pub fn text(&self) -> Result<&str, String> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Elsewhere(sm) => Err(format!("no PTX for sm_{sm}a, which is emulated")),
            Self::Unreadable(reason) => Err(reason.clone()),
        }
    }
}

/// The number of the SM that a text is for: 90 or 100.
pub fn target(text: &str) -> Option<u32> {
    let mut lines = text.lines();
    let target = lines.find_map(|line| line.trim().strip_prefix(".target"))?;
    number(target.trim())
}

/// 90 of `sm_90a` and of `sm_90a, debug`.
fn number(sm: &str) -> Option<u32> {
    let digits = sm.strip_prefix("sm_")?;
    let end = digits.find(|it: char| !it.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())].parse().ok()
}

/// The SM that `EMULATED_SM` names, for programs that are built for several.
///
/// # Panics
/// If it names none.
pub fn emulated_sm() -> Option<u32> {
    static CHOSEN: OnceLock<Option<u32>> = OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let name = std::env::var_os("EMULATED_SM")?;
        let known = ["sm_90a", "sm_100a"];
        let chosen = known.into_iter().find(|known| name == *known);
        assert!(
            chosen.is_some(),
            "EMULATED_SM is {name:?}: expected {}",
            known.join(" or ")
        );
        number(chosen?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(targets: &[&str], emulated: Option<u32>) -> Unit {
        let text = |target: &&str| format!(".version 9.0\n.target {target}\n");
        Unit::new(Ok(targets.iter().map(text).collect()), emulated)
    }

    #[test]
    fn the_emulated_sm_is_chosen() {
        let both = ["sm_90a", "sm_100a, debug"];
        for (emulated, sm) in [(None, 90), (Some(90), 90), (Some(100), 100)] {
            assert_eq!(target(of(&both, emulated).text().unwrap()), Some(sm));
        }
    }

    #[test]
    fn what_is_not_for_it_is_refused_where_it_is_used() {
        let unit = of(&["sm_90a"], Some(100));
        assert_eq!(unit, Unit::Elsewhere(100));
        assert!(unit.text().unwrap_err().contains("no PTX for sm_100a"));
        let unreadable = Unit::new(Err("compressed".to_owned()), Some(100));
        assert_eq!(unreadable.text().unwrap_err(), "compressed");
        assert!(of(&[], None).text().is_err());
        assert_eq!(target("no target"), None);
    }
}
