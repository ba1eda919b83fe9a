//! What the process has loaded so far, as listed by the OS.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::Error;

/// Prefixes of files that must be recorded or absent, and the variable that selects them.
const WATCHED: [(&str, &str); 3] = [
    ("libcublas", "CUBLASLT_LIBRARY"),
    ("libcudnn", "CUDNN_LIBRARY"),
    ("libnvrtc", "NVRTC_LIBRARY"),
];

/// Files that were opened here, with links resolved.
static RECORDED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

pub(crate) fn remember(files: &[PathBuf]) {
    let real = files.iter().filter_map(|file| file.canonicalize().ok());
    let mut recorded = RECORDED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    recorded.extend(real);
}

/// Checks that all parts of these libraries in the process are the recorded ones: they open each
/// other by name, which can pick up another copy. Call this after they have planned.
pub fn only_recorded() -> Result<(), Error> {
    let recorded = RECORDED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    match unrecorded(&maps, &recorded) {
        None => Ok(()),
        Some((file, variable)) => Err(Error::Unrecorded {
            file: file.display().to_string(),
            variable,
        }),
    }
}

fn unrecorded<'a>(maps: &'a str, recorded: &[PathBuf]) -> Option<(&'a Path, &'static str)> {
    let files: BTreeMap<&Path, &'static str> = maps
        .lines()
        .filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])))
        .filter_map(|file| Some((file, watched(file)?)))
        .collect();
    files
        .into_iter()
        .find(|(file, _)| !recorded.iter().any(|ours| ours == file))
}

fn watched(file: &Path) -> Option<&'static str> {
    let name = file.file_name()?.to_str()?;
    let found = WATCHED.iter().find(|(stem, _)| name.starts_with(stem));
    found.map(|(_, variable)| *variable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_copy_is_found() {
        let maps = "7f01-7f02 r-xp 0 08:01 77 /lib/libc.so.6\n\
                    7f03-7f04 r--p 0 08:01 78 /a folder/libcudnn_graph.so.9\n\
                    7f05-7f06 rw-p 0 00:00 0 [heap]\n\
                    7f07-7f08 r-xp 0 08:01 79 /other/libnvrtc.so.13\n";
        let graph = PathBuf::from("/a folder/libcudnn_graph.so.9");
        let nvrtc = PathBuf::from("/other/libnvrtc.so.13");
        let found = unrecorded(maps, std::slice::from_ref(&graph));
        assert_eq!(found, Some((nvrtc.as_path(), "NVRTC_LIBRARY")));
        assert_eq!(unrecorded(maps, &[graph, nvrtc]), None);
    }
}
