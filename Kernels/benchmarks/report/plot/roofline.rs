//! Rate over arithmetic intensity, below the measured roofs.

use super::axis::{frame, LogScale, LEFT, RIGHT};
use super::svg::{Anchor, Svg};
use super::{median_us, Subject};
use record::{significant, Roof, Row};

const TOP: f64 = 100.0;
const BOTTOM: f64 = 370.0;
const POINTS_MAX: usize = 400;

pub fn scatter(subject: &Subject) -> Option<String> {
    let roofs = &subject.view.file.meta.roofs;
    let memory = highest(roofs, |roof| roof.unit == "TB/s")?;
    // The compute roof of these rows: the one they name, otherwise that of plain arithmetic.
    let named = subject.rows.iter().find_map(|row| {
        let name = row.metrics.roof.as_deref()?;
        roofs
            .iter()
            .find(|roof| roof.name == name && roof.unit == "TFLOP/s")
    });
    let typed = format!("tensor_{}", subject.rows.first()?.dtype);
    let by_name = |name: &str| roofs.iter().find(|roof| roof.name == name);
    let is_matrix = subject
        .rows
        .iter()
        .any(|row| intensity(row).is_some_and(|i| i > 20.0));
    let compute = named
        .or_else(|| by_name(&typed).filter(|_| is_matrix))
        .or_else(|| by_name("fp32"))
        .or_else(|| highest(roofs, |roof| roof.unit == "TFLOP/s"))?;
    let points = |row: &&Row| Some((intensity(row)?, row.metrics.tflops?));
    let all: Vec<(f64, f64)> = subject.rows.iter().filter_map(points).collect();
    let ridge = compute.value / memory.value;
    if all.is_empty() {
        return None;
    }
    let x = LogScale::over(all.iter().map(|(x, _)| *x).chain([ridge]), LEFT, RIGHT)?;
    let under = [compute.value, x.low() * memory.value];
    let y = LogScale::over(all.iter().map(|(_, y)| *y).chain(under), BOTTOM, TOP)?;
    let mut svg = Svg::new(
        420.0,
        &format!("{}: roofline", subject.title),
        subject.device,
    );
    frame(
        &mut svg,
        x,
        y,
        "FLOP per byte of logical input and output",
        "TFLOP/s",
    );
    let reach = |intensity: f64| y.place((intensity * memory.value).min(compute.value));
    let corners = [x.low(), ridge.clamp(x.low(), x.high()), x.high()];
    svg.path(&corners.map(|at| (x.place(at), reach(at))), "#d55e00");
    let label = |roof: &Roof| format!("{} {} {}", roof.name, significant(roof.value, 4), roof.unit);
    let above = reach(x.high()) - 6.0;
    svg.faint_text(RIGHT, above, 11.0, Anchor::End, &label(compute));
    // Below the slope, where there is room to the right.
    let middle = (x.low() * ridge.min(x.high())).sqrt();
    let (slope_x, slope_y) = (x.place(middle) + 12.0, reach(middle) + 16.0);
    svg.faint_text(slope_x, slope_y, 11.0, Anchor::Start, &label(memory));
    let series = subject.series();
    for (name, colour, rows) in &series {
        let step = rows.len().div_ceil(POINTS_MAX).max(1);
        for row in rows.iter().step_by(step) {
            let Some((intensity, rate)) = points(row) else {
                continue;
            };
            let tip = format!(
                "{name} {}/{}: {} TFLOP/s in {} us",
                row.workload.suite,
                row.workload.name,
                significant(rate, 4),
                record::time_us_text(median_us(row))
            );
            svg.dot((x.place(intensity), y.place(rate)), colour, &tip);
        }
    }
    let names: Vec<(&str, &str)> = series
        .iter()
        .map(|(name, colour, _)| (*name, *colour))
        .collect();
    svg.legend_below(&names);
    Some(svg.finish())
}

fn intensity(row: &Row) -> Option<f64> {
    let (flops, bytes) = (row.metrics.tflops?, row.metrics.tbps?);
    (flops > 0.0 && bytes > 0.0).then(|| flops / bytes)
}

fn highest(roofs: &[Roof], which: impl Fn(&Roof) -> bool) -> Option<&Roof> {
    let of = roofs.iter().filter(|roof| which(roof));
    of.max_by(|left, right| left.value.total_cmp(&right.value))
}
