//! Safetensors files of this library: a preamble in JSON, whose metadata hold a header in JSON, and tensors.

use super::{EDGES, EXTREMES, one_of, place, tree};
use rand::RngExt;
use rand_chacha::ChaCha8Rng as Random;
use serde_json::{Map, Value, json};

struct Tensor {
    name: String,
    element: String,
    shape: Vec<usize>,
    data: Vec<u8>,
}

struct Parts {
    metadata: Value,
    /// What the metadata hold as text.
    header: Value,
    tensors: Vec<Tensor>,
}

/// A file with its header, its metadata or its tensors changed, or with every count of some size changed.
pub(crate) fn safetensors(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut parts = Parts::of(bytes);
    let n = parts.tensors.len();
    let (a, b) = (place(random, n), place(random, n));
    match random.random_range(0..12) {
        0..=2 => tree(random, &mut parts.header),
        3 => tree(random, &mut parts.metadata),
        4 => return parts.bytes(|preamble| tree(random, preamble)),
        5 => {
            let length = *one_of(random, &EDGES);
            let mut bytes = parts.bytes(|_| ());
            bytes[..8].copy_from_slice(&length.to_le_bytes());
            return bytes;
        }
        6 => {
            let mut sizes: Vec<usize> = parts.tensors.iter().flat_map(|tensor| tensor.shape.clone()).collect();
            sizes.push(1);
            let from = sizes[place(random, sizes.len())];
            let to = *one_of(random, &[0, 1, 2, 3, 7, 1000]);
            replace_count(&mut parts.header, from, to);
            parts.tensors.iter_mut().for_each(|tensor| tensor.resize(from, to));
        }
        _ if n == 0 => tree(random, &mut parts.header),
        7 => drop(parts.tensors.remove(a)),
        8 => {
            let (name, element) = (parts.tensors[b].name.clone(), parts.tensors[b].element.clone());
            match random.random_range(0..3) {
                0 => parts.tensors[a].name = name,
                1 => parts.tensors[a].element = element,
                _ => {
                    (parts.tensors[a].name, parts.tensors[b].name) = (name, parts.tensors[a].name.clone());
                }
            }
        }
        9 => {
            // Axes that hold nothing, however long they are.
            let edge = *one_of(random, &EDGES) as usize;
            let tensor = &mut parts.tensors[a];
            match tensor.shape.first().copied() {
                Some(first) if random.random_range(0..2) == 0 => {
                    replace_count(&mut parts.header, first, edge);
                    (tensor.shape, tensor.data) = (vec![edge, 0], Vec::new());
                }
                _ => (tensor.shape, tensor.data) = (vec![0, edge], Vec::new()),
            }
        }
        _ => {
            let data = &mut parts.tensors[a].data;
            let number = match random.random_range(0..2) {
                0 => one_of(random, &EXTREMES).to_le_bytes(),
                _ => one_of(random, &EDGES).to_le_bytes(),
            };
            let width = *one_of(random, &[1, 4, 8]);
            let at = place(random, data.len().div_ceil(width)) * width;
            let end = data.len();
            for (byte, new) in data[at.min(end)..].iter_mut().zip(&number[..width]) {
                *byte = *new;
            }
        }
    }
    parts.bytes(|_| ())
}

fn replace_count(value: &mut Value, from: usize, to: usize) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|child| replace_count(child, from, to)),
        Value::Object(fields) => fields.values_mut().for_each(|child| replace_count(child, from, to)),
        _ if value.as_u64() == Some(from as u64) => *value = json!(to),
        _ => {}
    }
}

impl Tensor {
    fn resize(&mut self, from: usize, to: usize) {
        let old: usize = self.shape.iter().product();
        let shape: Vec<usize> = self.shape.iter().map(|&axis| if axis == from { to } else { axis }).collect();
        let new: usize = shape.iter().product();
        let width = self.data.len().checked_div(old).unwrap_or(8);
        if new * width <= 1 << 20 {
            self.data = if old == 0 {
                vec![0; new * width]
            } else {
                self.data.iter().copied().cycle().take(new * width).collect()
            };
            self.shape = shape;
        }
    }
}

impl Parts {
    fn of(bytes: &[u8]) -> Self {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let (preamble, data) = bytes[8..].split_at(length);
        let preamble: Map<String, Value> = serde_json::from_slice(preamble).unwrap();
        let mut metadata = Value::Null;
        let mut tensors: Vec<(usize, Tensor)> = Vec::new();
        for (name, info) in preamble {
            if name == "__metadata__" {
                metadata = info;
                continue;
            }
            let numbers = |key: &str| -> Vec<usize> { serde_json::from_value(info[key].clone()).unwrap() };
            let offsets = numbers("data_offsets");
            let element = info["dtype"].as_str().unwrap().to_owned();
            let data = data[offsets[0]..offsets[1]].to_vec();
            tensors.push((offsets[0], Tensor { name, element, shape: numbers("shape"), data }));
        }
        tensors.sort_by_key(|(at, _)| *at);
        let header = serde_json::from_str(metadata["header"].as_str().unwrap()).unwrap();
        Self { metadata, header, tensors: tensors.into_iter().map(|(_, tensor)| tensor).collect() }
    }

    /// The file, with offsets that fit; `change` may spoil the preamble at the end.
    fn bytes(&self, change: impl FnOnce(&mut Value)) -> Vec<u8> {
        let mut preamble = Map::new();
        let mut metadata = self.metadata.clone();
        if metadata.get("header").is_some_and(Value::is_string) {
            metadata["header"] = self.header.to_string().into();
        }
        preamble.insert("__metadata__".into(), metadata);
        let mut data = Vec::new();
        for tensor in &self.tensors {
            let start = data.len();
            data.extend_from_slice(&tensor.data);
            let info = json!({"dtype": tensor.element, "shape": tensor.shape, "data_offsets": [start, data.len()]});
            preamble.insert(tensor.name.clone(), info);
        }
        let mut preamble = Value::Object(preamble);
        change(&mut preamble);
        let preamble = preamble.to_string();
        [&(preamble.len() as u64).to_le_bytes()[..], preamble.as_bytes(), &data].concat()
    }
}
