//! Which contexts to know: covers of a context space in ‖·‖∞ with a radius that is guaranteed.
//!
//! A regular lattice covers by construction. On the simplex the points with coordinates in multiples of 1/m are within
//! (1 − 1/d)/m of every point (round down, then raise the largest remainders), and there are C(m+d−1, d−1) of them; a box
//! is cut into equal cells, and their centres are within half a cell: nothing with fewer points can do much better.
//! Around contexts that are known already, and where it saves points, contexts are added greedily: always the candidate
//! that is farthest from all others (Gonzalez 1985: at most twice the least radius for the number of points). Candidates
//! are a lattice finer than the radius wanted, and the lattice's own radius ρ is added to the distance of the farthest
//! candidate, so that the sum holds for every context and not for the candidates only. Cost: candidates × points × d.

use super::bounds::distance;
use crate::error::{Error, Result};
use crate::model::{Context, ContextSpace};

/// Most candidates that a greedy cover looks at.
const MOST_CANDIDATES: u64 = 20_000;
/// Candidates are this much finer than the radius wanted, where that is not too many.
const FINENESS: f64 = 4.0;

/// How far a cover should go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Extent {
    /// Until every context is within this distance.
    Radius(f64),
    /// As many contexts.
    Size(usize),
}

/// Contexts to plan for.
#[derive(Debug, Clone, PartialEq)]
pub struct Cover {
    /// The contexts, in addition to those that were known.
    pub contexts: Vec<Context>,
    /// Every context of the space is within this of one of them or of the known ones, in ‖·‖∞.
    pub radius: f64,
}

/// Covers a bounded space, given that some contexts are known already. At most `limit` contexts are added.
pub fn cover(space: &ContextSpace, known: &[Context], extent: Extent, limit: usize) -> Result<Cover> {
    let lattices = lattices_of(space)?;
    let candidates = |lattice: &Lattice| -> Result<Vec<Context>> {
        lattices.points(lattice).into_iter().map(|point| space.context(point)).collect()
    };
    let greedy = |fine: &Lattice, radius: f64, most: usize| -> Result<Cover> {
        let Cover { contexts, radius } = farthest_first(&candidates(fine)?, known, radius - fine.radius, most);
        Ok(Cover { contexts, radius: radius + fine.radius })
    };
    match extent {
        Extent::Radius(radius) if !(radius > 0.0) => Err(Error::InvalidSetting {
            name: "radius",
            value: radius.to_string(),
            reason: "expected a positive number",
        }),
        Extent::Radius(radius) => {
            let regular = lattices.within(radius);
            let usable = regular.as_ref().filter(|lattice| known.is_empty() && lattice.count <= limit as u64);
            let fine = lattices.within(radius / FINENESS).filter(|fine| fine.count <= MOST_CANDIDATES);
            // Candidates that are hardly finer than the radius would all be taken.
            let fine = fine.or_else(|| lattices.largest(MOST_CANDIDATES)).filter(|fine| fine.radius <= 0.5 * radius);
            if let Some(fine) = fine {
                let found = greedy(&fine, radius, usable.map_or(limit, |lattice| lattice.count as usize - 1))?;
                if found.radius <= radius {
                    return Ok(found);
                }
            }
            match usable {
                Some(lattice) => Ok(Cover { contexts: candidates(lattice)?, radius: lattice.radius }),
                None => Err(Error::CoverTooLarge {
                    radius,
                    needed: regular.map_or(u64::MAX, |lattice| lattice.count),
                    limit,
                    reachable: lattices.largest(limit as u64).map_or(f64::INFINITY, |lattice| lattice.radius),
                }),
            }
        }
        Extent::Size(0) => Err(Error::shape("contexts of a cover", "at least 1", 0)),
        Extent::Size(n) if n > limit => Err(Error::TooLarge { what: "contexts of a cover", count: n, limit }),
        Extent::Size(n) => {
            let too_many = || Error::TooLarge { what: "dimensions of a cover", count: usize::MAX, limit };
            let found = greedy(&lattices.largest(MOST_CANDIDATES).ok_or_else(too_many)?, 0.0, n)?;
            match lattices.largest(n as u64).filter(|lattice| known.is_empty() && lattice.radius <= found.radius) {
                Some(lattice) => Ok(Cover { contexts: candidates(&lattice)?, radius: lattice.radius }),
                None => Ok(found),
            }
        }
    }
}

/// The contexts of a list from which all others of it are within a distance, or as many as wanted. The radius is that of
/// the list, not of the whole space.
pub fn thin(contexts: &[Context], extent: Extent) -> Cover {
    match extent {
        Extent::Radius(radius) => farthest_first(contexts, &[], radius, contexts.len()),
        Extent::Size(n) => farthest_first(contexts, &[], 0.0, n),
    }
}

/// Candidates, each the farthest from those before it and from the known ones, until all are within `radius` or there are
/// `most`; and how far the farthest candidate then is.
fn farthest_first(candidates: &[Context], known: &[Context], radius: f64, most: usize) -> Cover {
    let between = |a: &Context, b: &Context| distance(a.values(), b.values());
    let to_known = |point| known.iter().map(|context| between(context, point)).fold(f64::INFINITY, f64::min);
    let mut distances: Vec<f64> = candidates.iter().map(to_known).collect();
    let mut contexts = Vec::new();
    loop {
        let each = distances.iter().copied().enumerate();
        let farthest = each.reduce(|best, next| if next.1 > best.1 { next } else { best });
        let (next, far) = farthest.unwrap_or((0, 0.0));
        if far <= radius.max(0.0) || contexts.len() >= most {
            return Cover { contexts, radius: far };
        }
        // The middle serves more than the corner that happens to be listed first.
        let next = &candidates[if far.is_finite() { next } else { middle(candidates) }];
        distances.iter_mut().zip(candidates).for_each(|(d, point)| *d = d.min(between(next, point)));
        contexts.push(next.clone());
    }
}

/// The candidate nearest to the mean of all.
fn middle(candidates: &[Context]) -> usize {
    let n = candidates.len() as f64;
    let d = candidates.first().map_or(0, |point| point.values().len());
    let mean: Vec<f64> = (0..d).map(|i| candidates.iter().map(|point| point.values()[i]).sum::<f64>() / n).collect();
    let each = candidates.iter().map(|point| distance(point.values(), &mean)).enumerate();
    each.reduce(|best, next| if next.1 < best.1 { next } else { best }).map_or(0, |best| best.0)
}

/// A lattice of one fineness.
#[derive(Debug, Clone, PartialEq)]
struct Lattice {
    /// Parts of each axis.
    parts: Vec<u64>,
    count: u64,
    /// Every point of the space is within this of one of the lattice.
    radius: f64,
}

/// The regular lattices of a space, from one point to as fine as needed.
trait Lattices {
    /// The coarsest with this radius; none where it cannot even be counted.
    fn within(&self, radius: f64) -> Option<Lattice>;
    /// The finest with at most so many points.
    fn largest(&self, count: u64) -> Option<Lattice>;
    fn points(&self, lattice: &Lattice) -> Vec<Vec<f64>>;
}

fn lattices_of(space: &ContextSpace) -> Result<Box<dyn Lattices + '_>> {
    match space {
        ContextSpace::Simplex { dimension } => Ok(Box::new(SimplexLattices { dimension: *dimension })),
        ContextSpace::Box { lower, upper } => Ok(Box::new(BoxLattices { lower, upper })),
        ContextSpace::Any => {
            let reason = "the model declares no space of contexts to cover; use known contexts instead".into();
            Err(Error::InvalidContext { values: Vec::new(), reason })
        }
    }
}

struct SimplexLattices {
    dimension: usize,
}

impl SimplexLattices {
    /// Zero parts stand for the middle alone.
    fn lattice(&self, parts: u64) -> Option<Lattice> {
        let d = self.dimension as u64;
        let far = 1.0 - 1.0 / d as f64;
        let count = if parts == 0 { 1 } else { binomial(parts.checked_add(d - 1)?, d - 1)? };
        Some(Lattice { parts: vec![parts], count, radius: far / parts.max(1) as f64 })
    }
}

impl Lattices for SimplexLattices {
    fn within(&self, radius: f64) -> Option<Lattice> {
        let far = 1.0 - 1.0 / self.dimension as f64;
        if radius >= far {
            return self.lattice(0);
        }
        let parts = (far / radius).ceil();
        // Rounding may leave the radius a little above what was asked for.
        let exact = |parts: u64| self.lattice(parts).filter(|lattice| lattice.radius <= radius);
        if parts < 1e15 { exact(parts as u64).or_else(|| exact(parts as u64 + 1)) } else { None }
    }

    fn largest(&self, count: u64) -> Option<Lattice> {
        let fits = |parts| self.lattice(parts).filter(|lattice| lattice.count <= count);
        if self.dimension == 1 {
            return fits(0);
        }
        let mut best = fits(0)?;
        // One part is the corners, no nearer than the middle; counts grow at least linearly from there.
        for parts in 2..=count {
            match fits(parts) {
                Some(finer) => best = finer,
                None => break,
            }
        }
        Some(best)
    }

    fn points(&self, lattice: &Lattice) -> Vec<Vec<f64>> {
        let (d, parts) = (self.dimension, lattice.parts.first().copied().unwrap_or(0));
        if parts == 0 {
            return vec![vec![1.0 / d as f64; d]];
        }
        let mut points = Vec::with_capacity(lattice.count as usize);
        let mut counts = vec![0; d];
        counts[0] = parts;
        loop {
            points.push(counts.iter().map(|&n: &u64| n as f64 / parts as f64).collect());
            // The next composition: move one part right of the last place that has one to give, and gather the rest there.
            let Some(from) = (0..d - 1).rev().find(|&i| counts[i] > 0) else { return points };
            counts[from] -= 1;
            let rest = counts[d - 1];
            counts[d - 1] = 0;
            counts[from + 1] = rest + 1;
        }
    }
}

struct BoxLattices<'a> {
    lower: &'a [f64],
    upper: &'a [f64],
}

impl BoxLattices<'_> {
    fn width(&self, axis: usize) -> f64 {
        self.upper[axis] - self.lower[axis]
    }

    fn lattice(&self, parts: Vec<u64>) -> Option<Lattice> {
        let count = parts.iter().try_fold(1_u64, |product, &n| product.checked_mul(n))?;
        let radius = parts.iter().enumerate().map(|(axis, &n)| self.width(axis) / (2.0 * n as f64)).fold(0.0, f64::max);
        Some(Lattice { parts, count, radius })
    }
}

impl Lattices for BoxLattices<'_> {
    fn within(&self, radius: f64) -> Option<Lattice> {
        let parts = |axis: usize| {
            let n = (self.width(axis) / (2.0 * radius)).ceil().max(1.0);
            let n = if self.width(axis) / (2.0 * n) > radius { n + 1.0 } else { n };
            (n < 1e15).then_some(n as u64)
        };
        self.lattice((0..self.lower.len()).map(parts).collect::<Option<_>>()?)
    }

    fn largest(&self, count: u64) -> Option<Lattice> {
        let mut best = self.lattice(vec![1; self.lower.len()])?;
        while best.radius > 0.0 {
            let size = |axis: usize| self.width(axis) / best.parts[axis] as f64;
            let coarsest =
                (0..self.lower.len()).fold(0, |most, axis| if size(axis) > size(most) { axis } else { most });
            let mut parts = best.parts.clone();
            parts[coarsest] += 1;
            match self.lattice(parts).filter(|lattice| lattice.count <= count) {
                Some(finer) => best = finer,
                None => break,
            }
        }
        Some(best)
    }

    fn points(&self, lattice: &Lattice) -> Vec<Vec<f64>> {
        let centre = |axis: usize, cell: u64| {
            let share = (cell as f64 + 0.5) / lattice.parts[axis] as f64;
            (self.lower[axis] + self.width(axis) * share).clamp(self.lower[axis], self.upper[axis])
        };
        let point = |mut number: u64| {
            (0..lattice.parts.len())
                .map(|axis| {
                    let cell = number % lattice.parts[axis];
                    number /= lattice.parts[axis];
                    centre(axis, cell)
                })
                .collect()
        };
        (0..lattice.count).map(point).collect()
    }
}

/// C(n, k), where it can be counted.
fn binomial(n: u64, k: u64) -> Option<u64> {
    let k = k.min(n - k);
    let product = (0..k).try_fold(1_u128, |c, i| c.checked_mul(u128::from(n - i)).map(|c| c / u128::from(i + 1)))?;
    u64::try_from(product).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lattices_have_as_many_points_as_counted() {
        assert_eq!(binomial(15, 6), Some(5005));
        assert_eq!(binomial(200, 100), None);
        for (dimension, parts) in [(1, 3), (2, 4), (3, 5), (5, 3)] {
            let family = SimplexLattices { dimension };
            let lattice = family.lattice(parts).unwrap_or_else(|| panic!("{dimension}"));
            let mut points = family.points(&lattice);
            assert_eq!(points.len() as u64, lattice.count);
            assert!(points.iter().all(|point| (point.iter().sum::<f64>() - 1.0).abs() < 1e-12));
            points.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
            points.dedup();
            assert_eq!(points.len() as u64, lattice.count);
        }
    }

    #[test]
    fn the_worst_point_of_a_lattice_is_as_far_as_it_says() {
        // With all remainders (d−1)/d one coordinate is rounded down by that much.
        let family = SimplexLattices { dimension: 3 };
        let lattice = family.lattice(4).unwrap_or_else(|| panic!());
        let worst = [(2.0 / 3.0) / 4.0, (2.0 / 3.0) / 4.0, 1.0 - 2.0 * (2.0 / 3.0) / 4.0];
        let nearest = family.points(&lattice).iter().map(|point| distance(point, &worst)).fold(f64::INFINITY, f64::min);
        assert!((nearest - lattice.radius).abs() < 1e-12, "{nearest} of {}", lattice.radius);
    }
}
