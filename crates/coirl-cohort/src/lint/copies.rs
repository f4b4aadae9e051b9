//! Stays that are in a table twice, under two ids: the same person may be learned from and scored on.

use super::{Finding, warning};
use crate::spec::Spec;
use crate::split::Parts;
use crate::table::Table;
use coirl::Result;
use std::collections::HashMap;

/// Different numbers that a stay must have for its copy to be no accident.
const TELLING: usize = 10;

pub(super) fn copies(table: &Table, spec: &Spec, parts: &Parts, findings: &mut Vec<Finding>) -> Result<()> {
    let columns: Vec<&[f32]> = spec.state.measurements.iter().map(|name| table.column(name)).collect::<Result<_>>()?;
    let mut first: HashMap<Vec<u32>, u32> = HashMap::new();
    let (mut twice, mut example) = (0, None);
    for stay in parts.all() {
        let cells: Vec<u32> = stay
            .rows
            .iter()
            .flat_map(|&row| columns.iter().map(move |column| column[row as usize].to_bits()))
            .collect();
        let mut different = cells.clone();
        different.sort_unstable();
        different.dedup();
        if different.len() < TELLING {
            continue;
        }
        match first.get(&cells) {
            Some(&other) => {
                twice += 1;
                example.get_or_insert((other, stay.number));
            }
            None => {
                first.insert(cells, stay.number);
            }
        }
    }
    if let Some((one, other)) = example {
        let message = format!(
            "{twice} of {} stays have exactly the measurements of another: the same stay under two ids? It may be learned from and \
             scored on; leave one out",
            parts.all().count()
        );
        let place = format!("stays {} and {}", table.stays.name(one), table.stays.name(other));
        findings.push(warning("copied-stay", message).with_example(place));
    }
    Ok(())
}
