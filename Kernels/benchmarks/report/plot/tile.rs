//! One small drawing: what pictures are made of, as wide as a phone.

use std::fmt::Write;

pub const WIDTH: f64 = 340.0;

#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A line from one place to another.
pub type Rule = ((f64, f64), (f64, f64));

/// How a contender is drawn everywhere in a picture.
#[derive(Clone, Copy, PartialEq)]
pub struct Look {
    pub colour: &'static str,
    pub square: bool,
}

/// What a mark is about: words for a file, a row for a page, which knows more.
pub struct About {
    pub tip: String,
    pub row: Option<usize>,
}

enum Piece {
    Plain(String),
    /// An element without its end, and what it is about.
    Mark(String, &'static str, About),
}

pub struct Tile {
    pub title: String,
    pub height: f64,
    pieces: Vec<Piece>,
}

impl Tile {
    pub fn new(title: &str, height: f64) -> Tile {
        let mut tile = Tile {
            title: title.to_owned(),
            height,
            pieces: Vec::new(),
        };
        tile.text((4.0, 14.0), 12.0, Anchor::Start, &shortened(title, 54));
        tile
    }

    fn plain(&mut self, element: std::fmt::Arguments) {
        self.pieces.push(Piece::Plain(element.to_string()));
    }

    pub fn text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, text: &str) {
        self.any_text(at, size, anchor, text, "");
    }

    pub fn faint_text(&mut self, at: (f64, f64), anchor: Anchor, text: &str) {
        self.any_text(at, 10.0, anchor, text, " fill-opacity=\".72\"");
    }

    /// Text in its own colour, whatever the page's ink.
    pub fn label(&mut self, at: (f64, f64), colour: &str, text: &str) {
        self.any_text(
            at,
            10.0,
            Anchor::Middle,
            text,
            &format!(" fill=\"{colour}\""),
        );
    }

    fn any_text(&mut self, (x, y): (f64, f64), size: f64, anchor: Anchor, text: &str, more: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        self.plain(format_args!(
            "<text x=\"{x:.0}\" y=\"{y:.0}\" font-size=\"{size}\"{anchor}{more}>{}</text>",
            escaped(text)
        ));
    }

    /// Lines of the axes or the grid, all in one element.
    pub fn rules(&mut self, lines: &[Rule], opacity: f64) {
        let mut d = String::new();
        for (from, to) in lines {
            write!(d, "M{:.0} {:.0}L{:.0} {:.0}", from.0, from.1, to.0, to.1)
                .expect("a String takes any text");
        }
        self.plain(format_args!(
            "<path d=\"{d}\" fill=\"none\" stroke=\"currentColor\" stroke-opacity=\"{opacity}\"/>"
        ));
    }

    pub fn path(&mut self, points: &[(f64, f64)], colour: &str, width: f64, dashed: bool) {
        let mut d = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            write!(d, "{command}{x:.1} {y:.1}").expect("a String takes any text");
        }
        let dashes = if dashed {
            " stroke-dasharray=\"4 3\""
        } else {
            ""
        };
        self.plain(format_args!(
            "<path d=\"{d}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dashes}/>"
        ));
    }

    pub fn dot(&mut self, (x, y): (f64, f64), look: Look, about: About) {
        let (open, close) = shape(x, y, 3.5, look);
        self.pieces.push(Piece::Mark(open, close, about));
    }

    pub fn rect(&mut self, at: (f64, f64), size: (f64, f64), colour: &str, about: About) {
        let (width, height) = (size.0.max(0.5), size.1.max(0.5));
        let open = format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"2\" fill=\"{colour}\"",
            at.0, at.1
        );
        self.pieces.push(Piece::Mark(open, "</rect>", about));
    }

    /// For a file that stands alone: marks say what they are.
    pub fn with_tips(&self) -> String {
        self.shown(|about| format!("><title>{}</title>", escaped(&about.tip)))
    }

    /// For a page: marks name their rows, of which `first` is the view's first.
    pub fn with_rows(&self, first: usize) -> String {
        self.shown(|about| match about.row {
            Some(row) => format!(" data-row=\"{}\">", first + row),
            None => format!("><title>{}</title>", escaped(&about.tip)),
        })
    }

    fn shown(&self, about: impl Fn(&About) -> String) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Plain(element) => element.clone() + "\n",
            Piece::Mark(open, close, of) => format!("{open}{}{close}\n", about(of)),
        };
        self.pieces.iter().map(piece).collect()
    }
}

/// A contender's mark, without the end of its first tag.
fn shape(x: f64, y: f64, radius: f64, look: Look) -> (String, &'static str) {
    let colour = look.colour;
    match look.square {
        false => (
            format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\""),
            "</circle>",
        ),
        true => {
            let (left, top, side) = (x - radius, y - radius, 2.0 * radius);
            let at = format!("x=\"{left:.1}\" y=\"{top:.1}\"");
            let open = format!("<rect {at} width=\"{side}\" height=\"{side}\" fill=\"{colour}\"");
            (open, "</rect>")
        }
    }
}

/// A contender's mark for a legend.
pub fn key(x: f64, y: f64, look: Look) -> String {
    let (open, close) = shape(x, y, 4.5, look);
    format!("{open}>{close}")
}

/// A text that fits: names differ at both ends, so the middle goes.
pub fn shortened(text: &str, fits: usize) -> String {
    let count = text.chars().count();
    if count <= fits {
        return text.to_owned();
    }
    let (head, tail) = (fits / 2, fits - fits / 2 - 1);
    let start = text.chars().take(head);
    start
        .chain(['…'])
        .chain(text.chars().skip(count - tail))
        .collect()
}

pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
