//! Public claims about kernels, checked against our measurements.

use crate::{ReportingError, View};
use record::markdown_table::{cell, header, line};
use record::{significant, Row, RowKey};
use serde::Deserialize;

/// The claims that come with the program.
pub const KNOWN_CLAIMS: &str = include_str!("claims.json");

/// A public claim that a kernel reaches a number on a device.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub id: String,
    pub claim: String,
    pub source: String,
    /// Part of the device's name.
    pub device: String,
    /// Rows whose op contains this, and whose contender's name contains `contender`.
    pub op: String,
    pub contender: String,
    pub metric: Metric,
    pub value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    Tflops,
    Tbps,
    RoofShare,
}

impl Metric {
    fn of(self, row: &Row) -> Option<f64> {
        match self {
            Metric::Tflops => row.metrics.tflops,
            Metric::Tbps => row.metrics.tbps,
            Metric::RoofShare => row.metrics.roof_share,
        }
    }

    fn text(self, value: f64) -> String {
        match self {
            Metric::Tflops => format!("{} TFLOP/s", significant(value, 4)),
            Metric::Tbps => format!("{} TB/s", significant(value, 4)),
            Metric::RoofShare => record::percent_text(value),
        }
    }
}

/// A claim is a best case on somebody's machine: this much less still counts.
const TOLERANCE: f64 = 0.05;

#[derive(Debug, Clone, PartialEq)]
pub enum Judgement {
    /// Reproduced on the claimed device: the best row and its number.
    Reached(String, f64),
    /// The best row falls short of the claim.
    NotReached(String, f64),
    /// Measured only on another device, which says nothing about the claim.
    OtherDevice(String, f64),
    /// No row is about it.
    NotMeasured,
}

pub fn read_claims(text: &str, origin: &str) -> Result<Vec<Claim>, ReportingError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Claims {
        claims: Vec<Claim>,
    }
    let claims = record::check_text(text).and_then(|()| serde_json::from_str(text));
    let claims: Claims = claims.map_err(|error| {
        ReportingError::input(origin, format!("is not a file of claims: {error}"))
    })?;
    Ok(claims.claims)
}

pub fn judge(claim: &Claim, views: &[View]) -> Judgement {
    let best = |on_device: bool| {
        let views = views.iter();
        views
            .filter(|view| view.file.meta.device.name.contains(&claim.device) == on_device)
            .flat_map(|view| view.file.rows.iter().map(move |row| (view, row)))
            .filter(|(_, row)| {
                row.op.contains(&claim.op) && row.contender.name.contains(&claim.contender)
            })
            .filter_map(|(view, row)| Some((view, row, claim.metric.of(row)?)))
            .max_by(|left, right| left.2.total_cmp(&right.2))
    };
    match (best(true), best(false)) {
        (Some((_, row, value)), _) if value >= claim.value * (1.0 - TOLERANCE) => {
            Judgement::Reached(RowKey::of(row).to_string(), value)
        }
        (Some((_, row, value)), _) => Judgement::NotReached(RowKey::of(row).to_string(), value),
        (None, Some((view, row, value))) => {
            Judgement::OtherDevice(format!("{}: {}", view.title, RowKey::of(row)), value)
        }
        (None, None) => Judgement::NotMeasured,
    }
}

pub fn claims_markdown(claims: &[Claim], views: &[View]) -> String {
    let mut text = format!(
        "# Public claims\n\nA claim is reached if the best row is within {} of its number.\n\n",
        record::percent_text(TOLERANCE)
    );
    text += &header(&[
        "claim",
        "device",
        "number :",
        "verdict",
        "best here :",
        "row",
        "source",
    ]);
    for claim in claims {
        let (verdict, best, row) = match judge(claim, views) {
            Judgement::Reached(row, value) => ("reached", Some(value), row),
            Judgement::NotReached(row, value) => ("not reached", Some(value), row),
            Judgement::OtherDevice(row, value) => ("other device only", Some(value), row),
            Judgement::NotMeasured => ("not measured", None, String::new()),
        };
        text += &line(&[
            cell(&claim.claim),
            cell(&claim.device),
            claim.metric.text(claim.value),
            verdict.to_owned(),
            best.map_or("-".to_owned(), |value| claim.metric.text(value)),
            cell(&row),
            cell(&claim.source),
        ]);
    }
    text
}
