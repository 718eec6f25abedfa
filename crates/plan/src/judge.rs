//! What is said of a plan once it is there: whether it keeps every promise (`validate`), and, where nothing fits, which
//! buffers are in each other's way (`blame`).

pub(crate) mod blame;
pub(crate) mod validate;
