//! Shapes and text of an SVG drawing. Text enters escaped, numbers with two decimals, and every element is closed.

use crate::text::escaped;
use std::fmt::Write;

/// The font of the PNG, those of the same widths, and what there is.
const FONTS: &str = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";
/// Of text.
pub(super) const INK: &str = "#1a1a1a";
/// Of remarks.
pub(super) const PALE_INK: &str = "#555555";

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Frame {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Frame {
    pub(super) fn right(self) -> f64 {
        self.x + self.width
    }

    pub(super) fn bottom(self) -> f64 {
        self.y + self.height
    }
}

/// Where text begins, ends or has its middle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How text looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Lettering {
    pub(super) size: f64,
    pub(super) bold: bool,
    pub(super) colour: &'static str,
}

impl Lettering {
    pub(super) const fn plain(size: f64) -> Self {
        Self { size, bold: false, colour: INK }
    }

    pub(super) const fn bold(size: f64) -> Self {
        Self { size, bold: true, colour: INK }
    }

    pub(super) const fn pale(size: f64) -> Self {
        Self { size, bold: false, colour: PALE_INK }
    }

    /// How wide a text is, near enough and rather too much: the widths of DejaVu Sans by kinds of letters.
    pub(super) fn width(self, text: &str) -> f64 {
        let share = |c: char| match c {
            'i' | 'j' | 'l' | '\'' | '|' => 0.29,
            ' ' | '.' | ',' | ':' | ';' | 'I' => 0.33,
            'f' | 't' | 'r' | '(' | ')' | '/' | '-' => 0.41,
            'm' | 'w' | 'M' | 'W' | '%' | '—' => 0.98,
            '+' | '±' | '−' | '=' | '<' | '>' | '×' => 0.84,
            'A'..='Z' => 0.71,
            _ => 0.62,
        };
        let heavier = if self.bold { 1.1 } else { 1.0 };
        self.size * heavier * text.chars().map(share).sum::<f64>()
    }
}

/// Elements, one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Drawing(String);

impl Drawing {
    /// An element without content.
    pub(super) fn shape(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.open(name, attributes);
        self.0.truncate(self.0.len() - 1);
        self.0.push_str("/>\n");
    }

    /// An element around others.
    pub(super) fn around(&mut self, name: &str, attributes: &[(&str, &str)], inside: impl FnOnce(&mut Drawing)) {
        self.open(name, attributes);
        self.0.push('\n');
        inside(self);
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "</{name}>");
    }

    /// What is inside of a frame, in its own coordinates; nothing of it reaches beyond.
    pub(super) fn clipped(&mut self, frame: Frame, inside: impl FnOnce(&mut Drawing)) {
        let [x, y, width, height] = [frame.x, frame.y, frame.width, frame.height].map(number);
        let attributes = [("x", &*x), ("y", &y), ("width", &width), ("height", &height), ("overflow", "hidden")];
        self.around("svg", &attributes, inside);
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: &str, width: f64) {
        let [x1, y1, x2, y2, width] = [from.0, from.1, to.0, to.1, width].map(number);
        let ends = [("x1", &*x1), ("y1", &y1), ("x2", &x2), ("y2", &y2)];
        self.shape("line", &[ends.as_slice(), &[("stroke", stroke), ("stroke-width", &width)]].concat());
    }

    /// A filled rectangle.
    pub(super) fn rectangle(&mut self, frame: Frame, others: &[(&str, &str)]) {
        let [x, y, width, height] = [frame.x, frame.y, frame.width, frame.height].map(number);
        let place = [("x", &*x), ("y", &y), ("width", &width), ("height", &height)];
        self.shape("rect", &[place.as_slice(), others].concat());
    }

    /// Text on one line, its base line at y.
    pub(super) fn text(&mut self, at: (f64, f64), anchor: Anchor, lettering: Lettering, text: &str) {
        let [x, y, size] = [at.0, at.1, lettering.size].map(number);
        let mut attributes = vec![("x", &*x), ("y", &y), ("font-size", &size), ("fill", lettering.colour)];
        match anchor {
            Anchor::Start => {}
            Anchor::Middle => attributes.push(("text-anchor", "middle")),
            Anchor::End => attributes.push(("text-anchor", "end")),
        }
        if lettering.bold {
            attributes.push(("font-weight", "bold"));
        }
        self.open("text", &attributes);
        let _ = writeln!(self.0, "{}</text>", escaped(text));
    }

    /// Other elements after these.
    pub(super) fn add(&mut self, other: Drawing) {
        self.0.push_str(&other.0);
    }

    /// The file: on white, with words for those who cannot see it.
    pub(super) fn finish(self, width: f64, height: f64, label: &str) -> String {
        let [width, height] = [width, height].map(number);
        let view = format!("0 0 {width} {height}");
        let mut file = Drawing::default();
        let attributes = [
            ("xmlns", "http://www.w3.org/2000/svg"),
            ("width", &*width),
            ("height", &height),
            ("viewBox", &view),
            ("font-family", FONTS),
            ("role", "img"),
            ("aria-label", label),
        ];
        file.around("svg", &attributes, |file| {
            file.shape("rect", &[("width", &width), ("height", &height), ("fill", "#ffffff")]);
            file.add(self);
        });
        file.0
    }

    fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
        let _ = write!(self.0, "<{name}");
        for (name, value) in attributes {
            let _ = write!(self.0, " {name}=\"{}\"", escaped(value));
        }
        self.0.push('>');
    }
}

/// A coordinate, to a hundredth of a pixel. What is not finite would spoil the file and becomes zero.
pub(super) fn number(x: f64) -> String {
    let rounded = if x.is_finite() { (x * 100.0).round() / 100.0 } else { 0.0 };
    // Minus zero is zero.
    format!("{}", rounded + 0.0)
}

/// The points of a polygon or of a line through them.
pub(super) fn points(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    points.into_iter().map(|(x, y)| format!("{},{}", number(x), number(y))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_never_become_markup() {
        let mut drawing = Drawing::default();
        drawing.text((0.0, f64::NAN), Anchor::Start, Lettering::plain(12.0), "a<b & \"c\"");
        let file = drawing.finish(10.0, 5.0, "\"><script>");
        assert!(file.contains(">a&lt;b &amp; &quot;c&quot;</text>"), "{file}");
        assert!(!file.contains("<script>") && !file.contains("NaN"), "{file}");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([1.0, -0.001, 2.0 / 3.0, f64::INFINITY].map(number), ["1", "0", "0.67", "0"]);
    }
}
