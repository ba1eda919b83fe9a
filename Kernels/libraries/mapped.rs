//! What the process has loaded so far, as listed by the loader.

use std::ffi::{c_int, c_void, CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::Error;

/// Prefixes of files that must be recorded or absent, and the variable that selects them.
const WATCHED: [(&str, &str); 9] = [
    ("libcublasLt", "CUBLASLT_LIBRARY"),
    ("libcublas", "CUBLAS_LIBRARY"),
    ("libcudart", "CUDART_LIBRARY"),
    ("libcudnn", "CUDNN_LIBRARY"),
    ("libdnnl", "ONEDNN_LIBRARY"),
    ("libnccl", "NCCL_LIBRARY"),
    ("libnvrtc", "NVRTC_LIBRARY"),
    ("libscipy_openblas", "OPENBLAS_LIBRARY"),
    ("libtransformer_engine", "TRANSFORMER_ENGINE_LIBRARY"),
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
    match unrecorded(&loaded(), &recorded) {
        None => Ok(()),
        Some((file, variable)) => Err(Error::Unrecorded {
            file: file.display().to_string(),
            variable,
        }),
    }
}

/// The files of all shared objects, with links resolved. The loader holds its lock over the whole list, whereas
/// /proc/self/maps is read in pieces and can lose an entry while another thread loads or unloads something.
pub(crate) fn loaded() -> Vec<PathBuf> {
    unsafe extern "C" fn add(
        object: *mut libc::dl_phdr_info,
        _: usize,
        files: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader hands over a valid object with a name, and `files` as it was given below.
        let (name, files) = unsafe {
            (
                CStr::from_ptr((*object).dlpi_name),
                &mut *files.cast::<Vec<PathBuf>>(),
            )
        };
        files.push(PathBuf::from(OsStr::from_bytes(name.to_bytes())));
        0
    }
    let mut files: Vec<PathBuf> = Vec::new();
    // SAFETY: `add` does not unwind but for want of memory, and `files` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut files).cast()) };
    let resolve = |file: PathBuf| file.canonicalize().unwrap_or(file);
    files.into_iter().map(resolve).collect()
}

fn unrecorded<'a>(loaded: &'a [PathBuf], recorded: &[PathBuf]) -> Option<(&'a Path, &'static str)> {
    loaded
        .iter()
        .filter_map(|file| Some((file.as_path(), watched(file)?)))
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
        let graph = PathBuf::from("/a folder/libcudnn_graph.so.9");
        let nvrtc = PathBuf::from("/other/libnvrtc.so.13");
        let loaded = [
            PathBuf::from("/lib/libc.so.6"),
            graph.clone(),
            nvrtc.clone(),
        ];
        let found = unrecorded(&loaded, std::slice::from_ref(&graph));
        assert_eq!(found, Some((nvrtc.as_path(), "NVRTC_LIBRARY")));
        assert_eq!(unrecorded(&loaded, &[graph, nvrtc]), None);
    }

    #[test]
    fn the_loader_lists_the_c_library() {
        let loaded = loaded();
        let name = |file: &PathBuf| file.file_name().map(|name| name.to_owned());
        let names: Vec<_> = loaded.iter().filter_map(name).collect();
        assert!(names.iter().any(|name| name == "libc.so.6"), "{names:?}");
    }
}
