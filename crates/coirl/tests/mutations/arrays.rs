//! NumPy's arrays and archives of them.

use super::{EDGES, EXTREMES, lines, one_of, place, raw};
use rand::RngExt;
use rand_chacha::ChaCha8Rng as Random;
use std::io::{Cursor, Read, Write};
use zip::CompressionMethod;
use zip::read::ZipArchive;
use zip::write::{SimpleFileOptions, ZipWriter};

const TYPES: [&str; 12] = ["<f8", ">f8", "<f4", "<f2", "|b1", "|i1", "<i8", "<u8", "|O", "<U7", "|S3", "<c16"];
const NAMES: [&str; 16] = [
    "transitions.npy",
    "indptr.npy",
    "indices_0.npy",
    "features.npy",
    "features_indptr.npy",
    "n_features.npy",
    "initial.npy",
    "discount.npy",
    "horizon.npy",
    "admissible.npy",
    "known.npy",
    "centroids.npy",
    "../initial.npy",
    "/etc/initial.npy",
    "tx_mat.npy",
    "initial\0.npy",
];

/// The names and contents of an archive.
pub(crate) fn read_archive(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut zip = ZipArchive::new(Cursor::new(bytes)).unwrap();
    let n = zip.len();
    let entry = |i| {
        let mut entry = zip.by_index(i).unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (entry.name().unwrap().into_owned(), content)
    };
    (0..n).map(entry).collect()
}

/// An archive with sound checksums.
pub(crate) fn write_archive(entries: &[(String, Vec<u8>)], compression: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        // The writer refuses a name that is there already.
        if zip.start_file(name, SimpleFileOptions::default().compression_method(compression)).is_ok() {
            zip.write_all(content).unwrap();
        }
    }
    zip.finish().unwrap().into_inner()
}

/// An archive with an array changed, left out, added, renamed or exchanged, or with all arrays of some size resized.
pub(crate) fn npz(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut entries = read_archive(bytes);
    let (a, b) = (place(random, entries.len()), place(random, entries.len()));
    match random.random_range(0..12) {
        0 => drop(entries.remove(a)),
        1 => entries[a].0 = one_of(random, &NAMES).to_string(),
        2 => entries[a].1 = entries[b].1.clone(),
        3 => entries.push((one_of(random, &NAMES).to_string(), entries[a].1.clone())),
        4 => entries[a].1 = raw(random, &entries[a].1, &entries[b].1),
        5..=7 => {
            let sizes: Vec<usize> = entries.iter().flat_map(|(_, array)| Parts::of(array).shape()).collect();
            let (from, to) = (sizes[place(random, sizes.len())], *one_of(random, &[0, 1, 2, 3, 7, 5000]));
            entries.iter_mut().for_each(|(_, array)| *array = Parts::of(array).resized(from, to).bytes());
        }
        _ => entries[a].1 = npy(random, &entries[a].1),
    }
    let compression = *one_of(random, &[CompressionMethod::Stored, CompressionMethod::Deflated]);
    write_archive(&entries, compression)
}

/// An array with its header or its data changed.
pub(crate) fn npy(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut parts = Parts::of(bytes);
    let n = parts.data.len();
    match random.random_range(0..9) {
        0 => parts.header = String::from_utf8_lossy(&lines::text(random, parts.header.as_bytes(), b"")).into_owned(),
        1 => {
            let (shape, edge) = (parts.shape(), *one_of(random, &EDGES) as usize);
            let at = place(random, shape.len());
            let axes = shape.iter().enumerate().map(|(i, &axis)| if i == at { edge } else { axis });
            parts = parts.with_shape(&axes.collect::<Vec<_>>());
        }
        2 => {
            // Other axes for the same elements, or for none.
            let n: usize = parts.shape().iter().product();
            let edge = *one_of(random, &EDGES) as usize;
            let shape =
                one_of(random, &[vec![n], vec![1, n], vec![n, 1], vec![1, n, 1], vec![0, edge], vec![edge, 0], vec![]])
                    .clone();
            if shape.contains(&0) {
                parts.data.clear();
            }
            parts = parts.with_shape(&shape);
        }
        3 => {
            let (old, new) = (parts.element(), *one_of(random, &TYPES));
            parts.header = parts.header.replacen(&old, new, 1);
        }
        4 => {
            let (old, new) = if parts.header.contains("False") { ("False", "True") } else { ("True", "False") };
            parts.header = parts.header.replacen(old, new, 1);
        }
        5 => parts.data.truncate(place(random, n)),
        6 => parts.data.extend(std::iter::repeat_n(0, *one_of(random, &[1, 8, 4096]))),
        _ => {
            let number = match random.random_range(0..2) {
                0 => one_of(random, &EXTREMES).to_le_bytes(),
                _ => one_of(random, &EDGES).to_le_bytes(),
            };
            let at = place(random, n.div_ceil(8)) * 8;
            for (byte, new) in parts.data[at.min(n)..].iter_mut().zip(number) {
                *byte = new;
            }
        }
    }
    parts.bytes()
}

/// An array taken apart; its header ends before the spaces that fill it up.
struct Parts {
    header: String,
    data: Vec<u8>,
}

impl Parts {
    fn of(bytes: &[u8]) -> Self {
        let start = match bytes.get(6) {
            Some(1) => 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]])),
            _ => 0,
        };
        match bytes.get(10..start) {
            Some(header) => {
                Self { header: String::from_utf8_lossy(header).trim_end().to_owned(), data: bytes[start..].to_vec() }
            }
            None => Self { header: String::new(), data: bytes.to_vec() },
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let header = format!("{}\n", self.header);
        let length = (header.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00".as_slice(), &length, header.as_bytes(), &self.data].concat()
    }

    fn between(&self, before: &str, after: char) -> String {
        let from = self.header.find(before).map_or(0, |at| at + before.len());
        self.header[from..].split(after).next().unwrap_or_default().to_owned()
    }

    fn element(&self) -> String {
        self.between("'descr': '", '\'')
    }

    fn shape(&self) -> Vec<usize> {
        self.between("'shape': (", ')').split(',').filter_map(|axis| axis.trim().parse().ok()).collect()
    }

    fn with_shape(mut self, shape: &[usize]) -> Self {
        let old = self.between("'shape': (", ')');
        let new: String = shape.iter().map(|axis| format!("{axis},")).collect();
        self.header = self.header.replacen(&format!("({old})"), &format!("({new})"), 1);
        self
    }

    /// Axes of one length get another, and the data with them.
    fn resized(self, from: usize, to: usize) -> Self {
        let shape = self.shape();
        let (old, n): (usize, usize) = (shape.iter().product(), self.data.len());
        let axes: Vec<usize> = shape.iter().map(|&axis| if axis == from { to } else { axis }).collect();
        let new: usize = axes.iter().product();
        let width = n.checked_div(old).unwrap_or(8);
        // Four axes of five thousand would be no test of the reader but of the machine.
        if new * width > 1 << 20 {
            return self;
        }
        let mut parts = self.with_shape(&axes);
        parts.data = parts.data.iter().copied().cycle().take(if n == 0 { 0 } else { new * width }).collect();
        parts
    }
}
