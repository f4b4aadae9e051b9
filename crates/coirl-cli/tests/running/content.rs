//! What folders hold, compared.

use std::collections::BTreeMap;
use std::path::Path;

/// Every file below a folder, with what it holds.
pub(crate) fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                all.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    all
}

pub(crate) fn assert_same(one: &BTreeMap<String, Vec<u8>>, other: &BTreeMap<String, Vec<u8>>, attempt: &str) {
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>(), "{attempt}");
    if let Some((name, _)) = one.iter().find(|(name, bytes)| other[*name] != **bytes) {
        panic!("{attempt}: {name} has other bytes");
    }
}
