//! Shared by all families of suites: names, and the error for an unknown one.

use std::collections::BTreeMap;

use contender::{Suite, Workload};
use serde_json::Value;

/// A name that is not a suite of the family.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown suite '{name}'; use one of {}", names(known))]
pub struct UnknownSuite {
    pub name: String,
    pub known: &'static [Suite],
}

fn names(suites: &[Suite]) -> String {
    let names: Vec<&str> = suites.iter().map(|suite| suite.name).collect();
    names.join(", ")
}

/// Axes of a workload.
pub fn axes<'a, V: Into<Value>>(
    entries: impl IntoIterator<Item = (&'a str, V)>,
) -> BTreeMap<String, Value> {
    entries
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect()
}

/// A workload of a suite; its axes are all numbers that define the shape.
pub fn workload(
    suite: impl ToString,
    name: impl Into<String>,
    provenance: &str,
    axes: BTreeMap<String, Value>,
) -> Workload {
    Workload {
        name: name.into(),
        suite: suite.to_string(),
        provenance: provenance.to_owned(),
        axes,
        ..Workload::default()
    }
}

/// Declares a family of suites: an enum whose values have a name, for command lines and results, and
/// a one-line description.
macro_rules! suites {
    ($(#[$attribute:meta])* pub enum $Family:ident { $($Suite:ident($name:literal, $about:literal),)+ }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $Family {
            $($Suite,)+
        }

        impl $Family {
            /// Names and descriptions, in the order of the values.
            pub const SUITES: &'static [contender::Suite] =
                &[$(contender::Suite { name: $name, about: $about },)+];

            pub fn all() -> impl Iterator<Item = Self> {
                [$(Self::$Suite,)+].into_iter()
            }
        }

        impl std::fmt::Display for $Family {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(Self::SUITES[*self as usize].name)
            }
        }

        impl std::str::FromStr for $Family {
            type Err = $crate::suite::UnknownSuite;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                let named = |suite: &Self| Self::SUITES[*suite as usize].name == name;
                Self::all().find(named).ok_or_else(|| $crate::suite::UnknownSuite {
                    name: name.to_owned(),
                    known: Self::SUITES,
                })
            }
        }
    };
}
pub(crate) use suites;

#[cfg(test)]
mod tests {
    suites! {
        pub enum Colours {
            Red("red", "one shape"),
            DarkBlue("dark_blue", "two shapes"),
        }
    }

    #[test]
    fn names_go_both_ways_and_others_are_refused() {
        for colour in Colours::all() {
            assert_eq!(colour.to_string().parse(), Ok(colour));
        }
        assert_eq!(Colours::DarkBlue.to_string(), "dark_blue");
        let error = "blue".parse::<Colours>().unwrap_err().to_string();
        assert_eq!(error, "unknown suite 'blue'; use one of red, dark_blue");
    }
}
