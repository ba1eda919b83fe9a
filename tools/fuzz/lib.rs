//! Feeds a parser of untrusted bytes with mutations of a small corpus, for a bounded time.
//!
//! `FUZZ_SECONDS` is the time per target; `FUZZ_SEED` repeats a run. A parser fails if it panics, aborts,
//! runs out of memory or takes longer than `SLOWEST` for one input, which is then written for the corpus.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SECONDS: u64 = 5;
/// Linear work on inputs of this size takes milliseconds; the rest is for a busy machine.
const SLOWEST: Duration = Duration::from_secs(20);
const LONGEST: usize = 1 << 16;

/// The files of a folder of the source tree, whose name starts with `prefix`.
pub fn corpus(folder: &str, prefix: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(prefix))
        })
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no {prefix}* in {folder}");
    paths
        .iter()
        .map(|path| std::fs::read(path).expect("a readable file"))
        .collect()
}

/// Runs `target` on the corpus, then on mutations of it. `words` are what the format is made of.
pub fn run(name: &str, corpus: &[Vec<u8>], words: &[&str], target: impl Fn(&[u8])) {
    let number = |variable: &str| {
        let text = std::env::var(variable).ok()?;
        Some(text.parse::<u64>().expect("a number"))
    };
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let seed = number("FUZZ_SEED").unwrap_or(now.as_nanos() as u64);
    let limit = Duration::from_secs(number("FUZZ_SECONDS").unwrap_or(SECONDS));
    let mut random = Random(seed);
    let start = Instant::now();
    let mut executions = 0_u64;
    while start.elapsed() < limit || executions <= corpus.len() as u64 {
        let input = match corpus.get(executions as usize) {
            Some(seed) => seed.clone(),
            None => mutated(corpus, words, &mut random),
        };
        let began = Instant::now();
        let survived = catch_unwind(AssertUnwindSafe(|| target(&input))).is_ok();
        if !survived || began.elapsed() > SLOWEST {
            let path = keep(name, &input);
            let what = if survived {
                "took too long"
            } else {
                "panicked"
            };
            panic!(
                "{name} {what} on {} (seed {seed}, execution {executions})",
                path.display()
            );
        }
        executions += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    let rate = executions as f64 / seconds;
    workspace::say!(
        "fuzz {name}: {executions} executions in {seconds:.1} s, {rate:.0} per second, 0 crashes"
    );
}

fn keep(name: &str, input: &[u8]) -> PathBuf {
    let folder = std::env::var_os("TEST_UNDECLARED_OUTPUTS_DIR").map(PathBuf::from);
    let folder = folder.unwrap_or_else(std::env::temp_dir);
    let path = folder.join(format!("crash-{}", name.replace(' ', "-")));
    // The panic below says where it is, or would be.
    let _ = std::fs::write(Path::new(&path), input);
    path
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound.max(1) as u64) as usize
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let most = (length - start).min(1 << self.below(10));
        start..start + self.below(most + 1)
    }
}

/// Values at the edges of what a parser or its user expects.
const EDGES: [&str; 20] = [
    "0",
    "-1",
    "1e308",
    "1e-308",
    "1e999",
    "18446744073709551615",
    "-9223372036854775808",
    "NaN",
    "null",
    "\"\"",
    "[]",
    "{}",
    "\"\\u0000\"",
    "\"\\u001b[2J\"",
    "\"\\ud800\"",
    "\u{202e}",
    "../..",
    "true",
    "[[[[[[",
    "\n",
];

fn mutated(corpus: &[Vec<u8>], words: &[&str], random: &mut Random) -> Vec<u8> {
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(6) {
        let length = bytes.len();
        match random.below(9) {
            0 if length > 0 => bytes[random.below(length)] ^= 1 << random.below(8),
            1 if length > 0 => bytes[random.below(length)] = random.below(256) as u8,
            2 => drop(bytes.drain(random.range(length))),
            3 => {
                let copy = bytes[random.range(length)].to_vec();
                let times = 1 + random.below(4) * random.below(8);
                insert(&mut bytes, random.below(length + 1), &copy.repeat(times));
            }
            4 => {
                let other = &corpus[random.below(corpus.len())];
                let piece = other[random.range(other.len())].to_vec();
                insert(&mut bytes, random.below(length + 1), &piece);
            }
            5 => bytes.truncate(random.below(length + 1)),
            6 if !words.is_empty() => {
                let word = words[random.below(words.len())];
                insert(&mut bytes, random.below(length + 1), word.as_bytes());
            }
            // In place of a number or a text, so that the rest still fits.
            _ => {
                let edge = EDGES[random.below(EDGES.len())].as_bytes();
                let range = value_at(&bytes, random.below(length + 1));
                bytes.splice(range, edge.iter().copied());
            }
        }
        bytes.truncate(LONGEST);
    }
    bytes
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}

/// The next value of a JSON text after a colon, or nothing at all.
fn value_at(bytes: &[u8], from: usize) -> std::ops::Range<usize> {
    let colon = bytes[from..].iter().position(|byte| *byte == b':');
    let start = colon.map_or(from, |at| from + at + 1);
    let end = bytes[start..]
        .iter()
        .position(|byte| b",}]\n".contains(byte));
    start..end.map_or(start, |at| start + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_differ_and_reach_the_values() {
        let corpus = [b"{\"a\": 1, \"b\": [2, 3]}".to_vec(), b"{}".to_vec()];
        let mut random = Random(1);
        let all: std::collections::BTreeSet<Vec<u8>> = (0..2000)
            .map(|_| mutated(&corpus, &["\"c\""], &mut random))
            .collect();
        assert!(all.len() > 1000);
        let mut parsed = all
            .iter()
            .filter_map(|bytes| std::str::from_utf8(bytes).ok());
        assert!(parsed.any(|text| text.contains("1e308")));
    }

    #[test]
    fn a_parser_that_panics_is_found() {
        let found = catch_unwind(|| {
            run("test", &[b"{\"a\": 1}".to_vec()], &["boom"], |bytes| {
                assert!(!bytes.windows(4).any(|window| window == b"boom"));
            });
        });
        assert!(found.is_err());
    }
}
