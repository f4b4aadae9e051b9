//! Which line is which method: entries side by side below the panels, in as many rows as they need.

use super::drawing::{Anchor, Drawing, Lettering};
use super::panel::stroke;
use super::rows::draw_key;
use super::style::Style;

const LETTERING: Lettering = Lettering::plain(12.0);
const NOTE: Lettering = Lettering::pale(11.0);
const SAMPLE: f64 = 34.0;
const GAP: f64 = 8.0;
const BETWEEN: f64 = 22.0;
const ROW: f64 = 20.0;

/// What an entry shows.
#[derive(Debug, Clone)]
pub(super) enum Sample<'a> {
    /// A line with its marker.
    Line(&'a Style),
    /// A mean with its error bar, of ours or of the paper.
    Bar { paper: bool },
}

/// Entries with their words, and a remark below them.
#[derive(Debug, Clone, Default)]
pub(super) struct Legend<'a> {
    pub(super) entries: Vec<(Sample<'a>, String)>,
    pub(super) note: String,
}

impl Legend<'_> {
    /// Where entries begin: left and top of each, within some width.
    fn places(&self, width: f64) -> Vec<(f64, f64)> {
        let (mut x, mut y) = (0.0, 0.0);
        let mut places = Vec::with_capacity(self.entries.len());
        for (_, words) in &self.entries {
            let wide = SAMPLE + GAP + LETTERING.width(words);
            if x > 0.0 && x + wide > width {
                (x, y) = (0.0, y + ROW);
            }
            places.push((x, y));
            x += wide + BETWEEN;
        }
        places
    }

    /// How much of the height it needs within some width.
    pub(super) fn height(&self, width: f64) -> f64 {
        let entries = self.places(width).last().map_or(0.0, |place| place.1 + ROW);
        entries + if self.note.is_empty() { 0.0 } else { ROW }
    }

    /// Draws it with its left upper corner at (0, 0).
    pub(super) fn draw(&self, drawing: &mut Drawing, width: f64) {
        for ((sample, words), (x, y)) in self.entries.iter().zip(self.places(width)) {
            let middle = y + ROW / 2.0;
            match sample {
                Sample::Line(style) => {
                    stroke(drawing, &[(x, middle), (x + SAMPLE, middle)], style);
                    style.marker.draw(drawing, (x + SAMPLE / 2.0, middle), &style.colour, style.hollow);
                }
                Sample::Bar { paper } => draw_key(drawing, (x + GAP / 2.0, middle), SAMPLE - GAP, *paper),
            }
            drawing.text((x + SAMPLE + GAP, middle + 4.0), Anchor::Start, LETTERING, words);
        }
        if !self.note.is_empty() {
            let base = self.height(width) - ROW / 2.0 + 4.0;
            drawing.text((0.0, base), Anchor::Start, NOTE, &self.note);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_fit_the_width_and_never_meet() {
        let names = ["PSGD", "EW, theory step", "one policy for everybody", "random", "cutting planes, Chebyshev"];
        let entries = names.map(|name| (Sample::Bar { paper: false }, name.to_owned()));
        let legend = Legend { entries: entries.into(), note: "a note".into() };
        for width in [200.0, 400.0, 1200.0] {
            let places = legend.places(width);
            let ends: Vec<f64> =
                places.iter().zip(names).map(|(place, name)| place.0 + SAMPLE + GAP + LETTERING.width(name)).collect();
            assert!(ends.iter().zip(&places).all(|(end, place)| *end <= width || place.0 == 0.0), "{width}: {ends:?}");
            let apart = |i: usize| places[i].1 > places[i - 1].1 || places[i].0 > ends[i - 1];
            assert!((1..names.len()).all(apart), "{places:?}");
            assert_eq!(legend.height(width), places[4].1 + 2.0 * ROW);
        }
    }
}
