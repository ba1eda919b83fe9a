//! A share of the workloads, to spread a run over several machines.

use std::fmt;
use std::str::FromStr;

/// `2/4`: every fourth workload, starting with the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl Shard {
    /// Whether the workload at this index of the whole list belongs to this shard.
    pub fn takes(self, place: usize) -> bool {
        place % self.count == self.index - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text
            .split_once('/')
            .and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match numbers {
            Some((index, count)) if 1 <= index && index <= count => Ok(Shard { index, count }),
            _ => Err(format!(
                "'{text}' is not a shard: expected I/N, such as 1/4 to 4/4 for four shards"
            )),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_share_everything_and_overlap_nowhere() {
        let shards = ["1/3", "2/3", "3/3"].map(|text| text.parse::<Shard>().unwrap());
        for place in 0..20 {
            let takers = shards.iter().filter(|shard| shard.takes(place)).count();
            assert_eq!(takers, 1, "place {place}");
        }
        assert_eq!(shards[1].to_string(), "2/3");
    }

    #[test]
    fn what_is_no_shard_is_refused() {
        for text in ["0/3", "4/3", "1", "a/b", "1/0", "-1/2", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
