//! From a problem to what solvers work on: which in-place pairs share (`share`), what moves as one (`rigid`), and the
//! sections of time that tell apart what meets (`strip`).

pub(crate) mod rigid;
pub(crate) mod share;
pub(crate) mod strip;
