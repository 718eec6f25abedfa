//! A moment with its buffers, its curve and its families: what the search for causes and remedies works on.

use lowtide_core::{Alive, BufferIndex, Bytes, Change, Ending, Lifetime, Remedy, Usage};
use rustc_hash::FxHashSet;

use super::account::Account;
use super::curve::Curve;
use super::edit::Edit;
use super::families::Families;

/// How many families of a bond are looked at, those first that hold most.
pub(super) const CANDIDATES: usize = 200;

/// What is less than this part of the bytes alive is not worth a word.
const LEAST: u64 = 1_000;

/// A moment, and the time around it that savings are counted over.
pub(super) struct Analysis<'a> {
    pub usage: &'a Usage,
    pub account: &'a Account<'a>,
    pub curve: &'a Curve,
    pub families: Families<'a>,
    pub scope: Lifetime,
    pub moment: i64,
    /// The most bytes alive in the scope.
    pub height: u64,
    /// What is alive at the moment, the largest first.
    pub alive: &'a [Alive],
    pub present: FxHashSet<BufferIndex>,
}

impl Analysis<'_> {
    /// What the highest moment of the scope would be after `edit`; `None` where that cannot be done.
    pub fn height_after(&self, edit: &Edit) -> Option<u64> {
        Some(self.curve.highest_with(self.scope, &edit.deltas(self.account)?))
    }

    /// What `edit` saves, if anything.
    pub fn saves(&self, edit: &Edit) -> Option<Bytes> {
        if edit.is_empty() {
            return None;
        }
        self.height.checked_sub(self.height_after(edit)?).map(Bytes::new)
    }

    /// Whether `bytes` are enough to be told of.
    pub fn matters(&self, bytes: Bytes) -> bool {
        bytes.get() > self.height / LEAST
    }

    /// The remedy that `change` is, if it saves enough as `edit`.
    pub fn remedy(&self, change: Change, edit: &Edit) -> Option<Remedy> {
        let saves = self.saves(edit).filter(|&saves| self.matters(saves))?;
        Some(Remedy { change, saves, peak: Bytes::new(self.height) - saves })
    }

    pub fn life(&self, index: BufferIndex) -> Lifetime {
        self.usage.problem.buffer(index).lifetime
    }

    pub fn size(&self, index: BufferIndex) -> Bytes {
        self.usage.problem.buffer(index).size
    }

    /// Whether `index` holds memory at the moment.
    pub fn is_alive(&self, index: BufferIndex) -> bool {
        self.present.contains(&index)
    }

    /// The part of `time` within the scope.
    pub fn in_scope(&self, time: Lifetime) -> Lifetime {
        let lower = time.lower.max(self.scope.lower);
        Lifetime { lower, upper: time.upper.min(self.scope.upper).max(lower) }
    }

    /// The buffers of `ends` ending then.
    pub fn ending(&self, ends: &[Ending]) -> Edit {
        let mut edit = Edit::default();
        for &Ending { buffer, at } in ends {
            edit.end(&self.usage.problem, buffer, at);
        }
        edit
    }
}
