//! What can be asked of host memory.

use std::fmt;

pub use lowtide_core::options::Pages;

/// Which NUMA nodes memory comes from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Placement {
    /// Wherever the system likes, as a rule near the thread that touches it first.
    #[default]
    Anywhere,
    /// These nodes alone.
    Bound(Vec<u32>),
    /// These nodes in turn, page by page.
    Interleaved(Vec<u32>),
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |nodes: &[u32]| nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::Anywhere => f.pad("any NUMA node"),
            Self::Bound(nodes) => write!(f, "NUMA nodes {}", list(nodes)),
            Self::Interleaved(nodes) => write!(f, "NUMA nodes {} in turn", list(nodes)),
        }
    }
}

/// What is asked of host memory. The default is what `malloc` would get.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostOptions {
    /// How large pages are.
    pub pages: Pages,
    /// Where they are.
    pub placement: Placement,
    /// Whether they are kept from being paged out; this also touches them at commit.
    pub locked: bool,
    /// Whether they are touched at commit, so that first use costs no fault.
    pub prefault: bool,
}
