//! What planners are made of: backups over a kernel for one reward and for sixteen at once, the rows that may still matter, and products
//! with the matrix of a policy. No stopping rules and no certificates: those are of `solve`.

pub(in crate::plan) mod buffers;
pub(in crate::plan) mod candidates;
pub(in crate::plan) mod dissection;
pub(in crate::plan) mod elimination;
pub(in crate::plan) mod factor;
pub(in crate::plan) mod front;
pub(in crate::plan) mod krylov;
pub(in crate::plan) mod lanes;
pub(in crate::plan) mod linear;
pub(in crate::plan) mod occupancies;
pub(in crate::plan) mod order;
pub(in crate::plan) mod ordered;
pub(in crate::plan) mod real;
pub(in crate::plan) mod share;
pub(in crate::plan) mod soft_lanes;
pub(in crate::plan) mod sweep;
