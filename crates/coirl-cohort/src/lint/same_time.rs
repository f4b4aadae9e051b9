//! Rows of one stay and the very same time that differ, where the first or the last of a step was asked for.

use super::{Finding, warning};
use crate::spec::{SameStep, Spec};
use crate::table::Table;
use std::collections::{HashMap, HashSet};

/// Which of such rows counts is decided by what is in them: nothing else is known of their order.
pub(super) fn same_time(table: &Table, spec: &Spec, findings: &mut Vec<Finding>) {
    if spec.cohort.same_step == SameStep::Refuse {
        return;
    }
    let mut first: HashMap<(u32, u64), usize> = HashMap::new();
    // Times, not rows: which of them differs from the others depends on their order.
    let (mut differing, mut example) = (HashSet::new(), None);
    for row in 0..table.n_rows() {
        let at = (table.stays.of_row(row), table.times[row].to_bits());
        let before = *first.entry(at).or_insert(row);
        if table.differs(before, row).is_some() {
            differing.insert(at);
            example.get_or_insert((before, row));
        }
    }
    if let Some((before, row)) = example {
        let message = format!(
            "{} times of stays have several rows that differ: which is the first and which the last is decided by their values, for their \
             order in the table may be that of chance; leave out those that do not count",
            differing.len()
        );
        let place = format!("rows {} and {}", before + 1, row + 1);
        findings.push(warning("same-time", message).with_example(place));
    }
}
