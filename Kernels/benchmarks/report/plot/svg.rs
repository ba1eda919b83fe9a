//! Writing SVG.

use std::fmt::Write;

pub const WIDTH: f64 = 720.0;
/// The text font; the rasteriser has its own.
pub const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Ubuntu, sans-serif";

#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

pub struct Svg {
    body: String,
    height: f64,
}

impl Svg {
    /// A sheet with a title line and a smaller one below it.
    pub fn new(height: f64, title: &str, subtitle: &str) -> Svg {
        let mut svg = Svg {
            body: String::new(),
            height,
        };
        svg.text(16.0, 26.0, 16.0, Anchor::Start, title);
        svg.faint_text(16.0, 44.0, 12.0, Anchor::Start, subtitle);
        svg
    }

    fn push(&mut self, element: std::fmt::Arguments) {
        writeln!(self.body, "{element}").expect("a String takes any text");
    }

    pub fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, text: &str) {
        self.any_text(x, y, size, anchor, text, 1.0);
    }

    pub fn faint_text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, text: &str) {
        self.any_text(x, y, size, anchor, text, 0.65);
    }

    fn any_text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, text: &str, opacity: f64) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" \
             fill=\"currentColor\" fill-opacity=\"{opacity}\">{}</text>",
            escaped(text)
        ));
    }

    /// A line of the axes and the grid.
    pub fn rule(&mut self, from: (f64, f64), to: (f64, f64), opacity: f64) {
        self.push(format_args!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"currentColor\" \
             stroke-opacity=\"{opacity}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        self.push(format_args!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" \
             stroke-width=\"{width}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    pub fn path(&mut self, points: &[(f64, f64)], colour: &str) {
        let mut d = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            write!(d, "{command}{x:.1} {y:.1}").expect("a String takes any text");
        }
        self.push(format_args!(
            "<path d=\"{d}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" \
             stroke-opacity=\"0.7\"/>"
        ));
    }

    pub fn dot(&mut self, at: (f64, f64), colour: &str, tip: &str) {
        self.push(format_args!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{colour}\" \
             fill-opacity=\"0.85\"><title>{}</title></circle>",
            at.0,
            at.1,
            escaped(tip)
        ));
    }

    pub fn rect(&mut self, at: (f64, f64), size: (f64, f64), colour: &str, tip: &str) {
        self.push(format_args!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\" \
             fill=\"{colour}\"><title>{}</title></rect>",
            at.0,
            at.1,
            size.0.max(0.5),
            size.1.max(0.5),
            escaped(tip)
        ));
    }

    /// Text on a coloured cell, whatever the page's ink.
    pub fn label(&mut self, x: f64, y: f64, colour: &str, text: &str) {
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"11\" text-anchor=\"middle\" \
             fill=\"{colour}\">{}</text>",
            escaped(text)
        ));
    }

    /// Names and colours, on lines from `y` down; returns the y below them.
    pub fn legend(&mut self, y: f64, entries: &[(&str, &str)]) -> f64 {
        let (mut x, mut y) = (16.0, y);
        for (name, colour) in entries {
            let width = 26.0 + 7.2 * name.chars().count() as f64;
            if x + width > WIDTH {
                (x, y) = (16.0, y + 18.0);
            }
            self.rect((x, y - 9.0), (10.0, 10.0), colour, name);
            self.text(x + 15.0, y, 12.0, Anchor::Start, name);
            x += width;
        }
        y + 10.0
    }

    /// The legend below everything drawn so far, where any number of lines fits.
    pub fn legend_below(&mut self, entries: &[(&str, &str)]) {
        let below = self.legend(self.height + 14.0, entries);
        self.set_height(below);
    }

    pub fn set_height(&mut self, height: f64) {
        self.height = height;
    }

    pub fn finish(self) -> String {
        let Svg { body, height } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
             width=\"{WIDTH}\" height=\"{height:.0}\" color=\"#1d2733\" font-family=\"{FONT}\" \
             role=\"img\">\n<rect class=\"paper\" width=\"{WIDTH}\" height=\"{height:.0}\" \
             fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }
}

pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
