//! How the transition kernel depends on the context: not at all, as a mixture of base kernels, or by cluster.

use super::context::Context;
use super::kernel::{Kernel, Layout, RowStore};
use super::pairs::Pairs;
use crate::error::{Error, Result};
use std::borrow::Cow;
use std::sync::Arc;

/// c ↦ P_c.
#[derive(Debug, Clone, PartialEq)]
pub enum Dynamics {
    /// One kernel for every context.
    Shared(Kernel),
    /// P_c = Σ cᵢ Pᵢ, contexts on the simplex.
    Mixture(Mixture),
    /// One kernel per cluster of contexts.
    Clusters(Clusters),
}

/// Base kernels over the union of their sparsity patterns, so that forming P_c is one pass over the entries.
#[derive(Debug, Clone, PartialEq)]
pub struct Mixture {
    layout: Arc<Layout>,
    n_kernels: usize,
    /// `n_kernels` probabilities per entry.
    probabilities: Vec<f64>,
}

/// Kernels with the centroids that assign contexts to them.
#[derive(Debug, Clone, PartialEq)]
pub struct Clusters {
    kernels: Vec<Kernel>,
    centroids: Vec<Vec<f64>>,
}

impl Dynamics {
    /// The admissible pairs, common to all contexts.
    pub fn pairs(&self) -> &Arc<Pairs> {
        match self {
            Dynamics::Shared(kernel) => kernel.pairs(),
            Dynamics::Mixture(mixture) => &mixture.layout.pairs,
            Dynamics::Clusters(clusters) => clusters.kernels[0].pairs(),
        }
    }

    /// The kernel of a context.
    pub fn kernel(&self, context: &Context) -> Result<Cow<'_, Kernel>> {
        match self {
            Dynamics::Shared(kernel) => Ok(Cow::Borrowed(kernel)),
            Dynamics::Mixture(mixture) => Ok(Cow::Owned(mixture.kernel(context)?)),
            Dynamics::Clusters(clusters) => Ok(Cow::Borrowed(&clusters.kernels[clusters.assign(context)?])),
        }
    }

    /// Whether no action leads out of a state, in any context.
    pub(crate) fn is_absorbing(&self, state: usize) -> bool {
        let stays = |layout: &Layout, probabilities: &[f64], width: usize| {
            layout.pairs.of_state(state).all(|pair| {
                let row = layout.pair_row[pair] as usize;
                let mut entries = layout.row_start[row]..layout.row_start[row + 1];
                entries.all(|entry| {
                    let never = || probabilities[entry * width..(entry + 1) * width].iter().all(|&p| p == 0.0);
                    layout.next[entry] as usize == state || never()
                })
            })
        };
        match self {
            Dynamics::Shared(kernel) => stays(kernel.layout(), kernel.probabilities(), 1),
            Dynamics::Mixture(mixture) => stays(&mixture.layout, &mixture.probabilities, mixture.n_kernels),
            Dynamics::Clusters(clusters) => {
                clusters.kernels.iter().all(|kernel| stays(kernel.layout(), kernel.probabilities(), 1))
            }
        }
    }

    /// Length of a context, where the dynamics fix it.
    pub fn context_dimension(&self) -> Option<usize> {
        match self {
            Dynamics::Shared(_) => None,
            Dynamics::Mixture(mixture) => Some(mixture.n_kernels),
            Dynamics::Clusters(clusters) => Some(clusters.centroids[0].len()),
        }
    }
}

impl Mixture {
    /// Unites the patterns of the base kernels, which must have the same admissible pairs.
    pub fn new(kernels: &[Kernel]) -> Result<Self> {
        let pairs = common_pairs(kernels)?;
        let width = kernels.len();
        let mut rows = RowStore::new(pairs.clone(), width);
        let mut next: Vec<u32> = Vec::new();
        let mut values: Vec<f64> = Vec::new();
        for pair in 0..pairs.len() {
            next.clear();
            next.extend(kernels.iter().flat_map(|kernel| kernel.row(kernel.row_of(pair)).0));
            next.sort_unstable();
            next.dedup();
            values.clear();
            values.resize(next.len() * width, 0.0);
            for (i, kernel) in kernels.iter().enumerate() {
                let mut at = 0;
                for (s, p) in kernel.successors(pair) {
                    while (next[at] as usize) < s {
                        at += 1;
                    }
                    values[at * width + i] = p;
                }
            }
            rows.push(next.iter().copied(), values.iter().copied());
        }
        let (layout, probabilities) = rows.finish()?;
        Ok(Self { layout: Arc::new(layout), n_kernels: width, probabilities })
    }

    /// A mixture from a checked pattern and `n_kernels` probabilities per entry, kept bit for bit.
    pub(crate) fn from_parts(layout: Layout, n_kernels: usize, probabilities: Vec<f64>) -> Result<Self> {
        layout.check_probabilities(n_kernels, &probabilities)?;
        Ok(Self { layout: Arc::new(layout), n_kernels, probabilities })
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// Number of base kernels.
    pub fn n_kernels(&self) -> usize {
        self.n_kernels
    }

    /// The weights of the base kernels in a context: its numbers, divided by their sum.
    pub(crate) fn weights(&self, context: &Context) -> Result<Vec<f64>> {
        let c = context.values();
        if c.len() != self.n_kernels {
            let reason = format!("it has {} numbers; the mixture has {} base kernels", c.len(), self.n_kernels);
            return Err(Error::InvalidContext { values: c.to_vec(), reason });
        }
        // A context rounded to a few digits would leave rows that miss one by as much.
        let total: f64 = c.iter().sum();
        Ok(c.iter().map(|x| x / total).collect())
    }

    /// P_c(next | pair), without forming P_c; zero for states that do not follow, or do not exist.
    pub fn probability(&self, context: &Context, pair: usize, next: usize) -> Result<f64> {
        let c = self.weights(context)?;
        let row = self.layout.pair_row[pair] as usize;
        let entries = self.layout.row_start[row]..self.layout.row_start[row + 1];
        let successors = &self.layout.next[entries.clone()];
        let found = u32::try_from(next).ok().and_then(|next| successors.binary_search(&next).ok());
        let Some(entry) = found.map(|at| entries.start + at) else { return Ok(0.0) };
        let base = &self.probabilities[entry * self.n_kernels..(entry + 1) * self.n_kernels];
        Ok(base.iter().zip(&c).map(|(b, x)| b * x).sum())
    }

    /// P_c. The pattern is shared, only the probabilities are new.
    pub fn kernel(&self, context: &Context) -> Result<Kernel> {
        let mut kernel = Kernel::from_layout(self.layout.clone(), vec![0.0; self.layout.next.len()]);
        self.kernel_into(context, &mut kernel)?;
        Ok(kernel)
    }

    /// P_c into a kernel that this mixture made earlier, without allocating.
    pub fn kernel_into(&self, context: &Context, kernel: &mut Kernel) -> Result<()> {
        let c = self.weights(context)?;
        if !Arc::ptr_eq(kernel.layout(), &self.layout) {
            *kernel = Kernel::from_layout(self.layout.clone(), vec![0.0; self.layout.next.len()]);
        }
        for (p, base) in kernel.probabilities_mut().iter_mut().zip(self.probabilities.chunks_exact(self.n_kernels)) {
            *p = base.iter().zip(&c).map(|(b, x)| b * x).sum();
        }
        Ok(())
    }

    /// A base kernel on its own, with the entries it does not use left out.
    pub fn base(&self, i: usize) -> Result<Kernel> {
        let pairs = self.layout.pairs.clone();
        let mut builder = super::kernel::KernelBuilder::new(pairs.clone());
        for pair in 0..pairs.len() {
            let row = self.layout.pair_row[pair] as usize;
            let entries = self.layout.row_start[row]..self.layout.row_start[row + 1];
            builder
                .push_row(entries.map(|e| (self.layout.next[e] as i64, self.probabilities[e * self.n_kernels + i])))?;
        }
        builder.finish()
    }
}

impl Clusters {
    /// One kernel per centroid; all kernels with the same admissible pairs.
    pub fn new(kernels: Vec<Kernel>, centroids: Vec<Vec<f64>>) -> Result<Self> {
        common_pairs(&kernels)?;
        if centroids.len() != kernels.len() {
            return Err(Error::shape(
                "centroids",
                format!("{} rows", kernels.len()),
                format!("{} rows", centroids.len()),
            ));
        }
        let dimension = centroids[0].len();
        for row in &centroids {
            crate::error::check_length("centroid", dimension.max(1), row.len())?;
            crate::error::check_finite("centroid", row)?;
        }
        Ok(Self { kernels, centroids })
    }

    /// The kernels in cluster order.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The centroids in cluster order.
    pub fn centroids(&self) -> &[Vec<f64>] {
        &self.centroids
    }

    /// The cluster of a context: the nearest centroid in the Euclidean norm, the first of equals.
    pub fn assign(&self, context: &Context) -> Result<usize> {
        let c = context.values();
        if c.len() != self.centroids[0].len() {
            let reason = format!("it has {} numbers; the cluster centroids have {}", c.len(), self.centroids[0].len());
            return Err(Error::InvalidContext { values: c.to_vec(), reason });
        }
        let distance = |row: &Vec<f64>| -> f64 { row.iter().zip(c).map(|(a, b)| (a - b) * (a - b)).sum() };
        let distances: Vec<f64> = self.centroids.iter().map(distance).collect();
        Ok((1..distances.len()).fold(0, |best, i| if distances[i] < distances[best] { i } else { best }))
    }
}

fn common_pairs(kernels: &[Kernel]) -> Result<Arc<Pairs>> {
    let Some(first) = kernels.first() else {
        return Err(Error::shape("kernels", "at least one", 0));
    };
    for (i, kernel) in kernels.iter().enumerate() {
        if kernel.pairs() != first.pairs() {
            let reason = "its states, actions or admissible pairs differ from those of kernel 0".into();
            return Err(Error::IncompatibleKernels { kernel: i, reason });
        }
    }
    Ok(first.pairs().clone())
}
