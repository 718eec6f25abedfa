//! Options whose values are words.

use std::fmt;

use super::kind::Kind;

/// A word that is one of the values of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// As it is written.
    pub name: &'static str,
    /// What it stands for.
    pub meaning: &'static str,
}

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
    /// The values of an option about pages, in the order of [`Pages::ALL`].
    pub const KIND: Kind = Kind::Choice(&[
        Choice { name: "base", meaning: "The machine's smallest" },
        Choice { name: "transparent", meaning: "Huge where the system can join small ones" },
        Choice { name: "2M", meaning: "Huge ones of 2 MiB, from the system's pool" },
        Choice { name: "1G", meaning: "Huge ones of 1 GiB, from the system's pool" },
    ]);

    /// All of them.
    pub const ALL: [Self; 4] = [Self::Base, Self::Transparent, Self::Huge2M, Self::Huge1G];

    /// For explicit huge pages, their size as a power of two.
    pub fn exponent(self) -> Option<u32> {
        match self {
            Self::Base | Self::Transparent => None,
            Self::Huge2M => Some(21),
            Self::Huge1G => Some(30),
        }
    }
}

/// When large blocks of a program on the host come from Lowtide's arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ArenaUse {
    /// Once it saves page faults, or the program marks steps.
    #[default]
    Auto,
    /// From the first few on.
    Always,
    /// Not at all.
    Never,
}

impl ArenaUse {
    /// The values of an option about the arena, in the order of [`ArenaUse::ALL`].
    pub const KIND: Kind = Kind::Choice(&[
        Choice { name: "auto", meaning: "Once it saves page faults, or the program marks steps" },
        Choice { name: "always", meaning: "As soon as large blocks add up to 4 MiB" },
        Choice { name: "never", meaning: "Not at all: the underlying allocator serves" },
    ]);

    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Always, Self::Never];
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
