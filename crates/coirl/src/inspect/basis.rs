//! An orthonormal basis that grows, by Gram and Schmidt with every vector taken out twice.

use crate::optim::{dot, norm};

/// What is left of a vector below this share of its length is rounding.
const DEPENDENT: f64 = 1e-8;

#[derive(Debug, Clone, Default)]
pub(super) struct Basis(Vec<Vec<f64>>);

impl Basis {
    /// Of everything that the vectors span.
    pub(super) fn spanning<'v>(vectors: impl Iterator<Item = &'v [f64]>) -> Self {
        let mut basis = Self::default();
        for vector in vectors {
            basis.add(vector);
        }
        basis
    }

    /// Takes in a vector known to be of unit length and at right angles to the others.
    pub(super) fn push(&mut self, direction: Vec<f64>) {
        self.0.push(direction);
    }

    /// Number of directions.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The directions, of unit length and at right angles.
    pub(super) fn directions(&self) -> &[Vec<f64>] {
        &self.0
    }

    /// The part of a vector at right angles to all directions.
    pub(super) fn remainder(&self, vector: &[f64]) -> Vec<f64> {
        let mut left = vector.to_vec();
        // Once loses half the digits where directions are nearly parallel; twice is enough.
        for _ in 0..2 {
            for direction in &self.0 {
                let along = dot(&left, direction);
                left.iter_mut().zip(direction).for_each(|(x, d)| *x -= along * d);
            }
        }
        left
    }

    /// Takes in a vector; says whether it was a new direction.
    pub(super) fn add(&mut self, vector: &[f64]) -> bool {
        let size = norm(vector);
        let mut left = self.remainder(vector);
        let length = norm(&left);
        if length <= DEPENDENT * size {
            return false;
        }
        left.iter_mut().for_each(|x| *x /= length);
        self.0.push(left);
        true
    }

    /// ‖part of the unit vector e_j outside‖².
    pub(super) fn share_outside(&self, j: usize) -> f64 {
        let inside: f64 = self.0.iter().map(|direction| direction[j] * direction[j]).sum();
        (1.0 - inside).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_are_counted_once() {
        let mut basis = Basis::default();
        assert!(basis.add(&[1.0, 1.0, 0.0]) && basis.add(&[1.0, 1.0, 1e-3]));
        assert!(!basis.add(&[2.0, 2.0, 5.0]) && !basis.add(&[0.0, 0.0, 0.0]));
        assert_eq!(basis.len(), 2);
        assert!((basis.share_outside(0) - 0.5).abs() < 1e-12 && basis.share_outside(2) < 1e-12);
    }
}
