//! At discount one, values are finite only if every policy is absorbed.

use super::kernel::Kernel;
use crate::error::{Error, Result};

/// States that no action ever leaves.
pub(crate) fn absorbing_states(kernel: &Kernel) -> Vec<bool> {
    let mut absorbing = vec![false; kernel.n_states()];
    kernel.absorbing().for_each(|s| absorbing[s] = true);
    absorbing
}

/// Refuses kernels in which some policy avoids the absorbing states for ever.
///
/// Such a policy exists iff some set of other states has, in each of its states, an action that stays inside. The
/// largest such set is what remains after removing, again and again, every state all of whose actions can leave. Linear
/// in the entries.
pub(crate) fn check_every_policy_proper(kernel: &Kernel) -> Result<()> {
    let n_states = kernel.n_states();
    let layout = kernel.layout();
    let mut removed = absorbing_states(kernel);
    // Rows that can enter a state, and how many rows of each state still stay inside the candidate set.
    let mut entering_start = vec![0_usize; n_states + 1];
    for &next in &layout.next {
        entering_start[next as usize + 1] += 1;
    }
    for s in 0..n_states {
        entering_start[s + 1] += entering_start[s];
    }
    let mut entering = vec![0_u32; layout.next.len()];
    let mut cursor = entering_start.clone();
    let mut row_state = vec![0_u32; kernel.n_rows()];
    for s in 0..n_states {
        for row in layout.state_rows[s]..layout.state_rows[s + 1] {
            row_state[row as usize] = s as u32;
            for &next in kernel.row(row as usize).0 {
                entering[cursor[next as usize]] = row;
                cursor[next as usize] += 1;
            }
        }
    }
    let mut staying: Vec<u32> = (0..n_states).map(|s| layout.state_rows[s + 1] - layout.state_rows[s]).collect();
    let mut leaves = vec![false; kernel.n_rows()];
    let mut queue: Vec<usize> = (0..n_states).filter(|&s| removed[s]).collect();
    while let Some(s) = queue.pop() {
        for &row in &entering[entering_start[s]..entering_start[s + 1]] {
            let from = row_state[row as usize] as usize;
            if !leaves[row as usize] {
                leaves[row as usize] = true;
                staying[from] -= 1;
                if staying[from] == 0 && !removed[from] {
                    removed[from] = true;
                    queue.push(from);
                }
            }
        }
    }
    match removed.iter().position(|&gone| !gone) {
        Some(state) => Err(Error::ImproperPolicy { state }),
        None => Ok(()),
    }
}
