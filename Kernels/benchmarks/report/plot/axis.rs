//! Scales from values to positions, their ticks, and how sizes are written on them.

/// Evenly in logarithms.
#[derive(Clone, Copy)]
pub struct LogScale {
    pub low: f64,
    pub high: f64,
    from: f64,
    to: f64,
}

impl LogScale {
    /// Covers all values with this factor of room; none if there is nothing to cover.
    pub fn over(
        values: impl Iterator<Item = f64>,
        room: f64,
        from: f64,
        to: f64,
    ) -> Option<LogScale> {
        let usable = values.filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = usable.fold((f64::INFINITY, 0.0f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        (high > 0.0).then(|| LogScale {
            low: low / room,
            high: high * room,
            from,
            to,
        })
    }

    pub fn place(self, value: f64) -> f64 {
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        self.from + share * (self.to - self.from)
    }

    /// Round values, as many as fit: at worst some powers of ten.
    pub fn ticks(self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let steps: &[f64] = match decades {
            ..=0.8 => &[1.0, 1.5, 2.0, 3.0, 5.0],
            ..=2.0 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let every = (decades / 6.0).ceil().max(1.0) as i32;
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        (first..=last)
            .filter(|power| power.rem_euclid(every) == 0)
            .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)))
            .filter(|tick| (self.low..=self.high).contains(tick))
            .collect()
    }
}

/// From zero to `high`, so that a difference looks as large as it is.
#[derive(Clone, Copy)]
pub struct ZeroScale {
    pub high: f64,
    pub from: f64,
    pub to: f64,
}

impl ZeroScale {
    pub fn place(self, value: f64) -> f64 {
        self.from + value / self.high * (self.to - self.from)
    }

    /// Three to six round values.
    pub fn ticks(self) -> Vec<f64> {
        let raw = self.high / 4.0;
        let power = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power);
        let step = step.into_iter().find(|step| *step >= raw).unwrap_or(raw);
        (0..)
            .map(|index| f64::from(index) * step)
            .take_while(|tick| *tick <= self.high)
            .take(8)
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

/// A size as people say it: 16384 is `16k`.
pub fn size_text(size: i64) -> String {
    const KILO: i64 = 1 << 10;
    const MEGA: i64 = 1 << 20;
    match size {
        size if size >= MEGA && size % MEGA == 0 => format!("{}M", size / MEGA),
        size if size >= KILO && size % KILO == 0 => format!("{}k", size / KILO),
        size if size >= 100 * KILO => short(size as f64),
        size => size.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_people_say_them() {
        assert_eq!(
            [512, 2048, 2112, 1 << 20].map(size_text),
            ["512", "2k", "2112", "1M"]
        );
    }

    #[test]
    fn a_scale_from_zero_has_round_ticks() {
        let ticks = |high: f64| {
            ZeroScale {
                high,
                from: 0.0,
                to: 1.0,
            }
            .ticks()
        };
        assert_eq!(ticks(4.3), [0.0, 2.0, 4.0]);
        assert_eq!(ticks(936.0), [0.0, 250.0, 500.0, 750.0]);
    }
}
