//! The measured roofs that a run checks its times against.

use std::path::Path;

use record::Roof;
use timing::{Bandwidth, Roofs};

use crate::protocol::Machine;
use crate::UsageError;

/// Roofs from a file, or those cached for this device and its settings; empty if there are none.
pub fn load(file: Option<&Path>, machine: &Machine) -> Result<Vec<Roof>, UsageError> {
    let Some(path) = file else {
        return Ok(roofline::load(&machine.info, &machine.state));
    };
    let unusable = |why: String| {
        UsageError(format!(
            "--roofs {}: {why}; bench_roofline --json writes one",
            path.display()
        ))
    };
    let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))
}

/// The form used to compute floors and shares.
pub fn summary(roofs: &[Roof]) -> Roofs {
    let of_unit = |unit: &'static str| roofs.iter().filter(move |roof| roof.unit == unit);
    Roofs {
        bandwidths: of_unit("TB/s")
            .map(|roof| Bandwidth {
                name: roof.name.clone(),
                tbps: roof.value,
                written_share: written_share(&roof.name),
            })
            .collect(),
        tflops: of_unit("TFLOP/s")
            .map(|roof| (roof.name.clone(), roof.value))
            .collect(),
    }
}

/// The traffic of a memory roof, by its name: `hbm_read`, `hbm_triad`, `hbm_copy`, `hbm_memcpy`.
fn written_share(name: &str) -> f64 {
    match name.rsplit('_').next() {
        Some("read") => 0.0,
        Some("triad") => 1.0 / 3.0,
        _ => 0.5,
    }
}
