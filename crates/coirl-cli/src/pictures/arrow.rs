//! Arrows that say what an action does.

use super::drawing::{Drawing, number, points};

/// Where an arrow points; a dot where it stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Left,
    Up,
    Right,
    Down,
    Stay,
}

impl Direction {
    /// By the first word of an action's name.
    pub(super) fn of_action(name: &str) -> Self {
        match name.split(' ').next() {
            Some("left") => Direction::Left,
            Some("up") => Direction::Up,
            Some("right") => Direction::Right,
            Some("down") => Direction::Down,
            _ => Direction::Stay,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Direction::Left => "left",
            Direction::Up => "up",
            Direction::Right => "right",
            Direction::Down => "down",
            Direction::Stay => "stay",
        }
    }

    /// Draws it around a point, `size` long, and says of which state it is.
    pub(super) fn draw(self, drawing: &mut Drawing, state: usize, at: (f64, f64), size: f64, colour: &str) {
        let state = state.to_string();
        let said = [("data-state", &*state), ("data-action", self.name()), ("fill", colour)];
        let (cosine, sine) = match self {
            Direction::Right => (1.0, 0.0),
            Direction::Down => (0.0, 1.0),
            Direction::Left => (-1.0, 0.0),
            Direction::Up => (0.0, -1.0),
            Direction::Stay => {
                let [x, y, r] = [at.0, at.1, 0.14 * size].map(number);
                return drawing.shape("circle", &[said.as_slice(), &[("cx", &*x), ("cy", &y), ("r", &r)]].concat());
            }
        };
        // A shaft with a head, pointing right, in units of the length.
        let outline =
            [(-0.5, -0.07), (0.08, -0.07), (0.08, -0.27), (0.5, 0.0), (0.08, 0.27), (0.08, 0.07), (-0.5, 0.07)];
        let turned =
            |(x, y): (f64, f64)| (at.0 + size * (x * cosine - y * sine), at.1 + size * (x * sine + y * cosine));
        let corners = points(outline.map(turned));
        drawing.shape("polygon", &[said.as_slice(), &[("points", &*corners)]].concat());
    }
}
