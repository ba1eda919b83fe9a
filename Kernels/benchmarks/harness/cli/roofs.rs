//! The measured roofs that a run holds its times against.

use std::path::Path;

use report::Roof;
use timing::{Bandwidth, Roofs};

use crate::protocol::Machine;
use crate::UsageError;

/// Roofs from a file, or those cached for the device as it is now; empty where there are none.
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

/// The form that floors and shares are computed from.
pub fn summary(roofs: &[Roof]) -> Roofs {
    let of_unit = |unit: &'static str| roofs.iter().filter(move |roof| roof.unit == unit);
    let best = of_unit("TB/s").max_by(|a, b| a.value.total_cmp(&b.value));
    Roofs {
        bandwidth: best.map(|roof| Bandwidth {
            name: roof.name.clone(),
            tbps: roof.value,
        }),
        tflops: of_unit("TFLOP/s")
            .map(|roof| (roof.name.clone(), roof.value))
            .collect(),
    }
}
