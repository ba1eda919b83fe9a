//! Logarithmic axes and the frame around a plot.

use super::svg::{Anchor, Svg, WIDTH};

/// A logarithmic scale from values to positions on the sheet.
#[derive(Clone, Copy)]
pub struct LogScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LogScale {
    /// Covers all values with a little room; none if there is nothing to cover.
    pub fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<LogScale> {
        let usable = values.filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = usable.fold((f64::INFINITY, 0.0f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        (high > 0.0).then(|| LogScale {
            low: low / 1.25,
            high: high * 1.25,
            from,
            to,
        })
    }

    pub fn place(self, value: f64) -> f64 {
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        self.from + share * (self.to - self.from)
    }

    pub fn high(self) -> f64 {
        self.high
    }

    pub fn low(self) -> f64 {
        self.low
    }

    /// Round values, as many as fit: at worst some powers of ten.
    fn ticks(self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let steps: &[f64] = match decades {
            ..=0.8 => &[1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
            ..=2.5 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let every = (decades / 8.0).ceil().max(1.0) as i32;
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        (first..=last)
            .filter(|power| power.rem_euclid(every) == 0)
            .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)))
            .filter(|tick| (self.low..=self.high).contains(tick))
            .collect()
    }
}

/// `0.5`, `20`, `5k`, `2M`.
pub fn short(value: f64) -> String {
    let (scaled, unit) = match value {
        value if value >= 1e9 => (value / 1e9, "G"),
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e4 => (value / 1e3, "k"),
        value => (value, ""),
    };
    let text = record::significant(scaled, 3);
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    text + unit
}

/// Edges of the drawing area.
pub const LEFT: f64 = 64.0;
pub const RIGHT: f64 = WIDTH - 20.0;

/// Grid, ticks and titles of both axes.
pub fn frame(svg: &mut Svg, x: LogScale, y: LogScale, x_title: &str, y_title: &str) {
    let (bottom, top) = (y.from, y.to);
    for tick in x.ticks() {
        let at = x.place(tick);
        svg.rule((at, bottom), (at, top), 0.1);
        svg.faint_text(at, bottom + 16.0, 11.0, Anchor::Middle, &short(tick));
    }
    for tick in y.ticks() {
        let at = y.place(tick);
        svg.rule((LEFT, at), (RIGHT, at), 0.1);
        svg.faint_text(LEFT - 6.0, at + 4.0, 11.0, Anchor::End, &short(tick));
    }
    svg.rule((LEFT, bottom), (RIGHT, bottom), 0.5);
    svg.rule((LEFT, bottom), (LEFT, top), 0.5);
    svg.faint_text(RIGHT, bottom + 34.0, 12.0, Anchor::End, x_title);
    svg.faint_text(16.0, top - 10.0, 12.0, Anchor::Start, y_title);
}
