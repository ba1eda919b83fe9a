//! What differs between the machines and builds behind two sets of runs.

use crate::Collection;
use record::{Library, Meta, Roof};
use std::collections::{BTreeMap, BTreeSet};

/// Roofs that differ by less count as equal.
const ROOF_MARGIN: f64 = 0.01;

/// Of all runs that name theirs.
pub fn cards(collection: &Collection) -> BTreeSet<&str> {
    let metas = collection.runs.iter().map(|run| &run.file.meta);
    metas
        .filter_map(|meta| meta.gpu.as_ref()?.uuid.as_deref())
        .collect()
}

/// One line per difference, `what: base -> new`.
pub fn differences(base: &Collection, new: &Collection) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, of) in FACTS {
        let values = |collection: &Collection| -> BTreeSet<String> {
            let metas = collection.runs.iter().map(|run| &run.file.meta);
            metas
                .map(|meta| of(meta).unwrap_or_else(|| "unknown".to_owned()))
                .collect()
        };
        let (old, now) = (values(base), values(new));
        if old != now {
            let text = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(", ");
            lines.push(format!("{name}: {} -> {}", text(old), text(now)));
        }
    }
    lines.extend(libraries(base, new));
    lines.extend(roofs(base, new));
    lines
}

type Fact = (&'static str, fn(&Meta) -> Option<String>);

const FACTS: [Fact; 18] = [
    ("device", |meta| Some(meta.device.name.clone())),
    ("card", |meta| meta.gpu.as_ref()?.uuid.clone()),
    ("driver", |meta| meta.driver.clone()),
    ("CUDA", |meta| meta.cuda.clone()),
    ("clocks locked", |meta| {
        Some(meta.gpu.as_ref()?.clocks_locked?.to_string())
    }),
    ("application clock", |meta| {
        Some(format!("{} MHz", meta.gpu.as_ref()?.clock_application_mhz?))
    }),
    ("maximum clock", |meta| {
        Some(format!("{} MHz", meta.gpu.as_ref()?.clock_max_mhz?))
    }),
    ("power limit", |meta| {
        Some(format!("{} W", meta.gpu.as_ref()?.power_limit_w?))
    }),
    ("ECC", |meta| Some(meta.gpu.as_ref()?.ecc?.to_string())),
    ("artifacts", |meta| {
        Some(short(meta.artifact_lock_sha256.as_ref()?))
    }),
    ("commit", |meta| {
        let git = meta.git.as_ref()?;
        let dirty = if git.dirty { " with changes" } else { "" };
        Some(format!("{}{dirty}", short(&git.commit)))
    }),
    ("tracer", |meta| Some(meta.libraries.first()?.to_string())),
    ("architecture", |meta| Some(meta.build.arch.clone())),
    ("nvcc", |meta| meta.build.nvcc.clone()),
    ("rustc", |meta| meta.build.rustc.clone()),
    ("host", |meta| Some(meta.host.clone())),
    ("system", |meta| Some(meta.os.clone())),
    ("budget", |meta| {
        let protocol = &meta.protocol;
        let fixed = protocol
            .rounds_fixed
            .map(|rounds| format!(", {rounds} rounds"));
        Some(format!(
            "{} ms per workload after {} ms of warm-up{}",
            protocol.budget_ms,
            protocol.warmup_ms,
            fixed.unwrap_or_default()
        ))
    }),
];

fn short(text: &str) -> String {
    text.chars().take(12).collect()
}

/// Libraries that contenders loaded, if the two sides ran different bytes. A side that does not
/// record what it loaded ran something unknown.
fn libraries(base: &Collection, new: &Collection) -> Vec<String> {
    let (old, now) = (loaded(base), loaded(new));
    let mut lines = Vec::new();
    for (contender, libraries) in &old {
        let Some(later) = now
            .get(contender)
            .filter(|later| bytes(later) != bytes(libraries))
        else {
            continue;
        };
        let text = |libraries: &Vec<Library>| match libraries.is_empty() {
            true => "not recorded".to_owned(),
            false => {
                let texts: Vec<String> = libraries.iter().map(ToString::to_string).collect();
                texts.join(", ")
            }
        };
        lines.push(format!(
            "libraries of {contender}: {} -> {}",
            text(libraries),
            text(later)
        ));
    }
    lines
}

/// By contender, each once.
fn loaded(collection: &Collection) -> BTreeMap<&str, Vec<Library>> {
    let mut found: BTreeMap<&str, Vec<Library>> = BTreeMap::new();
    for row in collection.runs.iter().flat_map(|run| &run.file.rows) {
        let libraries = found.entry(&row.contender.name).or_default();
        for library in &row.contender.libraries {
            if !libraries.contains(library) {
                libraries.push(library.clone());
            }
        }
    }
    found
}

fn bytes(libraries: &[Library]) -> BTreeSet<&BTreeMap<String, String>> {
    libraries.iter().map(|library| &library.files).collect()
}

/// A machine whose measured roofs changed is not the same machine.
fn roofs(base: &Collection, new: &Collection) -> Vec<String> {
    let of = |collection: &Collection| -> Vec<Roof> {
        let runs = collection.runs.iter();
        runs.flat_map(|run| run.file.meta.roofs.clone()).collect()
    };
    let (old, now) = (of(base), of(new));
    let mut lines: Vec<String> = Vec::new();
    for roof in &old {
        let Some(later) = now.iter().find(|later| later.name == roof.name) else {
            continue;
        };
        let line = format!(
            "roof {}: {} -> {} {}",
            roof.name,
            record::significant(roof.value, 4),
            record::significant(later.value, 4),
            roof.unit
        );
        if (later.value / roof.value - 1.0).abs() > ROOF_MARGIN && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}
