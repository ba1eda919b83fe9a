//! Archives built on demand for sizes that the linked ones do not have.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use on_demand::{Recipe, Store, Variant, Wanted};

use crate::{archive, Archive, Library, TritonError};

static OPENED: LazyLock<Mutex<HashMap<String, Result<Archive, TritonError>>>> =
    LazyLock::new(Mutex::default);

/// The archive that has a kernel: the linked one, or else the user's variant for its sizes.
pub fn archive_with(
    library: Library,
    arch: &str,
    kernel: &str,
    variant: Variant,
) -> Result<Archive, TritonError> {
    let linked = archive(library, arch)?;
    if linked.find(kernel).is_some() {
        return Ok(linked);
    }
    let Some(wanted) = wanted(library, arch, variant) else {
        let what = format!("{kernel} is not exported; the suites' sizes are");
        return Err(TritonError::Refused(what));
    };
    let built = open(&wanted)?;
    if built.find(kernel).is_some() {
        return Ok(built);
    }
    let refused = match &built.refused[..] {
        [] => "the recipe does not have it".to_owned(),
        refused => format!("the library refused {}", refused.join(", ")),
    };
    let what = format!("{kernel} is not in {wanted}: {refused}");
    Err(TritonError::Refused(what))
}

/// What `artifacts` is called with to build a kernel that is neither linked nor built.
pub fn missing(
    library: Library,
    arch: &str,
    kernel: &str,
    variant: Variant,
) -> Option<Vec<String>> {
    match archive_with(library, arch, kernel, variant) {
        Err(TritonError::Missing(_)) => Some(wanted(library, arch, variant)?.arguments()),
        _ => None,
    }
}

fn wanted(library: Library, arch: &str, variant: Variant) -> Option<Wanted> {
    let recipe = match library {
        Library::Liger => Recipe::Liger,
        Library::FlaNsa => return None,
    };
    recipe.version(arch)?;
    Some(Wanted::new(recipe, arch, variant))
}

/// Reads a variant, once per process.
fn open(wanted: &Wanted) -> Result<Archive, TritonError> {
    let mut opened = OPENED.lock().unwrap_or_else(|error| error.into_inner());
    let open = || {
        let built = Store::of_user().find(wanted)?;
        let (kernels, cubins) = (built.read("kernels.json")?, built.read("kernels.bin")?);
        let kernels = String::from_utf8_lossy(&kernels);
        // Loaded kernels point to their code.
        let mut archive = Archive::parse(&kernels, Vec::leak(cubins))?;
        archive.built_sha256 = Some(built.record.archive_sha256);
        Ok(archive)
    };
    let opened = opened.entry(wanted.to_string()).or_insert_with(open);
    opened.clone()
}
