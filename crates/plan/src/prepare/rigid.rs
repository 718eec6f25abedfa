//! From buffers to bodies: everything whose addresses are tied together becomes one rigid body.
//!
//! Aliases lie at the same offset, members of a contiguous group one behind the other, and in-place pairs that
//! were chosen to share at the same offset again. A union of buffers that keeps their distances carries all
//! three.

use std::collections::{BTreeMap, HashMap};

use lowtide_core::{Align, BufferIndex, Bytes, Lifetime, Problem, ProblemError};

use crate::prepare::strip::{RawBody, RawPiece, align_up};

/// Buffers tied together, and how far each lies above the body's offset.
#[derive(Clone, Debug)]
pub(crate) struct Rigid {
    pub members: Vec<(BufferIndex, u64)>,
    pub body: RawBody,
}

/// Which buffers are tied together, at which distance.
#[derive(Clone)]
pub(crate) struct Ties {
    parent: Vec<u32>,
    /// Distance above the parent.
    above: Vec<i64>,
}

impl Ties {
    /// What the problem's aliases and contiguous groups tie together.
    pub fn new(problem: &Problem) -> Result<Self, ProblemError> {
        let mut ties =
            Self { parent: (0..problem.buffers.len() as u32).collect(), above: vec![0; problem.buffers.len()] };
        for (number, set) in problem.aliases.iter().enumerate() {
            for pair in set.windows(2) {
                ties.tie(pair[0], pair[1], 0).ok_or_else(|| impossible(format!("alias set {number}")))?;
            }
        }
        let alias_aligns = if problem.contiguous.is_empty() { HashMap::new() } else { problem.alias_aligns() };
        for (number, group) in problem.contiguous.iter().enumerate() {
            for (pair, distance) in group.windows(2).zip(distances(problem, group, &alias_aligns)) {
                ties.tie(pair[0], pair[1], distance).ok_or_else(|| impossible(format!("contiguous group {number}")))?;
            }
        }
        ties.flatten();
        Ok(ties)
    }

    /// Makes every way to a root one step long.
    fn flatten(&mut self) {
        for index in 0..self.parent.len() {
            // Roots have smaller indices than what is tied to them, so the way from the parent is short already.
            let (root, above) = self.root(BufferIndex::new(index));
            (self.parent[index], self.above[index]) = (root, above);
        }
    }

    /// The buffer that stands for all that are tied to `buffer`, and how far `buffer` lies above it.
    pub fn root(&self, buffer: BufferIndex) -> (u32, i64) {
        let (mut at, mut above) = (buffer.get() as u32, 0);
        while self.parent[at as usize] != at {
            above += self.above[at as usize];
            at = self.parent[at as usize];
        }
        (at, above)
    }

    /// The same as [`root`](Self::root), making the way shorter for the next time.
    fn shorten(&mut self, buffer: BufferIndex) -> (u32, i64) {
        let (root, total) = self.root(buffer);
        let (mut at, mut above) = (buffer.get(), total);
        while self.parent[at] != at as u32 {
            let (next, step) = (self.parent[at] as usize, self.above[at]);
            (self.parent[at], self.above[at]) = (root, above);
            above -= step;
            at = next;
        }
        (root, total)
    }

    /// Ties `upper` at `distance` above `lower`; `None` when they are already tied at another distance.
    pub fn tie(&mut self, lower: BufferIndex, upper: BufferIndex, distance: i64) -> Option<()> {
        let (low_root, low_above) = self.shorten(lower);
        let (high_root, high_above) = self.shorten(upper);
        let apart = low_above + distance - high_above;
        if low_root == high_root {
            return (apart == 0).then_some(());
        }
        // The smaller index stays the root, so that bodies keep the order of their buffers.
        if low_root < high_root {
            self.parent[high_root as usize] = low_root;
            self.above[high_root as usize] = apart;
        } else {
            self.parent[low_root as usize] = high_root;
            self.above[low_root as usize] = -apart;
        }
        Some(())
    }

    /// The groups of buffers tied together, in the order of their first members.
    pub fn groups(&self) -> Vec<Vec<(BufferIndex, i64)>> {
        let mut group_of = vec![u32::MAX; self.parent.len()];
        let mut groups: Vec<Vec<(BufferIndex, i64)>> = Vec::new();
        for index in 0..self.parent.len() {
            let buffer = BufferIndex::new(index);
            let (root, above) = self.root(buffer);
            let group = &mut group_of[root as usize];
            if *group == u32::MAX {
                *group = groups.len() as u32;
                groups.push(Vec::new());
            }
            groups[*group as usize].push((buffer, above));
        }
        groups
    }
}

/// How far each member of a contiguous group begins above the one before.
fn distances(problem: &Problem, group: &[BufferIndex], alias_aligns: &HashMap<BufferIndex, Align>) -> Vec<i64> {
    let mut distances = Vec::new();
    let mut from = 0;
    for pair in group.windows(2) {
        let end = from + problem.buffer(pair[0]).size.get();
        let align = alias_aligns.get(&pair[1]).copied().unwrap_or(problem.buffer(pair[1]).align);
        let next = align_up(end, align.get());
        distances.push((next - from) as i64);
        from = next;
    }
    distances
}

fn impossible(what: String) -> ProblemError {
    ProblemError::Contradiction { what, why: "it puts two buffers at two distances from each other".to_owned() }
}

/// Makes a body of every group of buffers that `ties` holds together.
pub(crate) fn bodies(problem: &Problem, ties: &Ties) -> Result<Vec<Rigid>, ProblemError> {
    ties.groups().into_iter().map(|group| rigid(problem, group)).collect()
}

fn rigid(problem: &Problem, group: Vec<(BufferIndex, i64)>) -> Result<Rigid, ProblemError> {
    if let [(only, _)] = group[..] {
        let buffer = problem.buffer(only);
        let mut pieces = Vec::with_capacity(1 + 2 * buffer.gaps.len());
        push_pieces(problem, only, 0, &mut pieces);
        let (size, align) = (buffer.size.get(), buffer.align.get());
        let body = RawBody { pieces, size, align, pin: buffer.pin.map(Bytes::get) };
        return Ok(Rigid { members: vec![(only, 0)], body });
    }
    let lowest = group.iter().map(|&(_, above)| above).min().unwrap_or(0);
    let members: Vec<(BufferIndex, u64)> =
        group.into_iter().map(|(buffer, above)| (buffer, (above - lowest) as u64)).collect();
    let name = || format!("what ties buffer `{}` to others", problem.buffer(members[0].0).id);
    let contradiction = |why: &str| ProblemError::Contradiction { what: name(), why: why.to_owned() };
    let align = members
        .iter()
        .try_fold(Align::ONE, |common, &(buffer, _)| common.checked_common_multiple(problem.buffer(buffer).align))
        .filter(|align| {
            members
                .iter()
                .all(|&(buffer, rise)| problem.buffer(buffer).align.holds(Bytes::new(rise)) && align.get() < 1 << 62)
        })
        .ok_or_else(|| contradiction("their alignments cannot all hold"))?;
    let mut pin = None;
    for &(buffer, rise) in &members {
        if let Some(wanted) = problem.buffer(buffer).pin {
            let base = wanted.get().checked_sub(rise).filter(|&base| pin.is_none_or(|pin| pin == base));
            pin = Some(base.ok_or_else(|| contradiction("their pins are at other distances"))?);
        }
    }
    let size = members.iter().map(|&(buffer, rise)| rise + problem.buffer(buffer).size.get()).max().unwrap_or(0);
    let mut pieces = Vec::new();
    for &(buffer, rise) in &members {
        push_pieces(problem, buffer, rise, &mut pieces);
    }
    if pin.is_some_and(|pin| !align.holds(Bytes::new(pin))) {
        return Err(contradiction("a pin does not suit the alignments of all of them"));
    }
    let body = RawBody { pieces: union(pieces), size, align: align.get(), pin };
    Ok(Rigid { members, body })
}

/// What a buffer occupies when: its life cut at its gaps, and the windows that stay during them.
fn push_pieces(problem: &Problem, index: BufferIndex, rise: u64, pieces: &mut Vec<RawPiece>) {
    let buffer = problem.buffer(index);
    let mut push = |Lifetime { lower, upper }, rise, size| {
        if lower < upper && size > 0 {
            pieces.push(RawPiece { lower, upper, rise, size });
        }
    };
    let mut from = buffer.lifetime.lower;
    for gap in &buffer.gaps {
        push(Lifetime { lower: from, upper: gap.lifetime.lower }, rise, buffer.size.get());
        if let Some(window) = gap.window {
            push(gap.lifetime, rise + window.lower.get(), (window.upper - window.lower).get());
        }
        from = gap.lifetime.upper;
    }
    push(Lifetime { lower: from, upper: buffer.lifetime.upper }, rise, buffer.size.get());
}

/// The same bytes at the same times without counting any twice.
fn union(mut pieces: Vec<RawPiece>) -> Vec<RawPiece> {
    pieces.sort_unstable_by_key(|piece| (piece.rise, piece.lower));
    let levels: Vec<&[RawPiece]> = pieces.chunk_by(|a, b| a.rise == b.rise).collect();
    let top = |level: &[RawPiece]| level.iter().map(|piece| piece.rise + piece.size).max().unwrap_or(0);
    // Members one behind the other, each with its aliases: no level reaches into the next.
    if levels.windows(2).all(|pair| top(pair[0]) <= pair[1][0].rise) {
        return stacked(levels.into_iter().map(union_of_level));
    }
    union_of_any(&pieces)
}

/// Levels on top of each other, as one where they touch and live at the same times.
fn stacked(levels: impl Iterator<Item = Vec<RawPiece>>) -> Vec<RawPiece> {
    let mut result: Vec<RawPiece> = Vec::new();
    let mut last: Vec<RawPiece> = Vec::new();
    for level in levels {
        let fits = |(below, above): (&RawPiece, &RawPiece)| {
            (below.lower, below.upper, below.rise + below.size) == (above.lower, above.upper, above.rise)
        };
        if last.len() == level.len() && last.iter().zip(&level).all(fits) {
            for (below, above) in last.iter_mut().zip(level) {
                below.size += above.size;
            }
        } else {
            result.append(&mut last);
            last = level;
        }
    }
    result.append(&mut last);
    result
}

/// The union of pieces that begin at one height: at each time, the largest.
fn union_of_level(level: &[RawPiece]) -> Vec<RawPiece> {
    let ends = level.iter().flat_map(|piece| [(piece.lower, true, piece.size), (piece.upper, false, piece.size)]);
    let mut events: Vec<(i64, bool, u64)> = ends.collect();
    events.sort_unstable();
    let mut alive: BTreeMap<u64, u32> = BTreeMap::new();
    let mut result: Vec<RawPiece> = Vec::new();
    let mut from = i64::MIN;
    for (time, begins, size) in events {
        if let Some((&largest, _)) = alive.last_key_value()
            && from < time
        {
            let piece = RawPiece { lower: from, upper: time, rise: level[0].rise, size: largest };
            match result.last_mut() {
                Some(last) if last.upper == from && last.size == largest => last.upper = time,
                _ => result.push(piece),
            }
        }
        from = time;
        if begins {
            *alive.entry(size).or_insert(0) += 1;
        } else if let Some(count) = alive.get_mut(&size) {
            *count -= 1;
            if *count == 0 {
                alive.remove(&size);
            }
        }
    }
    result
}

/// The union of pieces at any heights: takes time quadratic in their number.
fn union_of_any(pieces: &[RawPiece]) -> Vec<RawPiece> {
    let mut times: Vec<i64> = pieces.iter().flat_map(|piece| [piece.lower, piece.upper]).collect();
    times.sort_unstable();
    times.dedup();
    let mut result: Vec<RawPiece> = Vec::new();
    for window in times.windows(2) {
        let (lower, upper) = (window[0], window[1]);
        let mut ranges: Vec<(u64, u64)> = pieces
            .iter()
            .filter(|piece| piece.lower <= lower && upper <= piece.upper)
            .map(|piece| (piece.rise, piece.rise + piece.size))
            .collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (bottom, top) in ranges {
            match merged.last_mut() {
                Some(last) if bottom <= last.1 => last.1 = last.1.max(top),
                _ => merged.push((bottom, top)),
            }
        }
        for (bottom, top) in merged {
            let piece = RawPiece { lower, upper, rise: bottom, size: top - bottom };
            let grows =
                |last: &&mut RawPiece| last.upper == lower && (last.rise, last.size) == (piece.rise, piece.size);
            match result.iter_mut().rev().find(grows) {
                Some(last) => last.upper = upper,
                None => result.push(piece),
            }
        }
    }
    result
}
