//! The models of PyTorch's allocators against what PyTorch reserved in the recorded runs.

#![allow(clippy::unwrap_used)]

mod recorded;
mod replay;
