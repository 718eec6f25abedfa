//! Any program of requests: blocks never overlap, lie in memory that is there, and all of it goes back in the end.

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{Lag, Source};
use proptest::collection::vec;
use proptest::prelude::*;

use super::check::check;
use super::*;

#[derive(Clone, Debug)]
enum Operation {
    Alloc { bytes: u64, align: u32, stream: u64 },
    Free { which: usize },
    Record { which: usize, stream: u64 },
    Lag { nanoseconds: u64 },
    Advance { nanoseconds: u64 },
    Trim,
}

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..MIB, 3 => MIB..40 * MIB, 1 => 40 * MIB..300 * MIB, 1 => Just(GIB)]
}

fn operation() -> impl Strategy<Value = Operation> {
    let alloc = (bytes(), prop_oneof![9 => 0..10_u32, 1 => 10..24_u32], 0..3_u64)
        .prop_map(|(bytes, align, stream)| Operation::Alloc { bytes, align, stream });
    prop_oneof![
        10 => alloc,
        8 => any::<usize>().prop_map(|which| Operation::Free { which }),
        3 => (any::<usize>(), 0..3_u64).prop_map(|(which, stream)| Operation::Record { which, stream }),
        1 => (0..1000_u64).prop_map(|nanoseconds| Operation::Lag { nanoseconds }),
        2 => (0..1000_u64).prop_map(|nanoseconds| Operation::Advance { nanoseconds }),
        1 => Just(Operation::Trim),
    ]
}

fn options() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "max_split_size_mb:32",
        "roundup_power2_divisions:[1:8,16:4,>:2]",
        "garbage_collection_threshold:0.3,per_process_memory_fraction:0.6",
        "large_segment_size_mb:12,max_split_size_mb:64,max_non_split_rounding_mb:12",
    ])
}

/// The blocks in hand, and the device below.
struct Player<P> {
    device: Arc<Simulated>,
    pool: P,
    blocks: Vec<(Address, u64)>,
}

impl<P: Open> Player<P> {
    fn new(options: &str) -> Self {
        let device = device(Some(GIB));
        Self { pool: P::open(device.clone(), options), device, blocks: Vec::new() }
    }

    fn play(&mut self, operation: &Operation) {
        match *operation {
            Operation::Alloc { bytes, align, stream } => self.alloc(bytes, 1 << align, stream),
            Operation::Free { which } if !self.blocks.is_empty() => {
                let (address, _) = self.blocks.swap_remove(which % self.blocks.len());
                self.pool.free(address).unwrap();
                assert_eq!(self.pool.free(address), Err(Error::DoubleFree { address }));
            }
            Operation::Record { which, stream } if !self.blocks.is_empty() => {
                self.pool.record(self.blocks[which % self.blocks.len()].0, StreamId(stream)).unwrap();
            }
            Operation::Free { .. } | Operation::Record { .. } => {}
            Operation::Lag { nanoseconds } => self.device.set_lag(Lag::After(nanoseconds)),
            Operation::Advance { nanoseconds } => self.device.advance(nanoseconds),
            Operation::Trim => _ = self.pool.trim().unwrap(),
        }
        check(&self.pool);
        assert!(self.device.calls().committed >= self.pool.stats().reserved);
    }

    fn alloc(&mut self, bytes: u64, align: u64, stream: u64) {
        let request = Request { stream: StreamId(stream), ..aligned(bytes, align) };
        match self.pool.alloc(&request) {
            Ok(address) => {
                assert_eq!(address.0 % align, 0);
                let overlaps =
                    |&(other, size): &(Address, u64)| address.0 < other.0 + size && other.0 < address.0 + bytes;
                assert!(!self.blocks.iter().any(overlaps));
                assert!(self.lies_in_memory(address.0, bytes));
                self.blocks.push((address, bytes));
            }
            Err(Error::ZeroSize) => assert_eq!(bytes, 0),
            Err(Error::OutOfMemory { .. } | Error::TooLarge { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Whether memory is under a block: then no other can be put there.
    fn lies_in_memory(&self, address: u64, bytes: u64) -> bool {
        let granule = 2 * MIB;
        let first = address / granule * granule;
        let mut granules = (first..address + bytes).step_by(granule as usize);
        granules.all(|start| self.device.commit(lowtide_memory::Span::new(start, Bytes::new(granule))).is_err())
    }

    fn end(mut self) {
        for (address, _) in self.blocks.drain(..) {
            self.pool.free(address).unwrap();
        }
        self.pool.trim().unwrap();
        check(&self.pool);
        assert_eq!(self.pool.stats().live, Bytes::ZERO);
        assert_eq!(reserved(&self.pool), 0);
        assert_eq!(self.pool.inspect(|backing| backing.blocks.all().count()), 0);
        let calls = self.device.calls();
        assert_eq!(calls.committed, Bytes::ZERO);
        assert_eq!(calls.reserved, calls.released);
    }
}

fn play<P: Open>(options: &str, operations: &[Operation]) {
    let mut player: Player<P> = Player::new(options);
    for operation in operations {
        player.play(operation);
    }
    player.end();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_program_leaves_the_caching_allocator_whole(options in options(), operations in vec(operation(), 1..120)) {
        play::<Caching>(options, &operations);
    }

    #[test]
    fn any_program_leaves_expandable_segments_whole(options in options(), operations in vec(operation(), 1..120)) {
        play::<Expandable>(options, &operations);
    }

    #[test]
    fn no_line_of_options_panics_and_what_is_read_prints_the_same(
        line in "([a-z_0-9]{0,12}|max_split_size_mb|garbage_collection_threshold|roundup_power2_divisions|backend)\
                 [:,]([0-9.]{0,6}|\\[[0-9:>,]{0,12}\\]|native|True)[,:]?.{0,4}"
    ) {
        if let Ok(options) = line.parse::<crate::torch::TorchOptions>() {
            prop_assert_eq!(options.to_string().parse(), Ok(options));
        }
    }
}
