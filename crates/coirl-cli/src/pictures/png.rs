//! Pictures as PNG, at twice their size, with letters of a font inside the program: the same on every machine.

use crate::failure::Failure;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};
use std::sync::Arc;

/// Pixels for each unit of a drawing.
const DENSITY: f32 = 2.0;

/// The PNG of an SVG; of an animated one, its still picture.
pub(crate) fn png_of(svg: &str) -> Result<Vec<u8>, Failure> {
    let mut options = Options { font_family: "DejaVu Sans".into(), ..Options::default() };
    let fonts = Arc::make_mut(&mut options.fontdb);
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    let refused = |reason: String| Failure::refused(format!("drawing a PNG: {reason}"));
    let tree = Tree::from_str(svg, &options).map_err(|error| refused(error.to_string()))?;
    let size = tree.size().to_int_size().scale_by(DENSITY);
    let mut pixels = size.and_then(|size| Pixmap::new(size.width(), size.height())).ok_or_else(|| {
        refused(format!("{} × {} is no size of a picture", tree.size().width(), tree.size().height()))
    })?;
    resvg::render(&tree, Transform::from_scale(DENSITY, DENSITY), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| refused(error.to_string()))
}
