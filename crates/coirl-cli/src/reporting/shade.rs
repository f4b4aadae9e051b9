//! Colours of signed numbers. From dark blue by grey to light yellow: the lightness rises all the way, so that a copy in black and white
//! says the same.

/// Red, green and blue at −1, 0 and 1.
const ENDS: [[f64; 3]; 3] = [[16.0, 47.0, 110.0], [178.0, 183.0, 191.0], [255.0, 221.0, 87.0]];
/// Luminance at which black and white text are read equally well, √(1.05 · 0.05) − 0.05. On either side the better of the two has a contrast of
/// at least 4.58.
const EVEN: f64 = 0.179;

/// A background, with the colour of text that is read on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shade {
    background: [u8; 3],
}

impl Shade {
    /// Of a number from −1 to 1.
    pub(super) fn of(x: f64) -> Self {
        let x = if x.is_nan() { 0.0 } else { x.clamp(-1.0, 1.0) };
        let (from, to, share) = if x < 0.0 { (ENDS[0], ENDS[1], 1.0 + x) } else { (ENDS[1], ENDS[2], x) };
        Self { background: [0, 1, 2].map(|i| (from[i] + share * (to[i] - from[i])).round() as u8) }
    }

    /// Relative luminance, from 0 for black to 1 for white.
    fn luminance(self) -> f64 {
        let linear = |channel: u8| match f64::from(channel) / 255.0 {
            c if c <= 0.04045 => c / 12.92,
            c => ((c + 0.055) / 1.055).powf(2.4),
        };
        let [red, green, blue] = self.background.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// As an element has it.
    pub(super) fn style(self) -> String {
        let [red, green, blue] = self.background;
        let ink = if self.luminance() > EVEN { "#000" } else { "#fff" };
        format!("background:#{red:02x}{green:02x}{blue:02x};color:{ink}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Shade> {
        (-100..=100).map(|i| Shade::of(f64::from(i) / 100.0))
    }

    #[test]
    fn lightness_rises_with_the_number() {
        // By twentieths: channels are rounded to eight bits, and smaller steps may change blue alone.
        let luminances: Vec<f64> = all().step_by(5).map(Shade::luminance).collect();
        assert!(luminances.windows(2).all(|pair| pair[0] < pair[1]), "{luminances:?}");
    }

    #[test]
    fn every_number_can_be_read() {
        for shade in all() {
            let ink = if shade.style().ends_with("#fff") { 1.0 } else { 0.0 };
            let (a, b) = (shade.luminance() + 0.05, ink + 0.05);
            assert!(a.max(b) / a.min(b) >= 4.5, "{shade:?}");
        }
        assert_eq!(Shade::of(f64::NAN), Shade::of(0.0));
    }
}
