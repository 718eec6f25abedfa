//! How much memory a device leaves to a program: an amount, or what a GPU of this name has.

use crate::{Bytes, ParseBytesError};

/// The memory of GPUs in MiB, as `nvidia-smi` reports it.
const GPUS: [(&str, u64); 16] = [
    ("T4", 15_360),
    ("V100-16GB", 16_384),
    ("V100-32GB", 32_768),
    ("A10", 23_028),
    ("A10G", 23_028),
    ("L4", 23_034),
    ("L40S", 46_068),
    ("RTX3090", 24_576),
    ("RTX4090", 24_564),
    ("A6000", 49_140),
    ("A100-40GB", 40_960),
    ("A100", 81_920),
    ("A100-80GB", 81_920),
    ("H100", 81_559),
    ("H200", 143_771),
    ("B200", 183_359),
];

/// What the driver, the context and the libraries take of it, about.
const CONTEXT: u64 = 1 << 30;

/// Why a text is neither an amount of memory nor the name of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseMemoryError {
    /// It begins as a name does, and no such GPU is in the table.
    #[error("`{0}` is neither an amount of memory, such as 24GiB, nor one of the GPUs {known}", known = names())]
    UnknownGpu(String),
    /// It begins as a number does, and is no amount.
    #[error(transparent)]
    Amount(#[from] ParseBytesError),
}

fn names() -> String {
    GPUS.map(|(name, _)| name).join(", ")
}

/// The bytes that a program can have: an amount as [`Bytes`] are read, or those of a GPU by its name, less what the driver
/// takes of it. `H200`, `nvidia h200` and `RTX 4090` are names.
pub fn parse_device_memory(text: &str) -> Result<Bytes, ParseMemoryError> {
    let letters = text.chars().filter(|letter| !letter.is_whitespace() && *letter != '_');
    let name: String = letters.map(|letter| letter.to_ascii_uppercase()).collect();
    let name = name.strip_prefix("NVIDIA").unwrap_or(&name);
    if let Some((_, mebibytes)) = GPUS.iter().find(|(gpu, _)| *gpu == name) {
        return Ok(Bytes::new((mebibytes << 20) - CONTEXT));
    }
    if text.trim_start().starts_with(|letter: char| letter.is_ascii_alphabetic()) {
        return Err(ParseMemoryError::UnknownGpu(text.trim().to_owned()));
    }
    Ok(text.parse::<Bytes>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_told_by_its_name_however_that_is_written() {
        let h200 = Bytes::new((143_771 << 20) - CONTEXT);
        for name in ["H200", "h200", "NVIDIA H200", " nvidia_h200 "] {
            assert_eq!(parse_device_memory(name), Ok(h200), "{name}");
        }
        assert_eq!(parse_device_memory("RTX 4090"), Ok(Bytes::new((24_564 << 20) - CONTEXT)));
        assert_eq!(parse_device_memory("1.5GiB"), Ok(Bytes::new(3 << 29)));
    }

    #[test]
    fn what_is_neither_is_refused_with_what_there_is() {
        let refused = parse_device_memory("K80").unwrap_err().to_string();
        assert!(refused.starts_with("`K80` is neither") && refused.ends_with("H100, H200, B200"), "{refused}");
        assert!(matches!(parse_device_memory("12 parsecs"), Err(ParseMemoryError::Amount(_))));
    }
}
