//! What is planned for a pattern keeps apart whatever was alive together in the recordings it was merged from.

use lowtide_core::{Align, Bytes, StreamId, ThreadId};
use proptest::prelude::*;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::patterns::pattern::Pattern;
use crate::plan::step_plan::Key;
use crate::planning::timeline::{self, Effort};
use crate::steps::recording::{End, Recording};
use crate::{Cursor, Lane};

/// An allocation of a lane: its size, and after how many more allocations of all lanes it is freed, if at all.
type Rough = (u8, u8);

/// Lanes put together in an order that `turns` decides.
fn recording(lanes: &[Vec<Rough>], turns: &[u8]) -> Recording {
    let mut recording = Recording::new(1);
    let mut next = vec![0; lanes.len()];
    let mut turns = turns.iter().cycle();
    let mut frees: Vec<(usize, crate::Ticket)> = Vec::new();
    let total: usize = lanes.iter().map(Vec::len).sum();
    while recording.allocs.len() < total {
        let turn = usize::from(*turns.next().unwrap()) % lanes.len();
        let Some(lane) =
            (turn..turn + lanes.len()).map(|lane| lane % lanes.len()).find(|&lane| next[lane] < lanes[lane].len())
        else {
            break;
        };
        let (size, life) = lanes[lane][next[lane]];
        next[lane] += 1;
        let count = recording.allocs.len();
        for (_, ticket) in frees.extract_if(.., |free| free.0 <= count) {
            recording.free(ticket, End::Within(count as u32));
        }
        let name = Lane { thread: ThreadId(lane as u64), stream: StreamId(0) };
        let key = Key { bytes: Bytes::new(u64::from(size) + 1), align: Align::new(4).unwrap() };
        let ticket = recording.alloc(name, key);
        if life < 40 {
            frees.push((count + 1 + usize::from(life), ticket));
        }
    }
    recording
}

/// Whether two blocks were alive together.
fn met(recording: &Recording, a: usize, b: usize) -> bool {
    let (first, second) = (a.min(b), a.max(b));
    match recording.allocs[first].end {
        End::Within(end) => end as usize > second,
        End::Alive | End::Next(_) => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_recording_that_was_merged_is_kept_apart(
        lanes in prop::collection::vec(prop::collection::vec((0_u8..50, 0_u8..44), 1..25), 1..4),
        turns in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 1..5),
        left_out in prop::collection::vec((0_usize..4, 0_usize..25), 5),
    ) {
        let mut pattern: Option<Pattern> = None;
        let mut recordings: Vec<Recording> = Vec::new();
        for (turns, (lane, place)) in turns.iter().zip(left_out) {
            let mut lanes = lanes.clone();
            if let Some(lane) = lanes.get_mut(lane)
                && place < lane.len()
                && lane.len() > 1
            {
                lane.remove(place);
            }
            let recording = recording(&lanes, turns);
            let places = if let Some(known) = &mut pattern {
                let matching = known.matching(&recording, &recording.tracks());
                known.merge(&recording, &matching)
            } else {
                let (new, places) = Pattern::new(&recording);
                pattern = Some(new);
                places
            };
            recordings.push(recording);
            let (known, recording) = (pattern.as_ref().unwrap(), recordings.last().unwrap());
            let shape = known.shape();
            prop_assert!(shape.is_sound(known.lanes().len()));
            let effort = Effort {
                time_limit: Duration::from_millis(4),
                threads: NonZeroUsize::MIN,
                cancel: &AtomicBool::new(false),
            };
            let layout = timeline::place(&shape, effort).unwrap();
            prop_assert!(timeline::holds(&shape, &layout));
            prop_assert!(layout.bound <= layout.height);
            // What was just recorded is all expected, so that places in the pattern can be counted off to those in the
            // shape.
            let shaped = known.expected_places();
            let spans: Vec<Option<(u64, u64)>> = places
                .iter()
                .map(|&place| {
                    let slot = shaped[place as usize].unwrap() as usize;
                    let offset = layout.offsets[slot]?.get();
                    Some((offset, offset + shape.slots[slot].key.bytes.get().next_multiple_of(4)))
                })
                .collect();
            for a in 0..spans.len() {
                for b in 0..a {
                    if let (Some(one), Some(other)) = (spans[a], spans[b])
                        && met(recording, a, b)
                    {
                        prop_assert!(one.1 <= other.0 || other.1 <= one.0, "{} and {} overlap", a, b);
                    }
                }
            }
            let plan = shape.plan(&layout, known.lanes());
            let first = plan.slots[0];
            prop_assert_eq!(Cursor::new(&plan, first.lane).next(&plan, first.bytes, first.align), Some(0));
        }
    }
}
