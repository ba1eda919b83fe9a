//! Rows that belong in one table: same device, build and protocol.

use crate::Collection;
use record::{Meta, ResultFile};

/// What rows must share to be in one table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    pub device: String,
    pub build: String,
    /// Cache, launch, timer, verification.
    pub protocol: String,
}

impl Place {
    pub fn of(meta: &Meta) -> Place {
        let git = meta.git.as_ref().map_or("unknown".to_owned(), |git| {
            let dirty = if git.dirty { "-dirty" } else { "" };
            format!("{}{dirty}", git.commit)
        });
        let lock = meta.artifact_lock_sha256.as_deref().unwrap_or("none");
        let protocol = &meta.protocol;
        let verified = if protocol.verify { "" } else { ", unverified" };
        let steady = protocol.steady_ms.map_or("", |_| ", steady state");
        Place {
            device: meta.device.name.clone(),
            build: format!("{git} {} {lock}", code_of(meta)),
            protocol: format!(
                "{:?} cache, {:?} launch, {:?} timer{steady}{verified}",
                protocol.cache, protocol.launch, protocol.timer
            )
            .to_lowercase(),
        }
    }
}

/// The SM whose code ran: of a build for several the device's own.
fn code_of(meta: &Meta) -> &str {
    let own = &meta.device.arch;
    let mut built = meta.build.arch.split('+');
    built.find(|sm| sm == own).unwrap_or(&meta.build.arch)
}

/// The rows of one place as a result file.
#[derive(Debug, Clone)]
pub struct View {
    pub title: String,
    pub file: ResultFile,
    /// Files that the rows came from.
    pub origins: Vec<String>,
    pub metas: Vec<Meta>,
}

/// All views, in the order of their first run.
pub fn views(collection: Collection) -> Vec<View> {
    let mut places: Vec<Place> = Vec::new();
    let mut views: Vec<View> = Vec::new();
    for run in collection.runs {
        let place = Place::of(&run.file.meta);
        match places.iter().position(|known| *known == place) {
            Some(index) => {
                let view = &mut views[index];
                join(&mut view.file.meta, &run.file.meta);
                view.metas.push(run.file.meta);
                view.file.rows.extend(run.file.rows);
                view.origins.push(run.origin);
            }
            None => {
                views.push(View {
                    title: String::new(),
                    metas: vec![run.file.meta.clone()],
                    file: run.file,
                    origins: vec![run.origin],
                });
                places.push(place);
            }
        }
    }
    for (index, view) in views.iter_mut().enumerate() {
        record::add_missing_best(&mut view.file);
        view.title = title(&places, index);
    }
    views
}

/// The device, plus whatever is needed to tell views apart.
fn title(places: &[Place], index: usize) -> String {
    let place = &places[index];
    let rivals = || {
        let others = places.iter().enumerate().filter(|(at, _)| *at != index);
        others
            .map(|(_, other)| other)
            .filter(|other| other.device == place.device)
    };
    let mut title = place.device.clone();
    if rivals().any(|other| other.build != place.build) {
        let build: String = place.build.chars().take(10).collect();
        title += &format!(", build {}", build.trim_end());
    }
    if rivals().any(|other| other.protocol != place.protocol) {
        title += &format!(", {}", place.protocol);
    }
    title
}

/// The combined meta of several runs, from the first start to the last end.
fn join(meta: &mut Meta, other: &Meta) {
    if !meta
        .program
        .split(", ")
        .any(|program| program == other.program)
    {
        meta.program += &format!(", {}", other.program);
    }
    meta.argv = vec!["several runs, merged".to_owned()];
    meta.complete &= other.complete;
    meta.started_at = meta.started_at.clone().min(other.started_at.clone());
    meta.ended_at = match (meta.ended_at.take(), other.ended_at.clone()) {
        (Some(ours), Some(theirs)) => Some(ours.max(theirs)),
        _ => None,
    };
    for roof in &other.roofs {
        if !meta.roofs.iter().any(|known| known.name == roof.name) {
            meta.roofs.push(roof.clone());
        }
    }
    for warning in &other.warnings {
        if !meta.warnings.contains(warning) {
            meta.warnings.push(warning.clone());
        }
    }
    for (step, seconds) in &other.spent_s {
        *meta.spent_s.entry(step.clone()).or_default() += seconds;
    }
}
