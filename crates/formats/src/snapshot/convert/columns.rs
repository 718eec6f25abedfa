//! The columns of a trace that only snapshots fill: what the program or the compiler said, the pool, and what the device
//! had left. Each is there when some event has a value for it.

use crate::snapshot::contents::words::Word;
use crate::snapshot::contents::{ABSENT, Contents, Context, UNRECORDED};

/// A column of this kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Column {
    UserMetadata,
    CompileContext,
    InternalMetadata,
    ForwardSite,
    Pool,
    DeviceFree,
}

impl Column {
    const ALL: [Self; 6] = [
        Self::UserMetadata,
        Self::CompileContext,
        Self::InternalMetadata,
        Self::ForwardSite,
        Self::Pool,
        Self::DeviceFree,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::UserMetadata => "user_metadata",
            Self::CompileContext => "compile_context",
            Self::InternalMetadata => "internal_metadata",
            Self::ForwardSite => "forward_site",
            Self::Pool => "pool",
            Self::DeviceFree => "device_free",
        }
    }
}

/// The columns that some event or segment of the snapshot fills.
pub(crate) fn filled(contents: &Contents) -> Vec<Column> {
    let contexts = contents.contexts.items();
    let some = |is_filled: fn(&Context) -> bool| contexts.iter().any(is_filled);
    let segments = contents.root.segments.clone().map(|segment| contents.segments[segment as usize].pool);
    let out_of_memory = Word::OutOfMemory.place();
    let is_filled = |column: &Column| match column {
        Column::UserMetadata => some(|context| is_said(context.user_metadata)),
        Column::CompileContext => some(|context| is_said(context.compilation)),
        Column::InternalMetadata => some(|context| is_said(context.internal_metadata)),
        Column::ForwardSite => some(|context| context.forward_stack != ABSENT),
        Column::Pool => {
            let events = contexts.iter().map(|context| context.pool);
            events.chain(segments.clone()).any(|pool| is_private(contents, pool))
        }
        Column::DeviceFree => {
            let mut events = (0..contents.events.len()).filter_map(|event| contents.events.get(event));
            events.any(|event| event.action == out_of_memory && event.address != UNRECORDED)
        }
    };
    Column::ALL.into_iter().filter(is_filled).collect()
}

/// Whether a text is more than a placeholder.
pub(crate) fn is_said(text: u32) -> bool {
    ![Word::Nothing, Word::NotAvailable].map(Word::place).contains(&text)
}

/// Whether a pool is another than the one that all share.
pub(crate) fn is_private(contents: &Contents, pool: u32) -> bool {
    pool != ABSENT && contents.pools.get(pool) != (0, 0)
}
