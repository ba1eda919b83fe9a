//! SVG to PNG.

use crate::ReportingError;
use resvg::{tiny_skia, usvg};
use std::sync::Arc;

/// Pixels per unit: sharp on high-density screens.
const SCALE: f32 = 2.0;

/// Renders an SVG with a bundled font, so that every machine makes the same picture.
pub fn to_png(svg: &str) -> Result<Vec<u8>, ReportingError> {
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
    let options = usvg::Options {
        font_family: "Ubuntu".to_owned(),
        fontdb: Arc::new(fonts),
        ..usvg::Options::default()
    };
    let failed = |problem: &dyn std::fmt::Display| {
        ReportingError::input("a plot", format!("cannot be drawn: {problem}"))
    };
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| failed(&error))?;
    let size = tree.size().to_int_size().scale_by(SCALE);
    let size = size.ok_or_else(|| failed(&"it has no size"))?;
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height())
        .ok_or_else(|| failed(&"it is too large"))?;
    let scale = tiny_skia::Transform::from_scale(SCALE, SCALE);
    resvg::render(&tree, scale, &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| failed(&error))
}
