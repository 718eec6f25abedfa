//! What a caller may ask of a solve, beyond the problem itself.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Techniques that can be switched off, so that the worth of each can be shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of its own
pub struct Techniques {
    /// Passes in several orders, each body where it fits.
    pub greedy: bool,
    /// Repair of a plan under a lower ceiling by pushing bodies out.
    pub repair: bool,
    /// Complete search.
    pub exact: bool,
    /// Solving parts on their own where no body crosses between them.
    pub decompose: bool,
    /// Remembering the states in which the complete search failed.
    pub memory: bool,
    /// Going on first, in the complete search, where it failed often.
    pub experience: bool,
}

impl Techniques {
    /// All of them.
    pub const ALL: Self =
        Self { greedy: true, repair: true, exact: true, decompose: true, memory: true, experience: true };

    /// Names by which techniques are switched, each with its switch.
    pub const NAMES: [&'static str; 6] = ["greedy", "repair", "exact", "decompose", "memory", "experience"];

    /// The switch called `name`.
    pub fn switch(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "greedy" => &mut self.greedy,
            "repair" => &mut self.repair,
            "exact" => &mut self.exact,
            "decompose" => &mut self.decompose,
            "memory" => &mut self.memory,
            "experience" => &mut self.experience,
            _ => return None,
        })
    }
}

/// How long and how hard to look.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Wall time after which the best plan so far is returned.
    pub time_limit: Option<Duration>,
    /// Once a plan is within a thousandth of the lower bound, a better one is looked for no longer than it took to find that one, but for so
    /// long at least. Only where the lowest plan is looked for and time is what limits the search.
    pub time_near_bound: Option<Duration>,
    /// Units of work after which the best plan so far is returned; unlike time, the same everywhere.
    pub work: Option<u64>,
    /// Threads to use, up to [`MOST_THREADS`](crate::MOST_THREADS); one means that no thread is started.
    pub threads: NonZeroUsize,
    /// Where chance starts.
    pub seed: u64,
    /// What to use.
    pub techniques: Techniques,
    /// Raised by the caller to have the best plan so far.
    pub cancel: &'a AtomicBool,
}

impl<'a> Options<'a> {
    /// Five seconds on one thread with everything switched on.
    pub fn new(cancel: &'a AtomicBool) -> Self {
        Self {
            time_limit: Some(Duration::from_secs(5)),
            time_near_bound: None,
            work: None,
            threads: NonZeroUsize::MIN,
            seed: 0,
            techniques: Techniques::ALL,
            cancel,
        }
    }

    /// When a solve that begins now must end.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.time_limit.and_then(|limit| Instant::now().checked_add(limit))
    }
}
