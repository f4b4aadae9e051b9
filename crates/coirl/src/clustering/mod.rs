//! k-means: rows of measurements to clusters, as states of a decision process or as anything else.
//!
//! ```text
//! inertia(c₁ … c_k) = Σ_x min_j ‖x − c_j‖²        lowered by Lloyd's iteration: assign rows to centroids, move these to the means
//! ```
//!
//! | part | how |
//! |---|---|
//! | first guess | greedy k-means++, with the triangle inequality, from a sample where there are many rows per cluster |
//! | assignment | bounds per group of centroids (yinyang); what they leave open is scored in single precision, sixteen centroids at a time |
//! | decision | double precision wherever single precision could be wrong |
//! | means | double precision, in the order of the rows |
//!
//! Guarantees: the result is that of plain Lloyd in double precision from the same first guess, bit for bit, on any number of
//! threads; the inertia never rises; ties go to the lower cluster. It is a local optimum, as k-means is: more
//! [`KMeans::restarts`] give better ones. Decisions behind it and measurements are in `docs/adr/0008-kmeans.md`.
//!
//! ```
//! use coirl::clustering::{KMeans, Points};
//!
//! let points = Points::new(vec![0.0, 0.1, 5.0, 5.2, 9.0], 1)?;
//! let found = KMeans { clusters: 3, restarts: 10, ..KMeans::default() }.fit(&points)?;
//! assert_eq!(found.assignment[0], found.assignment[1]);
//! assert!((found.inertia - 0.025).abs() < 1e-6);
//! assert_eq!(found.centroids.nearest(&[8.0])?.0, found.assignment[4] as usize);
//! # Ok::<(), coirl::Error>(())
//! ```

mod assignment;
mod candidates;
mod centroids;
mod distance;
mod frame;
mod kmeans;
mod means;
mod panels;
mod points;
mod seeding;

pub use centroids::Centroids;
pub use kmeans::{Clustering, KMeans, Progress, Step};
pub use points::Points;
