//! Small shapes at the points of a line.

use super::drawing::{Drawing, number, points};

/// A shape that is told from the others by its outline alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    None,
    Circle,
    Square,
    Triangle,
    Wedge,
    Diamond,
    Plus,
    Cross,
}

/// Half the width of a marker.
const RADIUS: f64 = 3.8;

impl Marker {
    /// Around a point; hollow ones are white inside.
    pub(super) fn draw(self, drawing: &mut Drawing, at: (f64, f64), colour: &str, hollow: bool) {
        let (x, y) = at;
        let r = RADIUS;
        let fill = if hollow { "#ffffff" } else { colour };
        let edge = [("fill", fill), ("stroke", colour), ("stroke-width", if hollow { "1.6" } else { "0.8" })];
        let mut polygon = |corners: &[(f64, f64)]| {
            let corners = points(corners.iter().map(|(dx, dy)| (x + r * dx, y + r * dy)));
            drawing.shape("polygon", &[&[("points", &*corners)], edge.as_slice()].concat());
        };
        match self {
            Marker::None => {}
            Marker::Circle => {
                let [x, y, r] = [x, y, r].map(number);
                drawing.shape("circle", &[[("cx", &*x), ("cy", &y), ("r", &r)], edge].concat());
            }
            Marker::Square => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            Marker::Triangle => polygon(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
            Marker::Wedge => polygon(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
            Marker::Diamond => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            Marker::Plus => polygon(&cross(0.0)),
            Marker::Cross => polygon(&cross(std::f64::consts::FRAC_PI_4)),
        }
    }
}

/// A cross of thick bars, turned by an angle.
fn cross(angle: f64) -> Vec<(f64, f64)> {
    let (long, thin) = (1.25, 0.42);
    let quarter = [(thin, -long), (thin, -thin), (long, -thin)];
    let turned = |k: usize, (x, y): (f64, f64)| {
        let (sine, cosine) = (angle + std::f64::consts::FRAC_PI_2 * k as f64).sin_cos();
        (x * cosine - y * sine, x * sine + y * cosine)
    };
    (0..4).flat_map(|k| quarter.map(|corner| turned(k, corner))).collect()
}
