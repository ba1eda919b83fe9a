//! Tiles with a title and a legend: one SVG for a file, or a grid that a page can wrap.
//!
//! Ink is `currentColor` and the paper has a class, so that a page can recolour both; a file is dark on white.

use super::tile::{escaped, key, Look, Tile, FONT_SIZE, WIDTH};
use std::fmt::Write;

const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Ubuntu, sans-serif";
const GAP: f64 = 16.0;
const COLUMNS: usize = 2;

pub struct Picture {
    pub title: String,
    pub subtitle: String,
    pub legend: Vec<(String, Look)>,
    pub tiles: Vec<Tile>,
}

impl Picture {
    /// A file of its own: tiles in two columns, the next one always in the shorter.
    pub fn to_svg(&self) -> String {
        let columns = self.tiles.len().clamp(1, COLUMNS);
        let width = columns as f64 * (WIDTH + GAP) + GAP;
        let (mut body, mut keys) = (String::new(), String::new());
        let mut text = |x: f64, y: f64, size: u32, text: &str| {
            writeln!(
                body,
                "<text x=\"{x:.0}\" y=\"{y:.0}\" font-size=\"{size}\">{}</text>",
                escaped(text)
            )
            .expect("a String takes any text");
        };
        text(GAP, 26.0, 16, &self.title);
        let mut y = 44.0;
        for line in wrapped(&self.subtitle, (width / 6.0) as usize) {
            text(GAP, y, 12, &line);
            y += 15.0;
        }
        let (entries, y) = self.placed_legend(y + 4.0, width);
        for (name, look, x, y) in entries {
            text(x + 14.0, y + 4.0, 12, name);
            keys += &(key(x + 5.0, y, look) + "\n");
        }
        body += &keys;
        let mut bottoms = vec![y + 18.0; columns];
        for tile in &self.tiles {
            let column = (0..columns)
                .min_by(|a, b| bottoms[*a].total_cmp(&bottoms[*b]))
                .unwrap_or(0);
            let (x, y) = (GAP + column as f64 * (WIDTH + GAP), bottoms[column]);
            write!(
                body,
                "<g transform=\"translate({x:.0} {y:.0})\">\n{}</g>\n",
                tile.with_tips()
            )
            .expect("a String takes any text");
            bottoms[column] += tile.height + GAP;
        }
        let height = bottoms.into_iter().fold(0.0, f64::max);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" color=\"#1d2733\" fill=\"currentColor\" font-family=\"{FONT}\" \
             font-size=\"{FONT_SIZE}\" role=\"img\">\n\
             <rect class=\"paper\" width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }

    /// Each entry's place, on as many lines as it takes, and the y of the last line.
    fn placed_legend(&self, top: f64, width: f64) -> (Vec<(&str, Look, f64, f64)>, f64) {
        let (mut x, mut y) = (GAP, top);
        let mut placed = Vec::new();
        for (name, look) in &self.legend {
            let room = 26.0 + 7.2 * name.chars().count() as f64;
            if x + room > width && x > GAP {
                (x, y) = (GAP, y + 18.0);
            }
            placed.push((&**name, *look, x, y));
            x += room;
        }
        (placed, y)
    }

    /// For a page, in which the view's rows begin with `first`.
    pub fn to_html(&self, first: usize) -> String {
        let mut html = format!(
            "<figure{}><figcaption><b>{}</b> {}<span class=\"legend\">",
            if self.tiles.len() == 1 {
                " class=\"single\""
            } else {
                ""
            },
            escaped(&self.title),
            escaped(&self.subtitle)
        );
        for (name, look) in &self.legend {
            let key = key(5.0, 5.0, *look);
            html += &format!(
                "<span><svg viewBox=\"0 0 10 10\" class=\"key\">{key}</svg>{}</span> ",
                escaped(name)
            );
        }
        html += "</span></figcaption><div class=\"tiles\">";
        for tile in &self.tiles {
            html += &format!(
                "<svg viewBox=\"0 0 {WIDTH} {:.0}\" fill=\"currentColor\" font-size=\"{FONT_SIZE}\" \
                 tabindex=\"0\" role=\"img\" aria-label=\"{}\">\n{}</svg>",
                tile.height,
                escaped(&tile.title),
                tile.with_rows(first)
            );
        }
        html + "</div></figure>\n"
    }
}

/// Lines of at most this many characters, broken between words.
fn wrapped(text: &str, fits: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is always a line");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > fits {
            lines.push(word.to_owned());
        } else {
            *last += if last.is_empty() { "" } else { " " };
            *last += word;
        }
    }
    lines
}
