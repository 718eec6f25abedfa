//! The learner by its public face: what it plans, when, and how much of the steps after that its plans hit.

#![allow(clippy::unwrap_used)]

mod cached;
mod followed;
mod learned;
mod player;
mod random;
mod recorded;
mod settings;
mod unmarked;
