//! The words that a snapshot is written in. They are the first texts of every reading, so that a text's place tells
//! which word it is.

/// Words as constants: their places among the texts, in order.
macro_rules! words {
    ($($name:ident $text:literal)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        pub(crate) enum Word { $($name,)* }

        /// Every word, in the order of their places.
        pub(crate) const WORDS: &[(Word, &str)] = &[$((Word::$name, $text),)*];
    };
}

words! {
    // Keys; a record's set of them is a bit each.
    Name "name"
    Filename "filename"
    Line "line"
    Action "action"
    Addr "addr"
    Size "size"
    Stream "stream"
    TimeUs "time_us"
    CompileContext "compile_context"
    UserMetadata "user_metadata"
    InternalMetadata "internal_metadata"
    PoolId "pool_id"
    DeviceFree "device_free"
    Frames "frames"
    ForwardFrames "forward_frames"
    Address "address"
    TotalSize "total_size"
    AllocatedSize "allocated_size"
    ActiveSize "active_size"
    RequestedSize "requested_size"
    SegmentType "segment_type"
    SegmentPoolId "segment_pool_id"
    IsExpandable "is_expandable"
    Blocks "blocks"
    Device "device"
    State "state"
    Stage "stage"
    Segments "segments"
    DeviceTraces "device_traces"
    AllocatorSettings "allocator_settings"
    ExternalAnnotations "external_annotations"
    HostSegments "host_segments"
    HostTraces "host_traces"
    CudaSettings "PYTORCH_CUDA_ALLOC_CONF"
    AnySettings "PYTORCH_ALLOC_CONF"

    // Values.
    Alloc "alloc"
    FreeRequested "free_requested"
    FreeCompleted "free_completed"
    SegmentAlloc "segment_alloc"
    SegmentMap "segment_map"
    SegmentFree "segment_free"
    SegmentUnmap "segment_unmap"
    OutOfMemory "oom"
    Snapshot "snapshot"
    Annotate "annotate"
    ActiveAllocated "active_allocated"
    ActivePendingFree "active_pending_free"
    ActiveAwaitingFree "active_awaiting_free"
    Inactive "inactive"
    End "END"
    Unknown "??"
    NotAvailable "N/A"
    Nothing ""
}

impl Word {
    /// Its place among the texts.
    pub(crate) fn place(self) -> u32 {
        self as u32
    }

    /// The word at a place among the texts.
    pub(crate) fn at(place: u32) -> Option<Self> {
        WORDS.get(place as usize).map(|&(word, _)| word)
    }

    pub(crate) fn text(self) -> &'static str {
        WORDS[self as usize].1
    }

    /// The bit of a key.
    pub(crate) const fn bit(self) -> u64 {
        1 << (self as u32)
    }

    /// The bits of several keys.
    pub(crate) const fn bits(keys: &[Self]) -> u64 {
        let (mut bits, mut place) = (0, 0);
        while place < keys.len() {
            bits |= keys[place].bit();
            place += 1;
        }
        bits
    }
}
