//! One small drawing: what pictures are made of, as wide as a phone.

use std::fmt::Write;

pub const WIDTH: f64 = 340.0;
/// Of most texts: a picture has it for all.
pub const FONT_SIZE: f64 = 10.0;

const DOT: f64 = 3.5;
const UNFILLED: &str = " fill=\"none\"";

fn radius(radius: f64) -> String {
    format!(" r=\"{radius}\"")
}

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

/// An element in parts.
struct Piece {
    /// Its name and attributes of its own, as `circle cx="1"`.
    start: String,
    /// Attributes that a group around it and its neighbours may have instead.
    inherited: String,
    inside: Inside,
}

enum Inside {
    Nothing,
    Text(String),
    About(About),
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

    fn push(&mut self, start: String, inherited: String, inside: Inside) {
        self.pieces.push(Piece {
            start,
            inherited,
            inside,
        });
    }

    pub fn text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, text: &str) {
        self.any_text(at, size, anchor, text, "");
    }

    pub fn faint_text(&mut self, at: (f64, f64), anchor: Anchor, text: &str) {
        self.any_text(at, FONT_SIZE, anchor, text, " fill-opacity=\".72\"");
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
        let size = match size == FONT_SIZE {
            true => String::new(),
            false => format!(" font-size=\"{size}\""),
        };
        self.push(
            format!("text x=\"{x:.0}\" y=\"{y:.0}\""),
            format!("{size}{anchor}{more}"),
            Inside::Text(escaped(text)),
        );
    }

    /// Lines of the axes or the grid, all in one element.
    pub fn rules(&mut self, lines: &[Rule], opacity: f64) {
        let mut d = String::new();
        for (from, to) in lines {
            write!(d, "M{:.0} {:.0}L{:.0} {:.0}", from.0, from.1, to.0, to.1)
                .expect("a String takes any text");
        }
        let inherited = format!("{UNFILLED} stroke=\"currentColor\" stroke-opacity=\"{opacity}\"");
        self.push(format!("path d=\"{d}\""), inherited, Inside::Nothing);
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
        let inherited = format!("{UNFILLED} stroke=\"{colour}\" stroke-width=\"{width}\"{dashes}");
        self.push(format!("path d=\"{d}\""), inherited, Inside::Nothing);
    }

    pub fn dot(&mut self, (x, y): (f64, f64), look: Look, about: About) {
        let inherited = format!(" fill=\"{}\"", look.colour);
        self.push(shape(x, y, DOT, look), inherited, Inside::About(about));
    }

    pub fn rect(&mut self, at: (f64, f64), size: (f64, f64), colour: &str, about: About) {
        let (width, height) = (size.0.max(0.5), size.1.max(0.5));
        let start = format!(
            "rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"2\"",
            at.0, at.1
        );
        self.push(start, format!(" fill=\"{colour}\""), Inside::About(about));
    }

    /// For a file that stands alone: marks say what they are.
    pub fn with_tips(&self) -> String {
        self.shown(|about| tip(&about.tip))
    }

    /// For a page: marks name their rows, of which `first` is the view's first.
    pub fn with_rows(&self, first: usize) -> String {
        self.shown(|about| match about.row {
            Some(row) => (format!(" data-row=\"{}\"", first + row), String::new()),
            None => tip(&about.tip),
        })
        .replace('\n', "")
        // What the page's style says of all of them.
        .replace(&radius(DOT), "")
        .replace(UNFILLED, "")
    }

    /// `about` gives a mark's further attribute and its contents.
    fn shown(&self, about: impl Fn(&About) -> (String, String)) -> String {
        let mut shown = String::new();
        for alike in self
            .pieces
            .chunk_by(|one, other| one.inherited == other.inherited)
        {
            let (around, each) = match alike {
                [alone] => ("", &*alone.inherited),
                [first, ..] => (&*first.inherited, ""),
                [] => continue,
            };
            if !around.is_empty() {
                shown += &format!("<g{around}>\n");
            }
            for piece in alike {
                let (more, inside) = match &piece.inside {
                    Inside::Nothing => Default::default(),
                    Inside::Text(text) => (String::new(), text.clone()),
                    Inside::About(of) => about(of),
                };
                shown += &element(&piece.start, &format!("{each}{more}"), &inside);
            }
            if !around.is_empty() {
                shown += "</g>\n";
            }
        }
        shown
    }
}

fn tip(text: &str) -> (String, String) {
    (String::new(), format!("<title>{}</title>", escaped(text)))
}

fn element(start: &str, more: &str, inside: &str) -> String {
    let name = start.split(' ').next().unwrap_or(start);
    match inside {
        "" => format!("<{start}{more}/>\n"),
        _ => format!("<{start}{more}>{inside}</{name}>\n"),
    }
}

/// A contender's mark but for its colour.
fn shape(x: f64, y: f64, radius: f64, look: Look) -> String {
    match look.square {
        false => format!("circle cx=\"{x:.1}\" cy=\"{y:.1}\"{}", self::radius(radius)),
        true => {
            let (left, top, side) = (x - radius, y - radius, 2.0 * radius);
            format!("rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{side}\" height=\"{side}\"")
        }
    }
}

/// A contender's mark for a legend.
pub fn key(x: f64, y: f64, look: Look) -> String {
    format!("<{} fill=\"{}\"/>", shape(x, y, 4.5, look), look.colour)
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
