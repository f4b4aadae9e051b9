//! Actions as levels of doses: an action is a number in mixed radix whose digits are the levels, the first dose most significant.

use coirl::{Error, Result};

/// Refuses levels whose combinations are not the actions; none at all is allowed.
pub(super) fn check(levels: &[usize], n_actions: usize) -> Result<()> {
    let combinations = levels.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
    if levels.is_empty() || combinations == Some(n_actions) {
        return Ok(());
    }
    Err(Error::shape(
        "dose levels",
        format!("a product of {n_actions}, one action per combination"),
        format!("{levels:?}"),
    ))
}

/// Whether two actions are at most one level apart in every dose.
pub(super) fn within_one(levels: &[usize], mut a: usize, mut b: usize) -> bool {
    levels.iter().rev().all(|&n| {
        let near = (a % n).abs_diff(b % n) <= 1;
        (a, b) = (a / n, b / n);
        near
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_on_a_grid_of_two_doses() {
        let near = |a, b| within_one(&[5, 5], a, b);
        // 7 is (1, 2).
        assert!((0..25).filter(|&b| near(7, b)).eq([1, 2, 3, 6, 7, 8, 11, 12, 13]));
        // 4 is (0, 4) and 5 is (1, 0): next to each other in number only.
        assert!(!near(4, 5));
        assert!(within_one(&[3, 2], 1, 2) && !within_one(&[3, 2], 0, 4));
    }

    #[test]
    fn levels_must_make_up_the_actions() {
        assert!(check(&[5, 5], 25).is_ok() && check(&[], 25).is_ok() && check(&[25], 25).is_ok());
        assert!(check(&[5, 4], 25).is_err() && check(&[0, 3], 25).is_err());
    }
}
