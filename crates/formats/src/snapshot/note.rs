//! What a reader of a snapshot should be told: what was put together, what was left out, and what does not add up.

use std::fmt;

use lowtide_core::Bytes;

/// A remark about a snapshot; displays as one line for people.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Note {
    /// There is no history; the trace holds what was there when the snapshot was taken.
    NoHistory,
    /// Blocks were there before the first event.
    BlocksBefore {
        /// How many.
        count: u64,
        /// How large together.
        bytes: Bytes,
    },
    /// Blocks that the program let go of and the device has not finished with at the end; since nothing tells when it
    /// finishes, no row tells that they were let go.
    PendingFrees {
        /// How many.
        count: u64,
        /// How large together.
        bytes: Bytes,
    },
    /// Frees whose block was not there.
    FreesOfNothing {
        /// How many.
        count: u64,
    },
    /// Blocks whose address was given out again, although no event freed them.
    UnrecordedFrees {
        /// How many.
        count: u64,
    },
    /// Blocks that the events leave alive and the segments do not have.
    NotInSegments {
        /// How many.
        count: u64,
        /// How large together.
        bytes: Bytes,
    },
    /// Blocks that the segments have and the events do not leave alive, or not with this size.
    NotInEvents {
        /// How many.
        count: u64,
        /// How large together.
        bytes: Bytes,
    },
    /// Reserved or released ranges that do not fit the segments.
    OddSegments {
        /// How many.
        count: u64,
    },
    /// Events that no row stands for.
    EventsWithoutRow {
        /// What they are called.
        kind: String,
        /// How many.
        count: u64,
        /// Whether this kind of event is known.
        known: bool,
    },
    /// Records about pinned host memory, which has no place in a trace of devices.
    HostMemory {
        /// How many.
        count: u64,
    },
    /// Steps that ended before the first event.
    StepsBefore {
        /// How many.
        count: u64,
    },
    /// Steps that have no place in the trace, since no event has a time.
    StepsWithoutTimes {
        /// How many.
        count: u64,
    },
    /// Steps that have no place in the trace, since there are no events.
    StepsWithoutEvents {
        /// How many.
        count: u64,
    },
    /// Annotations that do not tell where steps end.
    OtherAnnotations {
        /// How many.
        count: u64,
    },
    /// Events with an earlier time than one before them on their device, where they stay all the same.
    FallingTimes {
        /// How many.
        count: u64,
    },
    /// Some events have no time, so that the events of several devices are not in order.
    NoTimes {
        /// How many.
        count: u64,
    },
    /// Texts that were cut because of their length.
    CutTexts {
        /// How many.
        count: u64,
        /// The most bytes of one.
        limit: u64,
    },
    /// Stacks that were left out because all of them together are too long.
    StacksLeftOut {
        /// How many.
        count: u64,
        /// The most bytes of all.
        limit: u64,
    },
    /// A key of a kind of record was not read.
    UnreadKey {
        /// The kind of record.
        record: &'static str,
        /// The key, shortened.
        key: String,
        /// In how many records.
        count: u64,
    },
    /// More keys were not read than are named.
    UnreadKeys {
        /// How many times.
        count: u64,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHistory => {
                f.write_str("the snapshot has no history: the trace holds only what was there when it was taken")
            }
            Self::BlocksBefore { count, bytes } => {
                let blocks = several(*count, "block", "blocks");
                write!(f, "the run had begun before the recording: {blocks} ({bytes}) already there")
            }
            Self::PendingFrees { count, bytes } => {
                let blocks = several(*count, "block", "blocks");
                write!(f, "{blocks} ({bytes}) let go of, but still in use by the device at the end: held throughout")
            }
            Self::FreesOfNothing { count } => {
                let frees = several(*count, "free of a block", "frees of blocks");
                write!(f, "{frees} whose allocation was not recorded")
            }
            Self::UnrecordedFrees { count } => {
                write!(f, "{} given out again without a recorded free", several(*count, "block was", "blocks were"))
            }
            Self::NotInSegments { count, bytes } => {
                let blocks = several(*count, "block", "blocks");
                write!(f, "{blocks} ({bytes}) left alive by the events, but not in the segments")
            }
            Self::NotInEvents { count, bytes } => {
                let blocks = several(*count, "block", "blocks");
                write!(f, "{blocks} ({bytes}) in the segments, but not left alive by the events")
            }
            Self::OddSegments { count } => {
                let ranges = several(*count, "range was", "ranges were");
                write!(f, "{ranges} reserved or released in a way that does not fit the segments")
            }
            Self::EventsWithoutRow { kind, count, known } => {
                let events = several(*count, "event", "events");
                write!(f, "{events} of {}kind `{kind}` left out", if *known { "" } else { "unknown " })
            }
            Self::HostMemory { count } => {
                write!(f, "{} of pinned host memory left out", several(*count, "record", "records"))
            }
            Self::StepsBefore { count } => {
                write!(f, "{} before the first recorded event left out", several(*count, "step", "steps"))
            }
            Self::StepsWithoutTimes { count } => {
                let steps = several(*count, "step", "steps");
                write!(f, "{steps} left out: no event has a time to place {} by", it_or_them(*count))
            }
            Self::StepsWithoutEvents { count } => {
                let steps = several(*count, "step", "steps");
                write!(f, "{steps} left out: there are no events to place {} among", it_or_them(*count))
            }
            Self::OtherAnnotations { count } => {
                let annotations = several(*count, "annotation", "annotations");
                write!(f, "{annotations} that mark no end of a step left out")
            }
            Self::FallingTimes { count } => {
                let events = several(*count, "event has", "events have");
                write!(f, "{events} an earlier time than one before on the same device; the order is kept")
            }
            Self::NoTimes { count } => {
                let events = several(*count, "event has", "events have");
                write!(f, "{events} no time; those of different devices may be out of order")
            }
            Self::CutTexts { count, limit } => {
                write!(f, "{} cut to {}", several(*count, "text was", "texts were"), Bytes::new(*limit))
            }
            Self::StacksLeftOut { count, limit } => {
                let stacks = several(*count, "stack", "stacks");
                write!(f, "{stacks} left out: the text of all of them exceeds {}", Bytes::new(*limit))
            }
            Self::UnreadKey { record, key, count } => {
                write!(f, "`{key}` of {record} was not read ({})", several(*count, "time", "times"))
            }
            Self::UnreadKeys { count } => {
                write!(f, "{} of other names not read", several(*count, "key", "keys"))
            }
        }
    }
}

fn it_or_them(count: u64) -> &'static str {
    if count == 1 { "it" } else { "them" }
}

fn several(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_read_as_sentences_for_one_and_for_many() {
        let shown = [
            Note::BlocksBefore { count: 431, bytes: Bytes::new(1_288_490_189) },
            Note::BlocksBefore { count: 1, bytes: Bytes::new(8) },
            Note::FreesOfNothing { count: 2 },
            Note::EventsWithoutRow { kind: "foo".into(), count: 12, known: false },
            Note::EventsWithoutRow { kind: "snapshot".into(), count: 1, known: true },
            Note::StepsBefore { count: 3 },
            Note::UnreadKey { record: "a frame", key: "fx_node_op".into(), count: 7 },
        ]
        .map(|note| note.to_string());
        assert_eq!(
            shown,
            [
                "the run had begun before the recording: 431 blocks (1.2 GiB) already there",
                "the run had begun before the recording: 1 block (8 B) already there",
                "2 frees of blocks whose allocation was not recorded",
                "12 events of unknown kind `foo` left out",
                "1 event of kind `snapshot` left out",
                "3 steps before the first recorded event left out",
                "`fx_node_op` of a frame was not read (7 times)",
            ]
        );
    }
}
