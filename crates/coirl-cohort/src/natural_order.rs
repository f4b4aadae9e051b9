//! The natural order of ids: digits count as whole numbers, so that stay 9 comes before stay 10. Artefacts list stays in this order,
//! whatever the order of the table.

use std::cmp::Ordering;

/// Compares two ids. Ids that differ in leading zeros only are ordered as text, so that no two different ids are equal.
pub(crate) fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.as_bytes(), b.as_bytes());
    loop {
        let (x, y) = match (left.first(), right.first()) {
            (Some(x), Some(y)) => (*x, *y),
            (None, None) => return a.cmp(b),
            (none, _) => return if none.is_none() { Ordering::Less } else { Ordering::Greater },
        };
        if x.is_ascii_digit() && y.is_ascii_digit() {
            let (first, second) = (digits(&mut left), digits(&mut right));
            match first.len().cmp(&second.len()).then(first.cmp(second)) {
                Ordering::Equal => {}
                order => return order,
            }
        } else if x == y {
            (left, right) = (&left[1..], &right[1..]);
        } else {
            return x.cmp(&y);
        }
    }
}

/// Takes the digits at the start, and gives them without leading zeros.
fn digits<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let n = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (own, after) = rest.split_at(n);
    *rest = after;
    &own[own.iter().take_while(|byte| **byte == b'0').count()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_numbers_and_no_two_ids_are_equal() {
        // "07" and "7" are one number: the text decides.
        let ids = ["", "07", "7", "9", "10", "200001", "200001-2", "200001-10", "p2", "p2a", "p10", "é1"];
        for (i, a) in ids.iter().enumerate() {
            for (j, b) in ids.iter().enumerate() {
                assert_eq!(natural_order(a, b), i.cmp(&j), "{a} {b}");
            }
        }
    }
}
