//! The data behind the sepsis simulator, made from the package that publishes them.
//!
//! ICU-Sepsis stores a dense kernel of 716 × 25 × 716 numbers, in which every inadmissible row is the mean of its state's
//! admissible ones. What ships with the library holds the admissible rows alone, bit for bit.

use crate::{Outcome, root, run};
use coirl::artifact::read_numbers;
use safetensors::tensor::{Dtype, TensorView, serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

const PACKAGE: &str = "icu-sepsis==2.0.1";
const WHEEL: &str = "icu_sepsis-2.0.1-py3-none-any.whl";
const ASSETS: &str = "icu_sepsis/envs/assets";
const SHIPPED: &str = "crates/coirl/data/sepsis/icu-sepsis-2.0.1.safetensors";
const N_STATES: usize = 716;
const N_ACTIONS: usize = 25;
/// States in which somebody acts; death, survival and the end follow.
const N_CLUSTERS: usize = 713;
const N_COLUMNS: usize = 47;

/// Makes the file again; compares it with what ships, or writes it there.
pub(crate) fn data(write: bool) -> Outcome {
    let folder = root().join("target").join("icu-sepsis");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    run(Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-deps", PACKAGE, "--dest"])
        .arg(&folder))?;
    let wheel = folder.join(WHEEL);
    run(Command::new("python3").args(["-m", "zipfile", "--extract"]).arg(&wheel).arg(&folder))?;
    let made = convert(&folder.join(ASSETS))?;
    let shipped = root().join(SHIPPED);
    if write {
        std::fs::write(&shipped, &made).map_err(|error| format!("{}: {error}", shipped.display()))?;
        eprintln!("wrote {} bytes to {SHIPPED}", made.len());
        return Ok(());
    }
    let there = std::fs::read(&shipped).map_err(|error| format!("{}: {error}", shipped.display()))?;
    if there != made {
        return Err(format!("{SHIPPED} is not what {PACKAGE} gives; write it with --write"));
    }
    eprintln!("{SHIPPED} is what {PACKAGE} gives, byte for byte");
    Ok(())
}

fn convert(assets: &Path) -> Result<Vec<u8>, String> {
    let (dynamics, actions) = (assets.join("dynamics.npz"), assets.join("admissible_actions.txt"));
    let array = |key: &str, shape: &[usize]| {
        let (found, values) = read_numbers(&dynamics, key).map_err(|error| error.to_string())?;
        if found == shape { Ok(values) } else { Err(format!("{key} has shape {found:?}; expected {shape:?}")) }
    };
    let text = std::fs::read_to_string(&actions).map_err(|error| format!("{}: {error}", actions.display()))?;
    let admissible = admissible_actions(&text)?;
    let kernel = array("tx_mat", &[N_STATES, N_ACTIONS, N_STATES])?;
    let (mut mask, mut row_start, mut next, mut probability) =
        (vec![0_u8; N_CLUSTERS * N_ACTIONS], vec![0_u32], Vec::new(), Vec::new());
    for (state, actions) in admissible.iter().enumerate().take(N_CLUSTERS) {
        for &action in actions {
            mask[state * N_ACTIONS + action] = 1;
            let row = (state * N_ACTIONS + action) * N_STATES;
            for (successor, &p) in kernel[row..row + N_STATES].iter().enumerate().filter(|entry| *entry.1 > 0.0) {
                next.push(successor as u16);
                probability.push(p);
            }
            row_start.push(next.len() as u32);
        }
    }
    let clinicians = array("expert_policy", &[N_STATES, N_ACTIONS])?;
    let centroids = array("state_cluster_centers", &[N_STATES, N_COLUMNS])?;
    let start = array("d_0", &[N_STATES])?;
    let bytes = [
        ("admissible", Dtype::U8, vec![N_CLUSTERS, N_ACTIONS], mask),
        ("row_start", Dtype::U32, vec![row_start.len()], row_start.iter().flat_map(|x| x.to_le_bytes()).collect()),
        ("next", Dtype::U16, vec![next.len()], next.iter().flat_map(|x| x.to_le_bytes()).collect()),
        ("probability", Dtype::F64, vec![probability.len()], le(&probability)),
        ("start", Dtype::F64, vec![N_CLUSTERS], le(&start[..N_CLUSTERS])),
        ("clinicians", Dtype::F64, vec![N_CLUSTERS, N_ACTIONS], le(&clinicians[..N_CLUSTERS * N_ACTIONS])),
        ("centroids", Dtype::F64, vec![N_CLUSTERS, N_COLUMNS], le(&centroids[..N_CLUSTERS * N_COLUMNS])),
    ];
    let tensors = bytes
        .iter()
        .map(|(name, kind, shape, data)| Ok((*name, TensorView::new(*kind, shape.clone(), data)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(|error| error.to_string())?;
    // One entry: several would be written in any order.
    let source = format!(
        "ICU-Sepsis 2.0.1 (MIT, Copyright (c) 2024 Kartik Choudhary, Dhawal Gupta, Philip S. Thomas); dynamics.npz SHA-256 {}, admissible_actions.txt SHA-256 {}",
        digest(&dynamics)?,
        digest(&actions)?
    );
    serialize(tensors, Some(HashMap::from([("source".to_owned(), source)]))).map_err(|error| error.to_string())
}

/// The first line says how many there are in each state, the others which.
fn admissible_actions(text: &str) -> Result<Vec<Vec<usize>>, String> {
    let numbers = |line: &str| {
        line.split_whitespace().map(|word| word.parse().map_err(|_| format!("'{word}' is no number"))).collect()
    };
    let mut lines = text.lines();
    let counts: Vec<usize> = numbers(lines.next().unwrap_or_default())?;
    let actions: Vec<Vec<usize>> = lines.map(numbers).collect::<Result<_, _>>()?;
    let fits = counts.len() == N_STATES
        && actions.iter().map(Vec::len).eq(counts)
        && actions.iter().flatten().all(|&action| action < N_ACTIONS);
    if fits { Ok(actions) } else { Err("admissible_actions.txt does not hold what its first line says".into()) }
}

fn le(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn digest(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}
