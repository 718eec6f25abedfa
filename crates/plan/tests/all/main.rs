//! The planner from the outside: what it promises, against slow and simple twins.

mod brute_force;
mod common;
mod explain;
mod known_optimum;
mod pools;
mod relations;
mod scale;
mod techniques;
mod validator;
