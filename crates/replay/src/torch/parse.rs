//! A line of `PYTORCH_ALLOC_CONF` to options: `option:value` with commas between, where a value may be a list in
//! brackets and blanks mean nothing.

use super::divisions::Divisions;
use super::option_error::OptionError;
use super::options::TorchOptions;

pub(super) const LARGE_SEGMENT: &str = "large_segment_size_mb";
pub(super) const MAX_SPLIT: &str = "max_split_size_mb";
pub(super) const MAX_NON_SPLIT_ROUNDING: &str = "max_non_split_rounding_mb";
pub(super) const GARBAGE_THRESHOLD: &str = "garbage_collection_threshold";
pub(super) const FRACTION: &str = "per_process_memory_fraction";
pub(super) const EXPANDABLE: &str = "expandable_segments";
const BACKEND: &str = "backend";

/// Options that PyTorch knows and that do not change what is reserved.
const OTHERS: [&str; 14] = [
    "expandable_segments_reserve",
    "expandable_segments_reserve_by_class",
    "graph_capture_record_stream_reuse",
    "pinned_free_catch_all",
    "pinned_max_cached_size_mb",
    "pinned_max_round_threshold_mb",
    "pinned_num_register_threads",
    "pinned_reserve_segment_size_mb",
    "pinned_use_background_threads",
    "pinned_use_cuda_host_register",
    "pinned_use_hip_host_register",
    "release_lock_on_cudamalloc",
    "release_lock_on_hipmalloc",
    "throw_on_cudamalloc_oom",
];

const MIB: u64 = 1 << 20;
/// The least large segment, in MiB.
const LEAST_LARGE_SEGMENT: u64 = 11;
/// The most MiB whose bytes fit 64 bits.
const MOST: u64 = u64::MAX / MIB;

/// Reads a line.
pub(super) fn line(line: &str) -> Result<TorchOptions, OptionError> {
    let line: String = line.chars().filter(|character| !character.is_whitespace()).collect();
    let pairs = pairs(&line)?;
    let mut options = TorchOptions::default();
    // The ranges of other options begin at the size of a large segment, wherever in the line that stands.
    for &(option, value) in pairs.iter().filter(|(option, _)| *option == LARGE_SEGMENT) {
        options.large_segment = mebibytes(option, value, LEAST_LARGE_SEGMENT)?;
    }
    let least = options.large_segment / MIB;
    for (option, value) in pairs {
        match option {
            LARGE_SEGMENT => {}
            MAX_SPLIT => options.max_split = Some(mebibytes(option, value, least)?),
            MAX_NON_SPLIT_ROUNDING => options.max_non_split_rounding = Some(mebibytes(option, value, least)?),
            Divisions::OPTION => options.divisions = Divisions::read(value)?,
            GARBAGE_THRESHOLD => {
                let holds = |number: f64| number > 0.0 && number < 1.0;
                options.garbage_threshold = Some(part(option, value, holds, "between 0 and 1, neither of them")?);
            }
            FRACTION => {
                let holds = |number| (0.0..=1.0).contains(&number);
                options.fraction = part(option, value, holds, "from 0 to 1")?;
            }
            EXPANDABLE => options.expandable = truth(option, value)?,
            BACKEND if value != "native" => {
                return Err(out_of_range(option, value, "`native` here: other backends are other allocators"));
            }
            _ if option == BACKEND || OTHERS.contains(&option) => keep(&mut options.others, option, value),
            _ => return Err(OptionError::Unknown { option: option.to_owned() }),
        }
    }
    Ok(options)
}

/// The options of a line without blanks, each with its value.
fn pairs(mut rest: &str) -> Result<Vec<(&str, &str)>, OptionError> {
    let mut pairs = Vec::new();
    while !rest.is_empty() {
        let (option, after) = rest.split_at(rest.find([':', ',', '[', ']']).unwrap_or(rest.len()));
        let Some(after) = after.strip_prefix(':').filter(|_| !option.is_empty()) else {
            let before = if option.is_empty() { &rest[..1] } else { option };
            let expected = if option.is_empty() { "an option" } else { "`:` and a value" };
            return Err(syntax(before, expected));
        };
        let end =
            if after.starts_with('[') { after.find(']').map(|end| end + 1) } else { after.find([',', '[', ']', ':']) };
        let (value, after) = match end {
            Some(end) => after.split_at(end),
            None if after.starts_with('[') => return Err(syntax(after, "`]`")),
            None => (after, ""),
        };
        if value.is_empty() {
            return Err(syntax(option, "a value"));
        }
        pairs.push((option, value));
        rest = match after.strip_prefix(',') {
            Some(rest) => rest,
            None if after.is_empty() => after,
            None => return Err(syntax(value, "`,`")),
        };
    }
    Ok(pairs)
}

fn syntax(after: &str, expected: &'static str) -> OptionError {
    OptionError::Syntax { after: after.to_owned(), expected }
}

fn out_of_range(option: &str, value: &str, range: &str) -> OptionError {
    OptionError::OutOfRange { option: option.to_owned(), value: value.to_owned(), range: range.to_owned() }
}

fn mebibytes(option: &str, value: &str, least: u64) -> Result<u64, OptionError> {
    let number = value.parse().ok().filter(|number| (least..=MOST).contains(number));
    let number: u64 =
        number.ok_or_else(|| out_of_range(option, value, &format!("a whole number from {least} to {MOST}")))?;
    Ok(number * MIB)
}

fn part(option: &str, value: &str, holds: impl Fn(f64) -> bool, range: &str) -> Result<f64, OptionError> {
    let number = value.parse().ok().filter(|&number| holds(number));
    number.ok_or_else(|| out_of_range(option, value, range))
}

fn truth(option: &str, value: &str) -> Result<bool, OptionError> {
    match value {
        "True" => Ok(true),
        "False" => Ok(false),
        _ => Err(out_of_range(option, value, "`True` or `False`")),
    }
}

fn keep(others: &mut Vec<(String, String)>, option: &str, value: &str) {
    others.retain(|(known, _)| known != option);
    others.push((option.to_owned(), value.to_owned()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        line(text).expect_err(text).to_string()
    }

    #[test]
    fn every_option_is_read_and_printed_again() {
        let text = "large_segment_size_mb:15,max_split_size_mb:128,max_non_split_rounding_mb:40,\
                    roundup_power2_divisions:[256:1,512:2,>:4],garbage_collection_threshold:0.8,\
                    per_process_memory_fraction:0.5,expandable_segments:True,backend:native,\
                    release_lock_on_cudamalloc:True,expandable_segments_reserve_by_class:[a:0.5,b:40G]";
        let options = line(text).unwrap();
        assert_eq!(options.large_segment_size().get(), 15 * MIB);
        assert_eq!(options.max_split_size().map(lowtide_core::Bytes::get), Some(128 * MIB));
        assert_eq!(options.max_non_split_rounding().get(), 40 * MIB);
        assert_eq!(options.garbage_collection_threshold(), Some(0.8));
        assert!((options.per_process_memory_fraction() - 0.5).abs() < f64::EPSILON);
        assert!(options.expandable_segments());
        assert_eq!(options.others().count(), 3);
        assert_eq!(options.to_string(), text);
        assert_eq!(line(&options.to_string()), Ok(options));
    }

    #[test]
    fn blanks_and_a_last_comma_mean_nothing_and_the_last_value_counts() {
        let options = line(" max_split_size_mb : 64 , backend:native, max_split_size_mb:32,backend:native,").unwrap();
        assert_eq!(options.to_string(), "max_split_size_mb:32,backend:native");
    }

    #[test]
    fn the_rounding_follows_the_large_segment_unless_it_is_given() {
        assert_eq!(line("large_segment_size_mb:64").unwrap().max_non_split_rounding().get(), 64 * MIB);
    }

    #[test]
    fn ranges_are_those_of_pytorch() {
        assert_eq!(
            refused("max_split_size_mb:19"),
            "`max_split_size_mb` cannot be `19`: it is a whole number from 20 to 17592186044415"
        );
        assert_eq!(
            refused("max_split_size_mb:20,large_segment_size_mb:25"),
            "`max_split_size_mb` cannot be `20`: it is a whole number from 25 to 17592186044415"
        );
        assert!(line("max_split_size_mb:20").is_ok());
        assert!(line("large_segment_size_mb:11,max_split_size_mb:11").is_ok());
        assert!(refused("large_segment_size_mb:10").contains("from 11"));
        assert!(refused("garbage_collection_threshold:1").contains("between 0 and 1"));
        assert!(refused("garbage_collection_threshold:0").contains("between 0 and 1"));
        assert!(refused("per_process_memory_fraction:1.01").contains("from 0 to 1"));
        assert!(line("per_process_memory_fraction:0").is_ok());
        assert!(refused("expandable_segments:true").contains("`True` or `False`"));
        assert!(refused("backend:cudaMallocAsync").contains("other allocators"));
    }

    #[test]
    fn an_unknown_option_is_named() {
        assert_eq!(refused("max_split_size_gb:1"), "PyTorch's allocator has no option `max_split_size_gb`");
    }

    #[test]
    fn hostile_lines_are_refused() {
        for text in [
            ",",
            ":",
            "max_split_size_mb",
            "max_split_size_mb:",
            "max_split_size_mb:,",
            "max_split_size_mb:[1",
            "max_split_size_mb:[]",
            "max_split_size_mb:64:64",
            "max_split_size_mb:64]",
            "max_split_size_mb:-1",
            "max_split_size_mb:1e3",
            "max_split_size_mb:99999999999999999999",
            "max_split_size_mb:17592186044416",
            "garbage_collection_threshold:nan",
            "garbage_collection_threshold:inf",
            "per_process_memory_fraction:-0.1",
            "per_process_memory_fraction:nan",
            "expandable_segments",
            "roundup_power2_divisions:[64:8",
            "roundup_power2_divisions:[64:8]x",
            "ß:1",
            "max_split_size_mb:ß",
            "[a:b]",
        ] {
            line(text).expect_err(text);
        }
    }
}
