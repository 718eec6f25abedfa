//! Usage files: how a run used memory, small enough to lie inside a report. A header in JSON says what there is;
//! columns of variable-length numbers hold what there is much of; all of it is gzip.
//!
//! ```text
//! "lowtide usage 1\n"   what this is
//! 4 bytes               length of the header, little-endian
//! header                JSON: names, relations, texts, layouts, and the columns with their lengths in bytes
//! columns               one behind the other
//! ```
//!
//! A number in a column is written in groups of seven bits, the lowest first, with the eighth bit set on all but the
//! last. A *difference* is a number minus the one before it, modulo 2^64, folded so that its sign is the lowest bit.

mod columns;
mod header;
pub(crate) mod html;
mod layouts;
mod read;
mod values;
mod write;

pub use html::{USAGE_ELEMENT, usage_element};
pub(crate) use read::read;
pub use write::write_usage;

use lowtide_core::Usage;

/// What a usage file begins with, once it is decompressed.
pub(crate) const MAGIC: &[u8] = b"lowtide usage 1\n";

/// A usage with the name of what it is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// What it was called: a file's name, most often.
    pub name: String,
    /// What its reader should know.
    pub notes: Vec<String>,
    /// How it used memory.
    pub usage: Usage,
}

#[cfg(test)]
mod tests {
    use lowtide_core::{
        Align, Buffer, BufferIndex, Bytes, Class, Clock, Gap, Label, Layout, Lifetime, Origin, Placement, Plan, Pool,
        PoolIndex, Problem, StepEnd, StepIndex, StreamId, TextIndex, Window,
    };

    use super::*;
    use crate::ErrorKind;

    /// One of everything.
    fn full() -> Run {
        let life = |lower, upper| Lifetime { lower, upper };
        let index = BufferIndex::new;
        let mut first = Buffer::new("layers.0.weight", life(-3, 9), Bytes::new(1 << 40));
        first.class = Class::Persistent;
        first.pin = Some(Bytes::ZERO);
        let mut second = Buffer::new("layers.0.bias", life(0, 7), Bytes::new(64));
        second.align = Align::new(64).unwrap();
        second.gaps = vec![
            Gap { lifetime: life(1, 2), window: None },
            Gap { lifetime: life(3, 5), window: Some(Window { lower: Bytes::new(8), upper: Bytes::new(16) }) },
        ];
        let mut third = Buffer::new("x", life(2, 2), Bytes::ZERO);
        third.pool = PoolIndex::new(1);
        let spill = Pool { capacity: Some(Bytes::new(99)), spill: Some(PoolIndex::new(0)), ..Pool::unlimited("side") };
        let mut problem = Problem::new(vec![first, second, third, Buffer::new("y", life(2, 4), Bytes::new(64))]);
        problem.pools.push(spill);
        problem.aliases.push(vec![index(1), index(3)]);
        problem.may_share.push((index(3), index(0)));
        let placement = |pool, offset| Placement { pool: PoolIndex::new(pool), offset: Bytes::new(offset) };
        let plan = Plan {
            placements: vec![placement(0, 0), placement(0, 1 << 40), placement(1, 0), placement(0, 1 << 40)],
            heights: vec![Bytes::new((1 << 40) + 64), Bytes::ZERO],
            lower_bound: Bytes::new(7),
            proved: true,
        };
        let label = Label {
            category: Some(TextIndex(1)),
            site: Some(TextIndex(0)),
            stream: StreamId(u64::MAX),
            freed: Some(5),
        };
        let usage = Usage {
            problem,
            labels: vec![Label::default(), label, Label::default(), Label { category: None, freed: Some(-7), ..label }],
            texts: vec!["train.py:3 step; main".into(), "gradient \u{1f30a} </script>".into()],
            clock: Some(Clock { first: -3, every: 7, readings: vec![5, 5, 1 << 50] }),
            steps: vec![StepEnd { step: StepIndex(4), at: 8 }],
            reserved: vec![(-3, Bytes::new(128)), (5, Bytes::ZERO)],
            layouts: vec![Layout { origin: Origin::Planned, plan }],
        };
        Run { name: "a run".to_owned(), notes: vec!["it began late".to_owned()], usage }
    }

    fn written(run: &Run) -> Vec<u8> {
        let mut out = Vec::new();
        write_usage(&run.name, &run.notes, &run.usage, &mut out).unwrap();
        out
    }

    #[test]
    fn what_is_written_is_read_again() {
        let run = full();
        assert_eq!(read(&*written(&run)).unwrap(), run);
        let empty = Run { name: String::new(), notes: Vec::new(), usage: Usage::of(Problem::new(Vec::new())) };
        assert_eq!(read(&*written(&empty)).unwrap(), empty);
    }

    #[test]
    fn names_that_count_up_take_no_room() {
        let buffers = |prefix: &str| -> Usage {
            let life = Lifetime { lower: 0, upper: 1 };
            let names = (0..10_000).map(|n| Buffer::new(format!("{prefix}{n}"), life, Bytes::new(1)));
            Usage::of(Problem::new(names.collect()))
        };
        let size = |usage: Usage| written(&Run { name: String::new(), notes: Vec::new(), usage }).len();
        assert!(size(buffers("")) < 1_000);
        assert!(size(buffers("tensor_")) < 30_000);
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_refused_or_read_without_a_panic() {
        use std::io::{Read, Write};
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&*written(&full())).read_to_end(&mut plain).unwrap();
        let packed = |bytes: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        for end in 0..plain.len() {
            let error = read(&*packed(&plain[..end])).unwrap_err();
            assert!(matches!(error.kind, ErrorKind::BadUsage(_) | ErrorKind::BadJson(_)), "cut at {end}: {error:?}");
        }
        for place in 0..plain.len() {
            for change in [1, 0x80, 0xff] {
                let mut damaged = plain.clone();
                damaged[place] ^= change;
                if let Ok(run) = read(&*packed(&damaged)) {
                    let Usage { problem, labels, texts, layouts, clock, .. } = &run.usage;
                    problem.check().unwrap();
                    assert_eq!(labels.len(), problem.buffers.len());
                    let named = labels.iter().flat_map(|label| [label.category, label.site]).flatten();
                    assert!(named.into_iter().all(|text| (text.0 as usize) < texts.len()));
                    assert!(layouts.iter().all(|layout| layout.plan.placements.len() == labels.len()));
                    assert!(layouts.iter().all(|layout| layout.plan.heights.len() == problem.pools.len()));
                    assert!(clock.iter().all(|clock| clock.readings.is_sorted()));
                }
            }
        }
        assert!(read(&*packed(&[&*plain, b"more"].concat())).is_err());
    }
}
