//! Every strategy over every source, held to the same promises: a new strategy costs one line here, and so does a new
//! source. `PROPTEST_CASES` sets how many programs each is tried with.

#![allow(clippy::unwrap_used)]

mod adaptors;
mod bench;
mod failures;
mod found;
mod named_streams;
mod programs;
mod sources;
mod strategies;
#[macro_use]
mod suite;

/// Makes a test of each check, for one strategy over one source.
macro_rules! conformance {
    ($strategy:ident $source:ident; $($check:ident)*) => {
        mod $source {
            $(
                #[test]
                fn $check() {
                    if let Some(bench) = $crate::bench::Bench::new($crate::sources::$source, $crate::strategies::$strategy) {
                        $crate::suite::$check(bench);
                    }
                }
            )*

            #[test]
            fn any_program_leaves_the_pool_whole() {
                $crate::programs::any_program_leaves_the_pool_whole(
                    $crate::sources::$source,
                    $crate::strategies::$strategy,
                );
            }
        }
    };
}

/// Holds a strategy to all checks: over all sources, over simulated ones where it is a variation of another, or over those that
/// it is made for. One that has memory of its own asks nothing of its source that could fail.
macro_rules! conform {
    ($strategy:ident) => {
        conform!($strategy: host_base_pages host_transparent_pages scratch_file simulated simulated_with_contents
            simulated_with_a_capacity simulated_with_large_grains cuda_device cuda_pinned);
    };
    ($strategy:ident simulated) => {
        conform!($strategy: simulated simulated_with_contents simulated_with_a_capacity simulated_with_large_grains);
    };
    ($strategy:ident has its own memory) => {
        mod $strategy {
            checks!(conformance $strategy host_base_pages;);
        }
    };
    ($strategy:ident: $($source:ident)*) => {
        conform!($strategy: $($source)*; options);
    };
    ($strategy:ident: $($source:ident)*; $device:ident) => {
        mod $strategy {
            $(checks!(conformance $strategy $source;);)*

            #[test]
            fn whichever_call_of_the_source_fails_the_pool_goes_on() {
                $crate::failures::whichever_call_of_the_source_fails_the_pool_goes_on($crate::strategies::$strategy, $crate::sources::$device);
            }

            #[test]
            fn programs_that_failed_once_pass() {
                $crate::found::programs_that_failed_once_pass($crate::strategies::$strategy, $crate::sources::$device);
            }

            #[test]
            fn calls_of_the_source_that_fail_at_random_lose_nothing() {
                $crate::failures::calls_of_the_source_that_fail_at_random_lose_nothing($crate::strategies::$strategy, $crate::sources::$device);
            }
        }
    };
}

conform!(caching);
conform!(expandable);
conform!(arena);
conform!(planned);
conform!(planned_in_the_background simulated);
conform!(planned_by_its_period simulated);
conform!(planned_after_a_fast_start simulated);
// A block of segments is the processor's: it is free when its copies are done, and not before.
conform!(segments: host_base_pages host_transparent_pages scratch_file; instant);
conform!(host_arena has its own memory);
conform!(host_arena_planned has its own memory);
