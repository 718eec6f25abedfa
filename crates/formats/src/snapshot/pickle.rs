//! Pickles without their powers: the bytes (`source`), the opcodes, and a machine that turns them into records.

pub(crate) mod fault;
mod lists;
pub(crate) mod machine;
mod memo;
pub(crate) mod opcode;
mod source;
pub(crate) mod value;
