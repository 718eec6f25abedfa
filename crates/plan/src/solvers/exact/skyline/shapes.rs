//! Bodies as the complete search sees them, and which of them are interchangeable.

use crate::prepare::strip::{Strip, align_up};
use crate::solvers::exact::scatter::scatter;

/// Stands for no body.
pub(crate) const NOBODY: u32 = u32::MAX;

/// A body as the search sees it: all its pieces begin at its offset.
pub(crate) struct Shape {
    /// First section in which it lives.
    pub lower: u32,
    /// First section after those in which it lives.
    pub upper: u32,
    /// Whether there are sections between the two in which it does not.
    pub gapped: bool,
    /// Its highest end, from its offset.
    pub size: u64,
    /// Its lowest end in any section, from its offset, rounded to the strip's unit.
    pub thickness: u64,
    pub align: u64,
    /// An identical body that must be placed before this one.
    pub twin: u32,
    /// What it adds to the fingerprint of a state in which it waits.
    pub key: u128,
}

/// The shapes of all bodies of a strip.
pub(super) fn shapes(strip: &Strip) -> Vec<Shape> {
    let mut shapes: Vec<Shape> = (0..strip.len())
        .map(|index| {
            let hull = strip.hull(index);
            let pieces = strip.pieces(index);
            let lived: u32 = pieces.iter().map(|piece| piece.upper - piece.lower).sum();
            let thinnest = pieces.iter().map(|piece| piece.size).min().unwrap_or(0);
            Shape {
                lower: hull.start,
                upper: hull.end,
                gapped: lived < hull.end - hull.start,
                size: strip.bodies[index].size,
                thickness: align_up(thinnest, strip.unit),
                align: strip.bodies[index].align,
                twin: NOBODY,
                key: scatter(index as u64 | 1 << 63),
            }
        })
        .collect();
    let simple = |&body: &u32| strip.pieces(body as usize).len() == 1 && strip.bodies[body as usize].pin.is_none();
    let looks = |body: u32| {
        let shape = &shapes[body as usize];
        (shape.lower, shape.upper, shape.size, shape.thickness, shape.align)
    };
    let mut alike: Vec<u32> = (0..strip.len() as u32).filter(simple).collect();
    alike.sort_by_key(|&body| looks(body));
    let twins: Vec<(u32, u32)> =
        alike.windows(2).filter(|pair| looks(pair[0]) == looks(pair[1])).map(|pair| (pair[0], pair[1])).collect();
    for (first, second) in twins {
        shapes[second as usize].twin = first;
    }
    shapes
}
