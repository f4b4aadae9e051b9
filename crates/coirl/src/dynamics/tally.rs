//! Counts by key.

/// How often each key was counted, keys ascending. Keys that arrive in order are appended; others are found by bisection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tally<K>(Vec<(K, u64)>);

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord + Copy> Tally<K> {
    pub(super) fn add(&mut self, key: K, times: u64) {
        if self.0.last().is_none_or(|last| last.0 < key) {
            return self.0.push((key, times));
        }
        match self.0.binary_search_by_key(&key, |entry| entry.0) {
            Ok(at) => self.0[at].1 += times,
            Err(at) => self.0.insert(at, (key, times)),
        }
    }

    /// Keys with their counts, ascending.
    pub(super) fn entries(&self) -> &[(K, u64)] {
        &self.0
    }

    pub(super) fn total(&self) -> u64 {
        self.0.iter().map(|entry| entry.1).sum()
    }
}
