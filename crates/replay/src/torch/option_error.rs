//! Why a line of options was refused.

/// Why a text is not a line of `PYTORCH_ALLOC_CONF`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// PyTorch has no option of this name.
    #[error("PyTorch's allocator has no option `{option}`")]
    Unknown {
        /// The name.
        option: String,
    },
    /// The option cannot have this value.
    #[error("`{option}` cannot be `{value}`: it is {range}")]
    OutOfRange {
        /// The option's name.
        option: String,
        /// The value as it was given.
        value: String,
        /// The values it can have, as the end of a sentence.
        range: String,
    },
    /// The line is not made of `option:value` with commas between.
    #[error("expected {expected} after `{after}`; a line reads `option:value,option:value`")]
    Syntax {
        /// What stands before the place.
        after: String,
        /// What should stand there.
        expected: &'static str,
    },
}
