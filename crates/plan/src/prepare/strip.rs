//! The problem as solvers see it: rigid bodies of pieces over numbered sections of time, to be stacked above a
//! floor.
//!
//! A [`Body`] is what moves as one: a buffer, a set of aliases, a contiguous group. Its [`Piece`]s say which
//! bytes of it are occupied when. Time is cut into as few sections as tell apart what may overlap, so that
//! solvers count in small integers.

/// Some bytes of a body during some sections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// First section in which the bytes are occupied.
    pub lower: u32,
    /// First section in which they no longer are.
    pub upper: u32,
    /// Where they begin, from the body's offset.
    pub rise: u64,
    /// How many they are.
    pub size: u64,
}

/// What moves as one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Body {
    /// Its pieces, in [`Strip::pieces`].
    first: u32,
    count: u32,
    /// Bytes from its offset to its highest end.
    pub size: u64,
    /// What its offset must be a multiple of.
    pub align: u64,
    /// The offset it must have.
    pub pin: Option<u64>,
}

/// Bodies to be placed at or above a floor, as low as they go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strip {
    pub bodies: Vec<Body>,
    pub pieces: Vec<Piece>,
    /// How many sections time has.
    pub sections: u32,
    /// No unpinned body lies below this.
    pub floor: u64,
    /// All offsets are multiples of this.
    pub unit: u64,
}

/// A body before time is cut into sections: its pieces carry event times.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RawBody {
    pub pieces: Vec<RawPiece>,
    pub size: u64,
    pub align: u64,
    pub pin: Option<u64>,
}

/// A piece in event times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawPiece {
    pub lower: i64,
    pub upper: i64,
    pub rise: u64,
    pub size: u64,
}

impl Strip {
    /// Cuts time so that two pieces share a section exactly when they share an event.
    ///
    /// A new section begins only where something starts after something ended: any other section would hold a
    /// subset of what its neighbour holds.
    pub fn new(raw: Vec<RawBody>, floor: u64) -> Self {
        let total: usize = raw.iter().map(|body| body.pieces.len()).sum();
        let mut times: Vec<(i64, bool, u32)> = Vec::with_capacity(2 * total);
        let mut pieces = Vec::with_capacity(total);
        let mut bodies = Vec::with_capacity(raw.len());
        for body in raw {
            let first = pieces.len() as u32;
            for piece in body.pieces.iter().filter(|piece| piece.lower < piece.upper && piece.size > 0) {
                let index = pieces.len() as u32;
                times.push((piece.lower, true, index));
                times.push((piece.upper, false, index));
                pieces.push(Piece { lower: 0, upper: 0, rise: piece.rise, size: piece.size });
            }
            let count = pieces.len() as u32 - first;
            bodies.push(Body { first, count, size: body.size, align: body.align, pin: body.pin });
        }
        times.sort_unstable();
        let (mut section, mut ended) = (0, false);
        for (_, starts, piece) in times {
            if starts {
                section += u32::from(ended);
                ended = false;
                pieces[piece as usize].lower = section;
            } else {
                ended = true;
                pieces[piece as usize].upper = section + 1;
            }
        }
        let sections = if pieces.is_empty() { 0 } else { section + 1 };
        let mut strip = Self { bodies, pieces, sections, floor, unit: 1 };
        strip.unit = strip.common_unit();
        strip
    }

    /// The largest number that divides every offset that any piece can have.
    fn common_unit(&self) -> u64 {
        let aligns = self.bodies.iter().map(|body| body.align);
        let rises = self.pieces.iter().map(|piece| piece.rise);
        aligns.chain(rises).reduce(greatest_common_divisor).unwrap_or(1).max(1)
    }

    pub fn len(&self) -> usize {
        self.bodies.len()
    }

    /// The pieces of body `index`.
    pub fn pieces(&self, index: usize) -> &[Piece] {
        let body = &self.bodies[index];
        &self.pieces[body.first as usize..(body.first + body.count) as usize]
    }

    /// The sections from the first to the last piece of body `index`; empty for a body that is never alive.
    pub fn hull(&self, index: usize) -> std::ops::Range<u32> {
        let pieces = self.pieces(index);
        let lower = pieces.iter().map(|piece| piece.lower).min().unwrap_or(0);
        let upper = pieces.iter().map(|piece| piece.upper).max().unwrap_or(0);
        lower..upper
    }

    /// The bytes that the unpinned bodies alive in each section take at least: sizes rounded up to the unit, but for
    /// the rounding of the one on top.
    pub fn loads(&self) -> Vec<u64> {
        self.loads_of(|body| body.pin.is_none())
    }

    /// The same for the bodies that `count`.
    fn loads_of(&self, count: impl Fn(&Body) -> bool) -> Vec<u64> {
        let counted = (0..self.len()).filter(|&body| count(&self.bodies[body]));
        let pieces: Vec<&Piece> = counted.flat_map(|body| self.pieces(body)).collect();
        let mut loads = self.rounded_sums(&pieces);
        if self.unit > 1 {
            for (load, padding) in loads.iter_mut().zip(self.largest_paddings(pieces)) {
                *load -= padding;
            }
        }
        loads
    }

    /// For each section, the largest rounding of a piece alive in it.
    fn largest_paddings(&self, mut by_padding: Vec<&Piece>) -> Vec<u64> {
        let padding = |piece: &Piece| align_up(piece.size, self.unit) - piece.size;
        by_padding.sort_by_key(|piece| std::cmp::Reverse(padding(piece)));
        let mut paddings = vec![0; self.sections as usize];
        // Where to look for the next section that no larger padding has reached.
        let mut next: Vec<u32> = (0..=self.sections).collect();
        for piece in by_padding {
            let mut section = unreached(&mut next, piece.lower);
            while section < piece.upper {
                paddings[section as usize] = padding(piece);
                next[section as usize] = section + 1;
                section = unreached(&mut next, section);
            }
        }
        paddings
    }

    fn rounded_sums(&self, pieces: &[&Piece]) -> Vec<u64> {
        let mut loads = vec![0_u64; self.sections as usize + 1];
        for piece in pieces {
            let size = align_up(piece.size, self.unit);
            loads[piece.lower as usize] = loads[piece.lower as usize].wrapping_add(size);
            loads[piece.upper as usize] = loads[piece.upper as usize].wrapping_sub(size);
        }
        let mut load = 0_u64;
        for slot in &mut loads {
            load = load.wrapping_add(*slot);
            *slot = load;
        }
        loads.pop();
        loads
    }

    /// The unpinned bodies cannot all end below this: what of them is alive at once, and the largest.
    pub fn lower_bound(&self) -> u64 {
        let free = self.bodies.iter().filter(|body| body.pin.is_none());
        let alone = free.map(|body| align_up(self.floor, body.align) + body.size).max().unwrap_or(0);
        let stacked = self.loads().into_iter().max().filter(|&load| load > 0).map_or(0, |load| self.floor + load);
        alone.max(stacked)
    }

    /// Nothing that holds all bodies, pinned ones included, is lower than this: what is alive at once, the largest body
    /// and the highest pin.
    pub fn total_bound(&self) -> u64 {
        let stacked = self.loads_of(|_| true).into_iter().max().unwrap_or(0);
        stacked.max(self.lower_bound()).max(self.pinned_height())
    }

    /// The same strip with some of its bodies only, in the order given.
    pub fn select(&self, bodies: &[u32]) -> Self {
        let mut part = Self { floor: self.floor, unit: self.unit, ..Self::default() };
        for &body in bodies {
            let first = part.pieces.len() as u32;
            part.pieces.extend_from_slice(self.pieces(body as usize));
            part.bodies.push(Body { first, ..self.bodies[body as usize].clone() });
        }
        let lowest = part.pieces.iter().map(|piece| piece.lower).min().unwrap_or(0);
        for piece in &mut part.pieces {
            piece.lower -= lowest;
            piece.upper -= lowest;
        }
        part.sections = part.pieces.iter().map(|piece| piece.upper).max().unwrap_or(0);
        part
    }

    /// The strips into which this one falls where nothing lives on both sides of a border, each with its bodies'
    /// indices here.
    pub fn split(&self) -> Vec<(Self, Vec<u32>)> {
        let mut by_start: Vec<u32> = (0..self.len() as u32).collect();
        by_start.sort_by_key(|&body| self.hull(body as usize).start);
        let mut end = 0;
        let mut parts: Vec<Vec<u32>> = Vec::new();
        for body in by_start {
            let hull = self.hull(body as usize);
            match parts.last_mut() {
                Some(part) if hull.start < end => part.push(body),
                _ => parts.push(vec![body]),
            }
            end = end.max(hull.end);
        }
        parts.into_iter().map(|bodies| (self.select(&bodies), bodies)).collect()
    }

    /// The highest end of an unpinned body at `offsets`.
    pub fn height(&self, offsets: &[u64]) -> u64 {
        let free = self.bodies.iter().zip(offsets).filter(|(body, _)| body.pin.is_none());
        free.map(|(body, offset)| offset + body.size).max().unwrap_or(0)
    }

    /// The highest end of a pinned body.
    pub fn pinned_height(&self) -> u64 {
        self.bodies.iter().filter_map(|body| Some(body.pin? + body.size)).max().unwrap_or(0)
    }

    /// Whether every unpinned body begins at its offset in all its sections.
    pub fn is_flat(&self) -> bool {
        let flat =
            |body: usize| self.bodies[body].pin.is_some() || self.pieces(body).iter().all(|piece| piece.rise == 0);
        (0..self.len()).all(flat)
    }
}

/// The smallest multiple of `align` at or above `value`.
pub(crate) fn align_up(value: u64, align: u64) -> u64 {
    if align == 1 { value } else { value.next_multiple_of(align) }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Follows `next` from `section` to one that leads to itself, shortening the way.
fn unreached(next: &mut [u32], section: u32) -> u32 {
    let mut end = section;
    while next[end as usize] != end {
        end = next[end as usize];
    }
    let mut at = section;
    while next[at as usize] != end {
        at = std::mem::replace(&mut next[at as usize], end);
    }
    end
}
