//! Where a body could go: the offsets that what is already placed leaves free, and what it would cost to take
//! one that is not.

use crate::prepare::strip::{Strip, align_up};
use crate::solvers::overlaps::Overlaps;

/// Offsets that a placed piece denies a body: `start <= offset < end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Blocked {
    pub start: u64,
    pub end: u64,
    pub by: u32,
}

/// Pieces that are looked at for one unit of work.
pub(crate) const PIECES_PER_UNIT: u64 = 16;

/// Which free offset is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fit {
    /// The lowest.
    First,
    /// The bottom of the hole that is filled best.
    Best,
}

/// The offsets of bodies placed so far, over an index of who meets whom.
pub(crate) struct Room<'a> {
    pub strip: &'a Strip,
    overlaps: &'a Overlaps,
    pub offsets: Vec<u64>,
    pub placed: Vec<bool>,
    blocked: Vec<Blocked>,
    /// Pieces looked at so far.
    pub work: u64,
}

impl<'a> Room<'a> {
    /// Nothing is placed but what is pinned.
    pub fn new(strip: &'a Strip, overlaps: &'a Overlaps) -> Self {
        let offsets = strip.bodies.iter().map(|body| body.pin.unwrap_or(strip.floor)).collect();
        let placed = strip.bodies.iter().map(|body| body.pin.is_some()).collect();
        Self { strip, overlaps, offsets, placed, blocked: Vec::new(), work: 0 }
    }

    /// What placed bodies deny `body`, by ascending start.
    pub fn blocked(&mut self, body: usize) -> &[Blocked] {
        self.blocked.clear();
        for piece in self.strip.pieces(body) {
            let reach = piece.rise + piece.size;
            self.work += self.overlaps.visit(piece, |other| {
                if self.placed[other.body as usize] && other.body as usize != body {
                    let bottom = self.offsets[other.body as usize] + other.piece.rise;
                    let top = bottom + other.piece.size;
                    if top > piece.rise {
                        let start = (bottom + 1).saturating_sub(reach);
                        self.blocked.push(Blocked { start, end: top - piece.rise, by: other.body });
                    }
                }
            });
        }
        self.blocked.sort_unstable_by_key(|blocked| blocked.start);
        &self.blocked
    }

    /// A free offset for `body`.
    pub fn find(&mut self, body: usize, fit: Fit) -> u64 {
        let (floor, align) = (self.strip.floor, self.strip.bodies[body].align);
        let blocked = self.blocked(body);
        let mut offset = align_up(floor, align);
        let mut best: Option<(u64, u64)> = None;
        for next in blocked {
            if offset < next.start {
                let spare = next.start - 1 - offset;
                match fit {
                    Fit::First => return offset,
                    Fit::Best if best.is_none_or(|(least, _)| spare < least) => best = Some((spare, offset)),
                    Fit::Best => {}
                }
            }
            if next.end > offset {
                offset = align_up(next.end, align);
            }
        }
        best.map_or(offset, |(_, offset)| offset)
    }

    /// Puts `body` at `offset`.
    pub fn place(&mut self, body: usize, offset: u64) {
        self.offsets[body] = offset;
        self.placed[body] = true;
    }
}
