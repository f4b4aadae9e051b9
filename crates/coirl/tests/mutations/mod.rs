//! Ways of spoiling a file. Bytes and lines are changed as they are; arrays, archives, tensors and trees are changed inside, with a sound
//! container written around them, so that the change reaches what the container holds.
#![allow(dead_code, unused_imports)] // each test file uses a part
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod arrays;
mod lines;
mod tensors;
mod tree;

pub(crate) use arrays::{npy, npz, read_archive, write_archive};
pub(crate) use lines::text;
pub(crate) use tensors::safetensors;
pub(crate) use tree::tree;

use rand::RngExt;
use rand_chacha::ChaCha8Rng as Random;
use serde_json::Value;

/// Whole numbers at which somebody's type ends.
const EDGES: [u64; 16] = [
    0,
    1,
    2,
    127,
    255,
    256,
    65_535,
    65_536,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    (1 << 53) + 1,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX,
];

/// Real numbers that are none, or hardly any.
const EXTREMES: [f64; 12] = [
    0.0,
    -0.0,
    -1.0,
    0.5,
    1.0 + 1e-7,
    1e308,
    -1e308,
    5e-324,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    9_007_199_254_740_993.0,
];

fn one_of<'a, T>(random: &mut Random, all: &'a [T]) -> &'a T {
    &all[random.random_range(0..all.len())]
}

/// Some place in `0..n`, or 0 where there is none.
fn place(random: &mut Random, n: usize) -> usize {
    if n == 0 { 0 } else { random.random_range(0..n) }
}

/// Changes of bytes, whatever they mean. `other` is a second file that pieces may come from.
pub(crate) fn raw(random: &mut Random, bytes: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.random_range(1..4) {
        let at = place(random, bytes.len());
        let end = (at + 1 + place(random, 64)).min(bytes.len());
        match random.random_range(0..9) {
            0 | 1 if !bytes.is_empty() => bytes[at] ^= 1 << random.random_range(0..8),
            2 => bytes.truncate(at),
            3 => {
                let from = place(random, other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            4 => {
                let piece = bytes[at..end].to_vec();
                let times = random.random_range(1..40);
                bytes.splice(at..at, piece.repeat(times));
            }
            5 => drop(bytes.drain(at..end)),
            6 => {
                let edge = one_of(random, &EDGES).to_le_bytes();
                let width = *one_of(random, &[1, 2, 4, 8]);
                for (byte, new) in bytes[at..].iter_mut().zip(&edge[..width]) {
                    *byte = *new;
                }
            }
            7 => {
                let from = place(random, bytes.len());
                let piece = bytes[from..(from + end - at).min(bytes.len())].to_vec();
                for (byte, new) in bytes[at..].iter_mut().zip(piece) {
                    *byte = new;
                }
            }
            _ => bytes[at..end].fill(*one_of(random, &[0, 0xff, b'[', b'"', b','])),
        }
    }
    bytes
}

/// A Parquet file with its pages or its footer changed, and a length of the footer that is right.
pub(crate) fn parquet(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let end = bytes.len() - 8;
    let length = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
    let (pages, footer) = bytes[..end].split_at(end - length);
    let (pages, footer) = match random.random_range(0..3) {
        0 => (raw(random, pages, pages), footer.to_vec()),
        _ => (pages.to_vec(), raw(random, footer, footer)),
    };
    [&pages[..], &footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
}

/// A file of this format, changed inside or outside.
pub(crate) fn of_format(random: &mut Random, format: &str, bytes: &[u8], other: &[u8]) -> Vec<u8> {
    if random.random_range(0..5) == 0 {
        return raw(random, bytes, other);
    }
    match format {
        "npz" => npz(random, bytes),
        "npy" => npy(random, bytes),
        "safetensors" => safetensors(random, bytes),
        "json" => {
            let mut value: Value = serde_json::from_slice(bytes).unwrap();
            for _ in 0..random.random_range(1..3) {
                tree(random, &mut value);
            }
            let written = value.to_string();
            if random.random_range(0..4) == 0 { text(random, written.as_bytes(), other) } else { written.into_bytes() }
        }
        "parquet" => parquet(random, bytes),
        _ => text(random, bytes, other),
    }
}

/// Ten thousand brackets and the like: parsers that call themselves run out of stack.
pub(crate) fn nested(open: &str, close: &str, depth: usize) -> Vec<u8> {
    [open.repeat(depth), "1".into(), close.repeat(depth)].concat().into_bytes()
}
