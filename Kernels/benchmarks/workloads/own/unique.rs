//! An object of JSON whose members have different names, in their order.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

#[derive(Clone, Debug, PartialEq)]
pub struct Unique<V>(pub Vec<(String, V)>);

impl<V> Default for Unique<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V> Unique<V> {
    pub fn get(&self, name: &str) -> Option<&V> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }
}

/// More than any shape has.
const MEMBERS_MAX: usize = 64;

struct Members<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for Members<V> {
    type Value = Unique<V>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique<V>, A::Error> {
        let mut all = Unique::default();
        while let Some((name, value)) = map.next_entry::<String, V>()? {
            if all.get(&name).is_some() {
                return Err(A::Error::custom(format!("'{name}' is there twice")));
            }
            if all.0.len() == MEMBERS_MAX {
                return Err(A::Error::custom(format!(
                    "an object has more than {MEMBERS_MAX} members"
                )));
            }
            all.0.push((name, value));
        }
        Ok(all)
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Unique<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_there_twice_is_refused() {
        let read = serde_json::from_str::<Unique<u64>>;
        assert_eq!(read(r#"{"b": 1, "a": 2}"#).unwrap().get("a"), Some(&2));
        let error = read(r#"{"a": 1, "a": 2}"#).unwrap_err().to_string();
        assert!(error.starts_with("'a' is there twice"), "{error}");
        assert!(read("[1]").is_err());
    }
}
