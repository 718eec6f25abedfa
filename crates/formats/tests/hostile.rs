//! Every file in `tests/hostile` is wrong in the way its name says, and is refused with the error and on the row
//! that the table here gives. A file without an entry fails, and so does an entry without a file.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use lowtide_core::ProblemError;
use lowtide_formats::{Error, ErrorKind, Input, PickleFault as Fault, PlanFile};

/// `name => row, pattern` as a table of functions that tell whether an error is the expected one.
macro_rules! table {
    ($($name:literal => $row:expr, $pattern:pat,)*) => {
        [$(($name, $row, stringify!($pattern), (|kind| matches!(kind, $pattern)) as fn(&ErrorKind) -> bool)),*]
    };
}

use ErrorKind as Kind;

type Expectation = (&'static str, Option<u64>, &'static str, fn(&ErrorKind) -> bool);

#[rustfmt::skip]
fn expectations() -> Vec<Expectation> {
    table! {
        // Tables in general.
        "empty.csv" => None, Kind::Empty,
        "blank_lines_only.csv" => None, Kind::Empty,
        "missing_column.csv" => Some(1), Kind::MissingColumn { column: "upper", .. },
        "duplicate_column.csv" => Some(1), Kind::DuplicateColumn { .. },
        "unknown_header.csv" => Some(1), Kind::UnknownHeader { .. },
        "no_header.csv" => Some(1), Kind::UnknownHeader { .. },
        "semicolons.csv" => Some(1), Kind::OtherSeparator { separator: "semicolons" },
        "watch_page.html" => None, Kind::WatchPage,
        "nul_bytes.csv" => None, Kind::UnknownBinary { .. },
        "ragged_row.csv" => Some(3), Kind::RaggedRow { found: 3, expected: 4 },
        "ragged_row_too_long.csv" => Some(2), Kind::RaggedRow { found: 5, expected: 4 },
        "not_utf8.csv" => Some(3), Kind::NotUtf8,
        "utf16.csv" => Some(1), Kind::NotUtf8,
        "unclosed_quote.csv" => Some(3), Kind::UnclosedQuote,
        "stray_quote.csv" => Some(2), Kind::StrayQuote,
        "truncated.csv.gz" => Some(200), Kind::TruncatedGzip,
        "header_of_gzip_only.csv.gz" => Some(1), Kind::TruncatedGzip,
        "damaged.csv.gz" => Some(402), Kind::CorruptGzip(_),

        // Lifetimes.
        "duplicate_id.csv" => Some(4), Kind::BadProblem(ProblemError::DuplicateBuffer { .. }),
        "negative_size.csv" => Some(3), Kind::OutOfRange { column: "size", .. },
        "overflowing_size.csv" => Some(2), Kind::OutOfRange { column: "size", .. },
        "fractional_size.csv" => Some(2), Kind::NotANumber { column: "size", .. },
        "sizes_sum_overflow.csv" => Some(3), Kind::BadProblem(ProblemError::TooLarge { .. }),
        "upper_before_lower.csv" => Some(3), Kind::BadProblem(ProblemError::BackwardLifetime { .. }),
        "overflowing_time.csv" => Some(2), Kind::OutOfRange { column: "upper", .. },
        "overflowing_inclusive_end.csv" => Some(2), Kind::OutOfRange { column: "end", .. },
        "empty_id.csv" => Some(3), Kind::MissingValue { column: "id" },
        "empty_size.csv" => Some(2), Kind::MissingValue { column: "size" },
        "upper_and_end.csv" => Some(1), Kind::DuplicateColumn { .. },
        "id_and_buffer.csv" => Some(1), Kind::DuplicateColumn { .. },
        "alignment_and_align.csv" => Some(1), Kind::DuplicateColumn { .. },
        "bad_gap.csv" => Some(3), Kind::BadGap { .. },
        "gap_outside_lifetime.csv" => Some(2), Kind::BadProblem(ProblemError::BadGap { .. }),
        "gap_window_outside_buffer.csv" => Some(2), Kind::BadProblem(ProblemError::BadGap { .. }),
        "zero_alignment.csv" => Some(3), Kind::ZeroAlignment,
        "misaligned_offset.csv" => Some(2), Kind::BadProblem(ProblemError::MisalignedPin { .. }),
        "negative_offset.csv" => Some(2), Kind::OutOfRange { column: "offset", .. },
        "unknown_class.csv" => Some(2), Kind::UnknownClass { .. },

        // Traces.
        "free_without_alloc.csv" => Some(3), Kind::NotAllocated { event: "free", .. },
        "done_without_alloc.csv" => Some(2), Kind::NotAllocated { event: "done", .. },
        "record_without_alloc.csv" => Some(2), Kind::NotAllocated { event: "record", .. },
        "done_before_free.csv" => Some(3), Kind::DoneBeforeFree { .. },
        "done_twice.csv" => Some(5), Kind::NotAllocated { event: "done", .. },
        "double_free.csv" => Some(4), Kind::FreedTwice { .. },
        "alloc_twice.csv" => Some(3), Kind::AllocatedTwice { .. },
        "negative_bytes.csv" => Some(2), Kind::OutOfRange { column: "bytes", .. },
        "overflowing_bytes.csv" => Some(2), Kind::OutOfRange { column: "bytes", .. },
        "free_of_other_bytes.csv" => Some(3), Kind::UnexpectedBytes { event: "free", bytes: 16 },
        "unknown_event.csv" => Some(3), Kind::UnknownEvent { .. },
        "steps_backwards.csv" => Some(3), Kind::StepOutOfOrder { step: 1, last: 2 },
        "step_zero.csv" => Some(2), Kind::StepZero,
        "step_without_number.csv" => Some(2), Kind::MissingValue { column: "id" },
        "stream_not_a_number.csv" => Some(2), Kind::NotANumber { column: "stream", .. },
        "trace_without_bytes.csv" => Some(1), Kind::MissingColumn { column: "bytes", .. },
        "address_not_a_number.csv" => Some(3), Kind::NotANumber { column: "address", .. },
        "overflowing_address.csv" => Some(2), Kind::OutOfRange { column: "address", .. },
        "negative_address.csv" => Some(2), Kind::OutOfRange { column: "address", .. },
        "block_beyond_the_last_address.csv" => Some(2), Kind::OutOfRange { column: "address", .. },
        "range_beyond_the_last_address.csv" => Some(2), Kind::OutOfRange { column: "address", .. },
        "address_of_a_step.csv" => Some(3), Kind::UnexpectedValue { event: "step", column: "address", .. },
        "free_at_another_address.csv" => Some(3), Kind::UnexpectedValue { event: "free", column: "address", .. },
        "reserve_with_an_id.csv" => Some(2), Kind::UnexpectedValue { event: "reserve", column: "id", .. },
        "release_without_bytes.csv" => Some(3), Kind::MissingValue { column: "bytes" },

        // Plans.
        "offset_not_a_number.plan.csv" => Some(3), Kind::NotANumber { column: "offset", .. },
        "duplicate_column.plan.csv" => Some(1), Kind::DuplicateColumn { .. },
        "offset_missing.plan.csv" => Some(3), Kind::MissingValue { column: "offset" },
        "no_offset_column.plan.csv" => Some(1), Kind::MissingColumn { column: "offset", .. },
        "offset_missing.plan.json" => Some(2), Kind::MissingValue { column: "offset" },
        "problem_as_a_plan.plan.json" => None, Kind::WrongKind { .. },

        // Memory snapshots.
        "runs_os_system.pickle" => None, Kind::RefusedOpcode { why: "can run code", .. },
        "stack_global.pickle" => None, Kind::RefusedOpcode { why: "can run code", .. },
        "global_inside_a_snapshot.pickle" => None, Kind::RefusedOpcode { why: "can run code", .. },
        "reduce.pickle" => None, Kind::RefusedOpcode { why: "can run code", .. },
        "newobj.pickle" => None, Kind::RefusedOpcode { why: "can run code", .. },
        "newobj_ex.pickle" => None, Kind::RefusedOpcode { why: "can run code", .. },
        "build.pickle" => None, Kind::RefusedOpcode { why: "can run code", .. },
        "persid.pickle" => None, Kind::RefusedOpcode { why: "can run code", .. },
        "binpersid.pickle" => None, Kind::RefusedOpcode { why: "can run code", .. },
        "ext1.pickle" => None, Kind::RefusedOpcode { why: "can run code", .. },
        "ext4.pickle" => None, Kind::RefusedOpcode { why: "can run code", .. },
        "inst.pickle" => None, Kind::RefusedOpcode { why: "can run code", .. },
        "obj.pickle" => None, Kind::RefusedOpcode { why: "can run code", .. },
        "set.pickle" => None, Kind::RefusedOpcode { why: "no memory snapshot has", .. },
        "bytes.pickle" => None, Kind::RefusedOpcode { why: "no memory snapshot has", .. },
        "out_of_band_buffer.pickle" => None, Kind::RefusedOpcode { why: "no memory snapshot has", .. },
        "text_of_protocol_0.pickle" => None, Kind::RefusedOpcode { why: "no memory snapshot has", .. },
        "pop.pickle" => None, Kind::RefusedOpcode { why: "no memory snapshot has", .. },
        "no_opcode.pickle" => None, Kind::RefusedOpcode { why: "is no opcode", .. },
        "protocol_9.pickle" => None, Kind::BadPickle { fault: Fault::Protocol { version: 9 }, .. },
        "protocol_only.pickle" => None, Kind::BadPickle { fault: Fault::Truncated, .. },
        "truncated.pickle" => None, Kind::BadPickle { fault: Fault::Truncated, .. },
        "trailing.pickle" => None, Kind::BadPickle { fault: Fault::Trailing, .. },
        "two_pickles.pickle" => None, Kind::BadPickle { fault: Fault::Trailing, .. },
        "setitems_without_a_mark.pickle" => None, Kind::BadPickle { fault: Fault::NoMark { opcode: "SETITEMS" }, .. },
        "appends_without_a_mark.pickle" => None, Kind::BadPickle { fault: Fault::NoMark { opcode: "APPENDS" }, .. },
        "tuple_without_a_mark.pickle" => None, Kind::BadPickle { fault: Fault::NoMark { opcode: "TUPLE" }, .. },
        "setitems_without_a_dict.pickle" => None, Kind::BadPickle { fault: Fault::Underflow { opcode: "SETITEMS" }, .. },
        "append_below_a_mark.pickle" => None, Kind::BadPickle { fault: Fault::Underflow { opcode: "APPEND" }, .. },
        "memoize_nothing.pickle" => None, Kind::BadPickle { fault: Fault::Underflow { opcode: "MEMOIZE" }, .. },
        "stop_without_a_value.pickle" => None, Kind::BadPickle { fault: Fault::Underflow { opcode: "STOP" }, .. },
        "key_without_a_value.pickle" => None, Kind::BadPickle { fault: Fault::OddItems, .. },
        "append_to_a_dict.pickle" => None, Kind::BadPickle { fault: Fault::NotAContainer { opcode: "APPENDS", found: "a dict" }, .. },
        "set_items_of_a_list.pickle" => None, Kind::BadPickle { fault: Fault::NotAContainer { opcode: "SETITEMS", found: "a list" }, .. },
        "unknown_memo.pickle" => None, Kind::BadPickle { fault: Fault::UnknownMemo { index: 5 }, .. },
        "huge_memo_get.pickle" => None, Kind::BadPickle { fault: Fault::UnknownMemo { index: u32::MAX }, .. },
        "huge_memo_put.pickle" => None, Kind::BadPickle { fault: Fault::MemoOutOfOrder { expected: 0, .. }, .. },
        "memo_put_twice.pickle" => None, Kind::BadPickle { fault: Fault::MemoOutOfOrder { index: 0, expected: 1 }, .. },
        "self_containing_list.pickle" => None, Kind::BadPickle { fault: Fault::Recursive, .. },
        "self_containing_dict.pickle" => None, Kind::BadPickle { fault: Fault::Recursive, .. },
        "circle_of_list_and_dict.pickle" => None, Kind::BadPickle { fault: Fault::Recursive, .. },
        "deep_marks.pickle" => None, Kind::BadPickle { fault: Fault::TooMany { what: "containers in each other", .. }, .. },
        "deep_lists.pickle" => None, Kind::BadPickle { fault: Fault::TooMany { what: "containers in each other", .. }, .. },
        "billion_laughs.pickle" => None, Kind::BadPickle { fault: Fault::NotASnapshot { .. }, .. },
        "huge_long4.pickle" => None, Kind::BadPickle { fault: Fault::NumberTooLong { .. }, .. },
        "negative_long4.pickle" => None, Kind::BadPickle { fault: Fault::NumberTooLong { length: -1, .. }, .. },
        "huge_text.pickle" => None, Kind::BadPickle { fault: Fault::TextTooLong { .. }, .. },
        "four_gigabytes_of_text.pickle" => None, Kind::BadPickle { fault: Fault::TextTooLong { .. }, .. },
        "text_that_ends_early.pickle" => None, Kind::BadPickle { fault: Fault::Truncated, .. },
        "not_utf8.pickle" => None, Kind::BadPickle { fault: Fault::NotUtf8, .. },
        "list_of_segments.pickle" => None, Kind::BadPickle { fault: Fault::NotASnapshot { found: "a list" }, .. },
        "dict_without_segments.pickle" => None, Kind::BadPickle { fault: Fault::NotASnapshot { found: "a dict" }, .. },
        "none.pickle" => None, Kind::BadPickle { fault: Fault::NotASnapshot { found: "None" }, .. },
        "segments_are_numbers.pickle" => None, Kind::BadPickle { fault: Fault::WrongType { key: "segments", .. }, .. },
        "segments_are_a_dict.pickle" => None, Kind::BadPickle { fault: Fault::WrongType { key: "segments", .. }, .. },
        "traces_without_devices.pickle" => None, Kind::BadPickle { fault: Fault::WrongType { key: "device_traces", .. }, .. },
        "traces_are_text.pickle" => None, Kind::BadPickle { fault: Fault::WrongType { key: "device_traces", found: "text", .. }, .. },
        "mixed_events.pickle" => None, Kind::BadPickle { fault: Fault::WrongType { key: "device_traces", .. }, .. },
        "annotations_are_none.pickle" => None, Kind::BadPickle { fault: Fault::WrongType { key: "external_annotations", .. }, .. },
        "negative_size.pickle" => None, Kind::BadPickle { fault: Fault::OutOfRange { key: "size", value: -1, .. }, .. },
        "negative_time.pickle" => None, Kind::BadPickle { fault: Fault::OutOfRange { key: "time_us", .. }, .. },
        "size_is_text.pickle" => None, Kind::BadPickle { fault: Fault::WrongType { key: "size", found: "text", .. }, .. },
        "size_is_a_fraction.pickle" => None, Kind::BadPickle { fault: Fault::WrongType { key: "size", found: "a fraction", .. }, .. },
        "action_is_a_number.pickle" => None, Kind::BadPickle { fault: Fault::WrongType { key: "action", .. }, .. },
        "address_beyond_63_bits.pickle" => None, Kind::BadPickle { fault: Fault::WrongType { key: "addr", .. }, .. },
        "event_without_address.pickle" => None, Kind::BadPickle { fault: Fault::MissingKey { key: "addr", .. }, .. },
        "event_without_size.pickle" => None, Kind::BadPickle { fault: Fault::MissingKey { key: "size", .. }, .. },
        "frames_are_text.pickle" => None, Kind::BadPickle { fault: Fault::WrongType { key: "frames", .. }, .. },
        "frame_without_name.pickle" => None, Kind::BadPickle { fault: Fault::MissingKey { record: "a frame", key: "name" }, .. },
        "line_is_text.pickle" => None, Kind::BadPickle { fault: Fault::WrongType { key: "line", .. }, .. },
        "segment_without_size.pickle" => None, Kind::BadPickle { fault: Fault::MissingKey { record: "a segment", key: "total_size" }, .. },
        "device_out_of_range.pickle" => None, Kind::BadPickle { fault: Fault::OutOfRange { key: "device", .. }, .. },
        "pool_is_text.pickle" => None, Kind::BadPickle { fault: Fault::WrongType { key: "segment_pool_id", .. }, .. },
        "block_without_size.pickle" => None, Kind::BadPickle { fault: Fault::MissingKey { record: "a block", key: "size" }, .. },
        "event_used_twice.pickle" => None, Kind::BadPickle { fault: Fault::UsedTwice, .. },
        "trace_used_twice.pickle" => None, Kind::BadPickle { fault: Fault::UsedTwice, .. },
        "blocks_in_two_segments.pickle" => None, Kind::BadPickle { fault: Fault::UsedTwice, .. },
        "times_too_far_apart.pickle" => None, Kind::OutOfRange { column: "time_us", .. },
        "snapshot_filled_twice.pickle" => None, Kind::BadPickle { fault: Fault::Recursive, .. },
        "cut.pickle.gz" => None, Kind::TruncatedGzip,

        // Problem JSON.
        "wrong_kind.json" => None, Kind::WrongKind { .. },
        "no_kind.json" => None, Kind::WrongKind { .. },
        "unknown_version.json" => None, Kind::UnknownVersion { .. },
        "version_is_a_list.json" => None, Kind::UnknownVersion { .. },
        "unknown_field.json" => Some(8), Kind::BadJson(_),
        "unknown_buffer_field.json" => Some(6), Kind::BadJson(_),
        "dangling_alias.json" => None, Kind::UnknownBuffer { .. },
        "dangling_may_share.json" => None, Kind::UnknownBuffer { .. },
        "dangling_contiguous.json" => None, Kind::UnknownBuffer { .. },
        "may_share_of_three.json" => Some(8), Kind::BadJson(_),
        "dangling_pool.json" => None, Kind::UnknownPool { .. },
        "dangling_spill.json" => None, Kind::UnknownPool { .. },
        "spill_circle.json" => None, Kind::BadProblem(ProblemError::BadPools(_)),
        "contradicting_aliases.json" => None, Kind::BadProblem(ProblemError::Contradiction { .. }),
        "duplicate_id.json" => None, Kind::BadProblem(ProblemError::DuplicateBuffer { .. }),
        "duplicate_field.json" => Some(8), Kind::BadJson(_),
        "negative_size.json" => Some(6), Kind::BadJson(_),
        "overflowing_size.json" => Some(6), Kind::BadJson(_),
        "zero_alignment.json" => Some(6), Kind::BadJson(_),
        "empty_id.json" => Some(6), Kind::BadJson(_),
        "truncated.json" => Some(5), Kind::BadJson(_),
        "trailing_text.json" => Some(9), Kind::BadJson(_),
        "not_utf8.json" => Some(6), Kind::BadJson(_),
        "deep_nesting.json" => Some(1), Kind::BadJson(_),
        "deep_nesting_array.json" => Some(1), Kind::BadJson(_),
        "buffer_as_a_list.json" => Some(5), Kind::BadJson(_),
        "list_of_problems.json" => Some(1), Kind::BadJson(_),
    }
    .into()
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile")
}

/// Reads a file as what its name says it is.
fn refusal(name: &str) -> Option<Error> {
    let bytes = fs::read(folder().join(name)).expect("the file is listed");
    if name.contains(".plan.") { PlanFile::read(bytes.as_slice()).err() } else { Input::read(bytes.as_slice()).err() }
}

#[test]
fn every_hostile_file_is_refused_as_the_table_says() {
    let mut wrong = Vec::new();
    for (name, row, pattern, is_expected) in expectations() {
        match refusal(name) {
            None => wrong.push(format!("{name} was read")),
            Some(error) if error.row == row && is_expected(&error.kind) => {}
            Some(error) => wrong.push(format!("{name}: expected {row:?} {pattern}, got {error:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_and_the_folder_name_the_same_files() {
    let files: BTreeSet<String> = fs::read_dir(folder())
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned())
        .collect();
    let expected: BTreeSet<String> = expectations().iter().map(|&(name, ..)| name.to_owned()).collect();
    assert_eq!(files, expected);
}

#[test]
fn every_message_is_one_short_line_with_a_hint() {
    for (name, ..) in expectations() {
        let error = refusal(name).expect("it is refused");
        let message = error.to_string();
        assert!(!message.contains('\n') && message.chars().count() < 400, "{name}: {message}");
        assert!(!error.hint().is_empty() && !error.hint().ends_with('.'), "{name}: {}", error.hint());
    }
}

#[test]
fn hints_speak_of_what_the_column_holds() {
    for (name, hint) in [
        ("overflowing_time.csv", "a lifetime is given in events"),
        ("overflowing_inclusive_end.csv", "a lifetime is given in events"),
        ("overflowing_size.csv", "sizes and offsets are bytes"),
        ("step_zero.csv", "number the steps from 1 upwards"),
        ("step_without_number.csv", "that of a `step` row is its number"),
        ("offset_missing.plan.csv", "a plan has an offset for every buffer"),
        ("no_offset_column.plan.csv", "a plan has an offset for every buffer"),
    ] {
        let error = refusal(name).expect("it is refused");
        assert!(error.hint().contains(hint), "{name}: {}", error.hint());
    }
    assert_eq!(refusal("step_zero.csv").expect("it is refused").to_string(), "there is no step 0; steps count from 1");
}

#[test]
fn a_refused_pickle_says_what_would_have_run_and_where() {
    for (name, message) in [
        ("runs_os_system.pickle", "the pickle uses GLOBAL `os.system` at byte 2, which can run code"),
        ("stack_global.pickle", "the pickle uses STACK_GLOBAL `builtins.eval` at byte 18, which can run code"),
        ("global_inside_a_snapshot.pickle", "the pickle uses GLOBAL `os.system` at byte 456, which can run code"),
        ("inst.pickle", "the pickle uses INST `os.system` at byte 3, which can run code"),
        ("reduce.pickle", "the pickle uses REDUCE at byte 6, which can run code"),
        ("set.pickle", "the pickle uses EMPTY_SET at byte 2, which no memory snapshot has"),
        ("no_opcode.pickle", "the pickle uses the byte 0xff at byte 2, which is no opcode"),
        ("truncated.pickle", "the pickle ends too early, at byte 616"),
    ] {
        assert_eq!(refusal(name).expect("it is refused").to_string(), message);
    }
}
