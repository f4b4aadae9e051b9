//! The known name that a mistyped one was meant to be.

/// The candidate with the fewest inserted, deleted or replaced characters; the first of equals.
pub fn nearest<'a>(name: &str, candidates: &[&'a str]) -> Option<&'a str> {
    candidates.iter().copied().min_by_key(|candidate| edit_distance(name, candidate))
}

/// The nearest candidate, where no more than half of the name would have to be changed.
pub fn near<'a>(name: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let most = name.chars().count() / 2;
    nearest(name, candidates).filter(|candidate| edit_distance(name, candidate) <= most)
}

/// Levenshtein's distance, by rows of his table.
pub fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_the_textbook() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("abc", "abc"), 0);
        assert_eq!(nearest("transition", &["features", "transitions"]), Some("transitions"));
        assert_eq!(near("transition", &["features", "transitions"]), Some("transitions"));
        assert_eq!(near("time", &["visit_date", "hba1c"]), None);
    }
}
