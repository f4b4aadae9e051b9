//! Text that is made of lines and cells: CSV, TOML, JSON.

use super::{one_of, place, raw};
use rand::RngExt;
use rand_chacha::ChaCha8Rng as Random;
use std::ops::Range;

const NUMBERS: [&str; 24] = [
    "0",
    "-1",
    "-0",
    "1",
    "255",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e309",
    "-1e308",
    "5e-324",
    "NaN",
    "nan",
    "inf",
    "-Infinity",
    "0.30000000000000004441",
];

const PIECES: [&str; 26] = [
    "\"",
    "'",
    "\"\"\"",
    "\0",
    "\r",
    "\r\n",
    "\n",
    "\n\n\n",
    "\u{feff}",
    "\u{202e}",
    "é",
    "\u{1f9ea}",
    ",",
    ",,,,,,,,",
    ";",
    "\t",
    "#",
    "=",
    "[",
    "[[[[[[[[",
    "{}",
    "]",
    "\\",
    "\u{1b}[31m",
    "..",
    " ",
];

/// Changes of lines, cells, words and encodings. `other` is a second file that lines may come from.
pub(crate) fn text(random: &mut Random, bytes: &[u8], other: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(bytes) else { return raw(random, bytes, other) };
    let mut text = text.to_owned();
    for _ in 0..random.random_range(1..4) {
        text = changed(random, &text, other);
    }
    match random.random_range(0..24) {
        0 => ["\u{feff}".as_bytes(), text.as_bytes()].concat(),
        1 => [&[0xff, 0xfe][..], &text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()].concat(),
        2 => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        3 => text.chars().map(|c| c as u8).collect(),
        4 => text.replace('\n', "\r\n").into_bytes(),
        5 => text.replace('\n', "\r").into_bytes(),
        6 => raw(random, text.as_bytes(), other),
        _ => text.into_bytes(),
    }
}

fn changed(random: &mut Random, text: &str, other: &[u8]) -> String {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e');
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    match random.random_range(0..10) {
        0..=2 => {
            let numbers = runs(text, is_number);
            let new = one_of(random, &NUMBERS).to_string();
            replaced(random, text, &numbers, &new)
        }
        3 => {
            let words = runs(text, is_word);
            let new = words.get(place(random, words.len())).map_or(String::new(), |word| text[word.clone()].to_owned());
            replaced(random, text, &words, &new)
        }
        4 => {
            let at = boundary(text, place(random, text.len()));
            let times = *one_of(random, &[1, 1, 1, 3000]);
            format!("{}{}{}", &text[..at], one_of(random, &PIECES).repeat(times), &text[at..])
        }
        5 => {
            let (a, b) = (place(random, text.len()), place(random, text.len()));
            let (a, b) = (boundary(text, a.min(b)), boundary(text, a.max(b)));
            let b = boundary(text, b.min(a + 30));
            format!("{}{}", &text[..a], &text[b..])
        }
        6 => {
            // A cell less, a cell more, or an empty one.
            let cells = runs(text, |c| !matches!(c, ',' | '\n' | '='));
            let new = *one_of(random, &["", "x,", ",", "\"", "\"a\"", "\"a"]);
            replaced(random, text, &cells, new)
        }
        _ => {
            let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
            let (a, b) = (place(random, lines.len()), place(random, lines.len()));
            let from_other: Vec<&str> = std::str::from_utf8(other).unwrap_or_default().split_inclusive('\n').collect();
            match random.random_range(0..5) {
                _ if lines.is_empty() => {}
                0 => drop(lines.remove(a)),
                1 => lines.insert(b, lines[a]),
                2 => lines.swap(a, b),
                3 => lines.truncate(a),
                _ if from_other.is_empty() => {}
                _ => lines.insert(a, from_other[place(random, from_other.len())]),
            }
            lines.concat()
        }
    }
}

/// The longest pieces all of whose characters are such.
fn runs(text: &str, is_such: impl Fn(char) -> bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut begun = None;
    for (at, c) in text.char_indices().chain([(text.len(), '\u{0}')]) {
        match (is_such(c) && at < text.len(), begun) {
            (true, None) => begun = Some(at),
            (false, Some(from)) => {
                found.push(from..at);
                begun = None;
            }
            _ => {}
        }
    }
    found
}

fn replaced(random: &mut Random, text: &str, places: &[Range<usize>], new: &str) -> String {
    match places.get(place(random, places.len())) {
        Some(at) => format!("{}{new}{}", &text[..at.start], &text[at.end..]),
        None => text.to_owned(),
    }
}

fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}
