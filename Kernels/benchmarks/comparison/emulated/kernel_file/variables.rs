//! The files that the BUILD file names in variables.

use std::fs;
use std::path::PathBuf;

pub fn variable(name: &str) -> String {
    std::env::var(name).expect("the BUILD file sets it")
}

pub fn file(path: &str) -> PathBuf {
    fs::canonicalize(path).expect("the BUILD file names it")
}

/// The file of an example with this ending, for the SM that is emulated.
pub fn read(example: &str, ending: &str) -> String {
    let others = match variable("EMULATED_SM").as_str() {
        "sm_90a" => "_100a",
        _ => "_90a",
    };
    let paths = variable(example);
    let is_wanted = |path: &&str| path.ends_with(ending) && !path.contains(others);
    let path = paths.split(' ').find(is_wanted);
    fs::read_to_string(file(path.expect("one of each"))).expect("it is text")
}
