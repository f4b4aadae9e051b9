//! Many single-precision numbers inside JSON: their bits, little-endian, as base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serializer, de};

pub(crate) fn serialize<S: Serializer>(values: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    serializer.serialize_str(&STANDARD.encode(bytes))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f32>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = STANDARD.decode(text).map_err(|error| de::Error::custom(format!("packed numbers: {error}")))?;
    if !bytes.len().is_multiple_of(4) {
        return Err(de::Error::custom(format!("packed numbers: {} bytes are no whole numbers", bytes.len())));
    }
    let values: Vec<f32> = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    if values.iter().all(|x| x.is_finite()) { Ok(values) } else { Err(de::Error::custom("packed numbers: not finite")) }
}
