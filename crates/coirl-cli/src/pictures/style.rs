//! What methods look like, the same in every experiment: colours of good contrast that the colour-blind can tell apart, and dashes and
//! markers that say the same in black and white.

use super::marker::Marker;

/// How the line of a method is drawn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Style {
    /// As `#rrggbb`.
    pub(super) colour: String,
    /// Lengths of dashes and gaps; empty for a line without gaps.
    pub(super) dashes: &'static str,
    pub(super) width: f64,
    pub(super) marker: Marker,
    pub(super) hollow: bool,
}

/// A family of methods: how its names begin, and how its first member is drawn.
struct Family {
    names: &'static [&'static str],
    colour: [u8; 3],
    dashes: usize,
    marker: Marker,
}

const DASHES: [&str; 7] = ["", "8 3", "2.5 2.5", "9 3 2.5 3", "5 3", "12 3 2.5 3 2.5 3", "1.5 3.5"];

const fn family(names: &'static [&'static str], colour: [u8; 3], dashes: usize, marker: Marker) -> Family {
    Family { names, colour, dashes, marker }
}

/// Earlier ones are looked at first: what says more comes before what says less.
const FAMILIES: [Family; 15] = [
    family(&["PSGD"], [0, 104, 164], 0, Marker::Circle),
    family(&["EW"], [200, 84, 0], 1, Marker::Square),
    family(&["ES"], [0, 122, 90], 2, Marker::Triangle),
    family(&["ellipsoid"], [164, 66, 128], 3, Marker::Diamond),
    family(&["AL", "MWAL"], [110, 84, 0], 1, Marker::Wedge),
    family(&["adaptive"], [150, 98, 0], 4, Marker::Diamond),
    family(&["cutting planes"], [86, 58, 30], 5, Marker::Wedge),
    family(&["COIRL, network", "network"], [76, 56, 160], 0, Marker::Square),
    family(&["COIRL, linear", "linear"], [0, 112, 132], 4, Marker::Circle),
    family(&["COIRL"], [0, 104, 164], 0, Marker::Triangle),
    family(&["cloning"], [188, 36, 44], 2, Marker::Cross),
    family(&["nearest"], [84, 116, 20], 3, Marker::Plus),
    family(&["most frequent"], [110, 84, 84], 5, Marker::Plus),
    family(&["one policy", "one action"], [70, 70, 70], 1, Marker::None),
    family(&["random"], [118, 118, 118], 6, Marker::None),
];

/// Of whoever is in no family.
const OTHERS: Family = family(&[], [20, 20, 20], 3, Marker::Wedge);

impl Family {
    /// Whether a name begins with one of the family's, as a whole word.
    fn has(&self, name: &str) -> bool {
        let begins =
            |start: &&str| name.strip_prefix(*start).is_some_and(|rest| !rest.starts_with(char::is_alphabetic));
        self.names.iter().any(begins)
    }

    /// The family of a name, by its number.
    fn of(name: &str) -> usize {
        FAMILIES.iter().position(|family| family.has(name)).unwrap_or(FAMILIES.len())
    }
}

/// The styles of some methods: the first of a family as the family is drawn, further ones in darker and lighter shades with other dashes and
/// every second one with hollow markers.
pub(super) fn styles<'a>(methods: impl IntoIterator<Item = &'a str>) -> Vec<Style> {
    let mut seen = [0; FAMILIES.len() + 1];
    let style = |name: &str| {
        let number = Family::of(name);
        let family = FAMILIES.get(number).unwrap_or(&OTHERS);
        let member = seen[number];
        seen[number] += 1;
        // Shares of black and white that keep a contrast of three to one on white.
        let (towards, share) = [(0.0, 0.0), (0.0, 0.5), (255.0, 0.18)][member % 3];
        let [red, green, blue] = family.colour.map(|x| (f64::from(x) + share * (towards - f64::from(x))).round() as u8);
        Style {
            colour: format!("#{red:02x}{green:02x}{blue:02x}"),
            dashes: DASHES[(family.dashes + member) % DASHES.len()],
            width: if family.marker == Marker::None { 1.6 } else { 2.0 },
            marker: family.marker,
            hollow: member % 2 == 1,
        }
    };
    methods.into_iter().map(style).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contrast with white, by the definition of the Web Content Accessibility Guidelines.
    fn contrast(colour: &str) -> f64 {
        let channel = |at: usize| match f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap_or(255)) / 255.0 {
            c if c <= 0.04045 => c / 12.92,
            c => ((c + 0.055) / 1.055).powf(2.4),
        };
        1.05 / (0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5) + 0.05)
    }

    fn names() -> Vec<&'static str> {
        FAMILIES.iter().map(|family| family.names[0]).chain(["something else"]).collect()
    }

    #[test]
    fn every_line_is_seen_on_white() {
        for name in names() {
            for style in styles([name; 3]) {
                assert!(contrast(&style.colour) >= 3.0, "{name}: {style:?} {}", contrast(&style.colour));
            }
        }
    }

    #[test]
    fn no_two_look_the_same_without_colour() {
        let names = names();
        let all: Vec<&str> = names.iter().flat_map(|name| [*name; 2]).collect();
        let looks: Vec<_> = styles(all.iter().copied()).iter().map(|s| (s.dashes, s.marker as u8, s.hollow)).collect();
        for (i, look) in looks.iter().enumerate() {
            let twin = looks[..i].iter().position(|other| other == look);
            assert!(twin.is_none(), "{} and {} are both {look:?}", all[i], all[twin.unwrap_or(0)]);
        }
    }

    #[test]
    fn names_find_their_family() {
        let number = |name: &str| FAMILIES.iter().position(|family| family.names.contains(&name));
        for (name, family) in [
            ("EW, theory step", "EW"),
            ("ES, planned anew", "ES"),
            ("COIRL, network, likelihood", "network"),
            ("network, as in the paper", "network"),
            ("COIRL, plain trajectories", "COIRL"),
            ("one policy for everybody", "one policy"),
        ] {
            assert_eq!(Some(Family::of(name)), number(family), "{name}");
        }
        assert_eq!(Family::of("ESTIMATE"), FAMILIES.len());
    }
}
