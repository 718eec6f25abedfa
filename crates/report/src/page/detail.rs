//! The level of detail of a memory map: which rectangles are drawn one by one and which together.
//!
//! Rectangles of about the same length and height form a class; within a class they are sorted along a curve that
//! keeps neighbours together, and every [`FAN`] of them in a row are a node, every so many nodes a node above, up to
//! one. Whoever draws starts at the top of each class and goes down only where a node is not thinner on the screen than a
//! spot, and has room for its rectangles; otherwise it draws the node, which says how many it stands for. That works at any zoom, also where
//! time and addresses are zoomed differently, and costs as much as there is to see.

use lowtide_core::{Bytes, Plan, Problem};

use super::hilbert;

/// How many rectangles or nodes make a node.
pub(crate) const FAN: usize = 16;

/// Below this many spots for each of its rectangles a node over rectangles is drawn as one.
pub(crate) const CROWDED: f64 = 0.5;

/// A rectangle of the map: time across, addresses up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Rectangle {
    times: [i64; 2],
    /// From the start of the first pool; pools lie one above the other.
    addresses: [u64; 2],
}

impl Rectangle {
    fn joined(self, other: Self) -> Self {
        Self {
            times: [self.times[0].min(other.times[0]), self.times[1].max(other.times[1])],
            addresses: [self.addresses[0].min(other.addresses[0]), self.addresses[1].max(other.addresses[1])],
        }
    }
}

/// How a layout is drawn at every zoom.
#[derive(Clone, Debug)]
pub struct Detail {
    rectangles: Vec<Rectangle>,
    sizes: Vec<Bytes>,
    /// The nodes of each class, level by level, those over the rectangles first.
    levels: Vec<Vec<Vec<Node>>>,
    /// Buffers that are there at some time with some bytes, class by class, neighbours together.
    pub order: Vec<u32>,
    /// How many of `order` each class has.
    pub classes: Vec<u32>,
    times: [i64; 2],
    height: u64,
}

/// Something to draw: one buffer, or several too small to be told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Merged {
    /// First and last time.
    pub times: [i64; 2],
    /// First and last address.
    pub addresses: [u64; 2],
    /// How many buffers it stands for.
    pub count: u32,
    /// What they have together.
    pub bytes: Bytes,
    /// The only one, or the first of them.
    pub buffer: u32,
}

impl Detail {
    /// The detail of `problem` laid out as `plan` says.
    pub fn new(problem: &Problem, plan: &Plan) -> Self {
        let floors = plan.floors();
        let rectangles: Vec<Rectangle> = problem
            .buffers
            .iter()
            .zip(&plan.placements)
            .map(|(buffer, placement)| {
                let start = (floors[placement.pool.get()] + placement.offset).get();
                Rectangle {
                    times: [buffer.lifetime.lower, buffer.lifetime.upper],
                    addresses: [start, start + buffer.size.get()],
                }
            })
            .collect();
        let is_there = |shape: &Rectangle| shape.times[0] < shape.times[1] && shape.addresses[0] < shape.addresses[1];
        let there = || rectangles.iter().filter(|shape| is_there(shape));
        let begin = there().map(|shape| shape.times[0]).min().unwrap_or(0);
        let end = there().map(|shape| shape.times[1]).max().unwrap_or(begin + 1);
        let mut keyed: Vec<((u32, u32), u64, u32)> = (0_u32..)
            .zip(&rectangles)
            .filter(|(_, shape)| is_there(shape))
            .map(|(buffer, shape)| {
                let (class, place) = sort_key(shape, begin);
                (class, place, buffer)
            })
            .collect();
        keyed.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        let by_class = || keyed.chunk_by(|a, b| a.0 == b.0);
        let leaf = |&(.., buffer): &((u32, u32), u64, u32)| Node {
            shape: rectangles[buffer as usize],
            count: 1,
            bytes: problem.buffers[buffer as usize].size,
        };
        Self {
            classes: by_class().map(|class| class.len() as u32).collect(),
            levels: by_class().map(|class| levels(&class.iter().map(leaf).collect::<Vec<_>>())).collect(),
            order: keyed.iter().map(|&(.., buffer)| buffer).collect(),
            sizes: problem.buffers.iter().map(|buffer| buffer.size).collect(),
            rectangles,
            times: [begin, end],
            height: plan.peak().get(),
        }
    }

    /// What to draw on a map of `width` by `height` spots, what is large first.
    pub fn seen(&self, width: f64, height: f64) -> Vec<Merged> {
        let across = width / self.times[1].abs_diff(self.times[0]).max(1) as f64;
        let up = height / self.height.max(1) as f64;
        let mut seen = Vec::new();
        let mut start = 0;
        for (&length, levels) in self.classes.iter().zip(&self.levels) {
            let class = &self.order[start..start + length as usize];
            start += length as usize;
            self.descend(class, levels, (levels.len() - 1, 0), (across, up), &mut seen);
        }
        seen
    }

    fn descend(
        &self,
        class: &[u32],
        levels: &[Vec<Node>],
        (level, place): (usize, usize),
        scale: (f64, f64),
        seen: &mut Vec<Merged>,
    ) {
        let node = &levels[level][place];
        let shape = node.shape;
        let wide = shape.times[1].abs_diff(shape.times[0]) as f64 * scale.0;
        let high = (shape.addresses[1] - shape.addresses[0]) as f64 * scale.1;
        let is_crowd = level == 0 && wide * high < f64::from(node.count) * CROWDED;
        let is_spot = wide < 1.0 || high < 1.0 || is_crowd;
        let first = place * FAN.pow(level as u32 + 1);
        if is_spot {
            let Node { shape: Rectangle { times, addresses }, count, bytes } = *node;
            seen.push(Merged { times, addresses, count, bytes, buffer: class[first] });
        } else if level == 0 {
            for &buffer in &class[first..(first + FAN).min(class.len())] {
                let Rectangle { times, addresses } = self.rectangles[buffer as usize];
                seen.push(Merged { times, addresses, count: 1, bytes: self.sizes[buffer as usize], buffer });
            }
        } else {
            for below in place * FAN..((place + 1) * FAN).min(levels[level - 1].len()) {
                self.descend(class, levels, (level - 1, below), scale, seen);
            }
        }
    }
}

/// The nodes over `leaves`, level by level up to the one over all.
fn levels(leaves: &[Node]) -> Vec<Vec<Node>> {
    let joined = |nodes: &[Node]| {
        let join = |a: Node, b: &Node| Node {
            shape: a.shape.joined(b.shape),
            count: a.count + b.count,
            bytes: a.bytes + b.bytes,
        };
        nodes.iter().skip(1).fold(nodes[0], join)
    };
    let mut levels: Vec<Vec<Node>> = vec![leaves.chunks(FAN).map(joined).collect()];
    while let Some(last) = levels.last().filter(|level| level.len() > 1) {
        let above = last.chunks(FAN).map(joined).collect();
        levels.push(above);
    }
    levels
}

#[derive(Clone, Copy, Debug)]
struct Node {
    shape: Rectangle,
    count: u32,
    bytes: Bytes,
}

/// The class of a shape, by powers of four of its length and height, and where it lies among those of its class.
fn sort_key(shape: &Rectangle, begin: i64) -> ((u32, u32), u64) {
    let length = shape.times[1].abs_diff(shape.times[0]);
    let size = shape.addresses[1] - shape.addresses[0];
    let class = (size.ilog2() / 2, length.ilog2() / 2);
    let column = (shape.times[0].abs_diff(begin) + length / 2) >> (2 * class.1);
    let row = (shape.addresses[0] + size / 2) >> (2 * class.0);
    // What does not fit the grid is brought nearer; only the order of what lies far apart becomes coarser.
    let excess = (column.max(row) / (hilbert::MOST + 1)).checked_ilog2().map_or(0, |bits| bits + 1);
    (class, hilbert::place(column >> excess, row >> excess))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::{Buffer, Lifetime, Placement, PoolIndex};
    use proptest::prelude::*;

    fn layout(shapes: &[(i64, i64, u64, u64)]) -> (Problem, Plan) {
        let buffer = |(n, &(lower, length, _, size)): (usize, &(i64, i64, u64, u64))| {
            Buffer::new(n.to_string(), Lifetime { lower, upper: lower + length }, Bytes::new(size))
        };
        let placement = |&(_, _, offset, _): &(i64, i64, u64, u64)| Placement {
            pool: PoolIndex::default(),
            offset: Bytes::new(offset),
        };
        let height = shapes.iter().map(|&(_, _, offset, size)| offset + size).max().unwrap_or(0);
        let plan = Plan {
            placements: shapes.iter().map(placement).collect(),
            heights: vec![Bytes::new(height)],
            lower_bound: Bytes::ZERO,
            proved: false,
        };
        (Problem::new(shapes.iter().enumerate().map(buffer).collect()), plan)
    }

    fn shapes() -> impl Strategy<Value = Vec<(i64, i64, u64, u64)>> {
        prop::collection::vec((-500_i64..500, 0_i64..300, 0_u64..1 << 20, 0_u64..1 << 16), 0..300)
    }

    proptest! {
        /// Whatever the size of the map, every buffer that is there is in exactly one thing drawn, inside it.
        #[test]
        fn nothing_is_lost_and_nothing_counted_twice(shapes in shapes(), width in 1.0..2000_f64, height in 1.0..1000_f64) {
            let (problem, plan) = layout(&shapes);
            let detail = Detail::new(&problem, &plan);
            let there: Vec<_> = shapes.iter().filter(|&&(_, length, _, size)| length > 0 && size > 0).collect();
            let seen = detail.seen(width, height);
            prop_assert_eq!(seen.iter().map(|merged| merged.count as usize).sum::<usize>(), there.len());
            let bytes: u64 = seen.iter().map(|merged| merged.bytes.get()).sum();
            prop_assert_eq!(bytes, there.iter().map(|shape| shape.3).sum::<u64>());
            for &&(lower, length, offset, size) in &there {
                let covers = |merged: &&Merged| merged.times[0] <= lower && lower + length <= merged.times[1]
                    && merged.addresses[0] <= offset && offset + size <= merged.addresses[1];
                prop_assert!(seen.iter().any(|merged| covers(&merged)));
            }
        }

        #[test]
        fn what_stands_for_several_is_small(shapes in shapes(), width in 1.0..2000_f64) {
            let (problem, plan) = layout(&shapes);
            let detail = Detail::new(&problem, &plan);
            let time = detail.times[1].abs_diff(detail.times[0]).max(1) as f64;
            for merged in detail.seen(width, 600.0).iter().filter(|merged| merged.count > 1) {
                let wide = merged.times[1].abs_diff(merged.times[0]) as f64 / time * width;
                let high = (merged.addresses[1] - merged.addresses[0]) as f64 / detail.height as f64 * 600.0;
                prop_assert!(wide < 1.0 || high < 1.0 || wide * high < FAN as f64 * CROWDED);
            }
        }
    }

    #[test]
    fn a_large_buffer_among_many_small_ones_is_drawn_by_itself() {
        let mut shapes: Vec<(i64, i64, u64, u64)> =
            (0..10_000).map(|n| (n % 1000, 1, 1_000_000 + n as u64, 1)).collect();
        shapes.push((0, 1000, 0, 1_000_000));
        let (problem, plan) = layout(&shapes);
        let seen = Detail::new(&problem, &plan).seen(300.0, 200.0);
        assert_eq!(seen[0].buffer, 10_000);
        assert_eq!(seen[0].count, 1);
        assert!(seen.len() < 1000, "{}", seen.len());
    }
}
