//! Matrix products to and from workload files.

use contender::{FileShape, Shape, Workload};
use serde::{Deserialize, Serialize};

use super::grouped_suites::GroupedGemmSuite;
use super::shape::{GemmShape, GroupKind, RowLayout};
use super::suites::GemmSuite;
use crate::given;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Dense {
    m: usize,
    n: usize,
    k: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Grouped {
    /// Rows of each group.
    tokens: Vec<usize>,
    n: usize,
    k: usize,
    layout: Layout,
    /// Space for every group of a masked layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rows_per_group: Option<usize>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Layout {
    Contiguous,
    Masked,
}

impl FileShape<RowLayout> for GemmShape {
    fn from_file(shape: &Shape, _: Option<&str>) -> Result<(Self, RowLayout, Workload), String> {
        if !shape.contains_key("tokens") {
            let Dense { m, n, k } = given::parse(shape)?;
            check(m, n, k)?;
            return Ok(GemmSuite::custom(m, n, k));
        }
        let Grouped {
            tokens,
            n,
            k,
            layout,
            rows_per_group,
        } = given::parse(shape)?;
        let rows = given::total("tokens", &tokens)?;
        if rows == 0 {
            return Err("all groups are empty".to_owned());
        }
        check(rows, n, k)?;
        let layout = match (layout, rows_per_group) {
            (Layout::Contiguous, None) => RowLayout::contiguous(tokens),
            (Layout::Masked, Some(most)) => {
                if let Some(rows) = tokens.iter().find(|rows| **rows > most) {
                    return Err(format!(
                        "a group of {rows} rows, but rows_per_group is {most}"
                    ));
                }
                let all = [
                    ("groups", tokens.len()),
                    ("rows", most),
                    ("columns", n.max(k)),
                ];
                given::check_sizes(&all)?;
                RowLayout::masked(tokens, most)
            }
            (Layout::Contiguous, Some(_)) => {
                return Err("rows_per_group belongs to a masked layout only".to_owned());
            }
            (Layout::Masked, None) => {
                return Err("a masked layout needs rows_per_group".to_owned());
            }
        };
        given::check_sizes(&[("groups", layout.groups()), ("n", n), ("k", k)])?;
        Ok(GroupedGemmSuite::given(GemmShape { n, k }, layout))
    }

    fn to_file(&self, rows: &RowLayout) -> Shape {
        let GemmShape { n, k } = *self;
        let layout = match rows.kind {
            GroupKind::Dense => return given::written(&Dense { m: rows.rows, n, k }),
            GroupKind::Contiguous => (Layout::Contiguous, None),
            GroupKind::Masked => (Layout::Masked, Some(rows.rows / rows.groups())),
        };
        given::written(&Grouped {
            tokens: rows.tokens.clone(),
            n,
            k,
            layout: layout.0,
            rows_per_group: layout.1,
        })
    }
}

fn check(m: usize, n: usize, k: usize) -> Result<(), String> {
    given::check_sizes(&[("m", m), ("n", n)])?;
    given::check_sizes(&[("m", m), ("k", k)])?;
    given::check_sizes(&[("n", n), ("k", k)])
}
