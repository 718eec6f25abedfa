//! What can be asked of host memory.

use std::fmt;

/// How large pages are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pages {
    /// The machine's smallest, and no others.
    #[default]
    Base,
    /// The smallest, which the system joins to huge ones where it can.
    Transparent,
    /// Explicit huge pages of 2 MiB, from the system's pool of them.
    Huge2M,
    /// Explicit huge pages of 1 GiB, from the system's pool of them.
    Huge1G,
}

impl Pages {
    /// For explicit huge pages, their size as a power of two.
    pub(crate) fn exponent(self) -> Option<i32> {
        match self {
            Self::Base | Self::Transparent => None,
            Self::Huge2M => Some(21),
            Self::Huge1G => Some(30),
        }
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Base => "base pages",
            Self::Transparent => "transparent huge pages",
            Self::Huge2M => "huge pages of 2 MiB",
            Self::Huge1G => "huge pages of 1 GiB",
        })
    }
}

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
