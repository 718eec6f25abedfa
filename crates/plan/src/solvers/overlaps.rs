//! Which pieces are alive at the same time as a given one, answered in time proportional to the answer and in
//! memory proportional to the input.
//!
//! Pieces are kept in the order in which they begin; at chosen sections the list of what is alive is stored, so
//! often that no query looks at more than about twice what it returns, and so rarely that all lists together
//! are no longer than the input.

use crate::prepare::strip::{Piece, Strip};

/// An index of the pieces of a [`Strip`] by time.
pub(crate) struct Overlaps {
    /// Pieces by where they begin.
    by_start: Vec<Entry>,
    /// For each section, where in `by_start` its pieces begin.
    starts: Vec<u32>,
    /// Sections at which the living are listed, ascending.
    checkpoints: Vec<u32>,
    /// Where in `alive` the list of each checkpoint begins.
    lists: Vec<u32>,
    alive: Vec<Entry>,
}

/// A piece and the body it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub piece: Piece,
    pub body: u32,
}

impl Overlaps {
    pub fn new(strip: &Strip) -> Self {
        let mut by_start: Vec<Entry> = (0..strip.len())
            .flat_map(|body| strip.pieces(body).iter().map(move |&piece| Entry { piece, body: body as u32 }))
            .collect();
        by_start.sort_by_key(|entry| entry.piece.lower);
        let mut starts = vec![0_u32; strip.sections as usize + 1];
        for entry in &by_start {
            starts[entry.piece.lower as usize + 1] += 1;
        }
        for section in 1..starts.len() {
            starts[section] += starts[section - 1];
        }
        let mut index = Self { by_start, starts, checkpoints: vec![0], lists: vec![0, 0], alive: Vec::new() };
        index.list_the_living(strip.sections);
        index
    }

    fn list_the_living(&mut self, sections: u32) {
        let mut living: Vec<Entry> = Vec::new();
        let mut begun = 0;
        for section in 1..sections {
            let previous = self.started(section - 1..section);
            begun += previous.len();
            living.extend_from_slice(previous);
            // Dropping the dead only when as many pieces began as are listed keeps this pass linear.
            if begun >= living.len() / 2 {
                living.retain(|entry| entry.piece.upper > section);
                if begun >= living.len() {
                    self.alive.extend_from_slice(&living);
                    self.checkpoints.push(section);
                    self.lists.push(self.alive.len() as u32);
                    begun = 0;
                }
            }
        }
    }

    /// The pieces that begin in `sections`.
    fn started(&self, sections: std::ops::Range<u32>) -> &[Entry] {
        &self.by_start[self.starts[sections.start as usize] as usize..self.starts[sections.end as usize] as usize]
    }

    /// Calls `visit` for every piece that is alive in one of the sections of `piece`, itself included, and
    /// returns how many pieces were looked at.
    pub fn visit(&self, piece: &Piece, mut visit: impl FnMut(&Entry)) -> u64 {
        let checkpoint = self.checkpoints.partition_point(|&section| section <= piece.lower) - 1;
        let listed = &self.alive[self.lists[checkpoint] as usize..self.lists[checkpoint + 1] as usize];
        let before = self.started(self.checkpoints[checkpoint]..piece.lower);
        for entry in listed.iter().chain(before).filter(|entry| entry.piece.upper > piece.lower) {
            visit(entry);
        }
        let during = self.started(piece.lower..piece.upper);
        for entry in during {
            visit(entry);
        }
        (listed.len() + before.len() + during.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::strip::{RawBody, RawPiece};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn visits_exactly_what_overlaps(lives in prop::collection::vec((0_i64..60, 1_i64..30), 1..80)) {
            let raw = lives
                .iter()
                .map(|&(lower, length)| RawBody {
                    pieces: vec![RawPiece { lower, upper: lower + length, rise: 0, size: 1 }],
                    size: 1,
                    align: 1,
                    pin: None,
                })
                .collect();
            let strip = Strip::new(raw, 0);
            let index = Overlaps::new(&strip);
            prop_assert!(index.alive.len() <= 2 * lives.len());
            for (body, &(lower, length)) in lives.iter().enumerate() {
                let mut seen = Vec::new();
                index.visit(&strip.pieces(body)[0], |entry| seen.push(entry.body as usize));
                seen.sort_unstable();
                let expected: Vec<usize> = (0..lives.len())
                    .filter(|&other| lives[other].0 < lower + length && lower < lives[other].0 + lives[other].1)
                    .collect();
                prop_assert_eq!(seen, expected);
            }
        }
    }
}
