//! Every source, held to the same promises: a new source costs one line here.

#![allow(clippy::unwrap_used)]

mod subjects;
mod suite;

use lowtide_memory::{HostOptions, Pages, Placement};

macro_rules! conformance {
    ($name:ident, $make:expr; $($check:ident)*) => {
        mod $name {
            use super::*;
            $(
                #[test]
                fn $check() {
                    if let Some(subject) = $make {
                        suite::$check(subject.as_ref());
                    }
                }
            )*
        }
    };
}

macro_rules! conform {
    ($name:ident, $make:expr) => {
        checks!(conformance $name, $make;);
    };
}

conform!(host_base_pages, Some(subjects::pages(Pages::Base)));
conform!(host_transparent_pages, Some(subjects::pages(Pages::Transparent)));
conform!(host_huge_pages_2m, subjects::huge_pages(Pages::Huge2M));
conform!(host_huge_pages_1g, subjects::huge_pages(Pages::Huge1G));
conform!(host_bound_to_a_node, Some(subjects::placement(Placement::Bound(vec![0]))));
conform!(host_bound_to_no_node, Some(subjects::placement(Placement::Bound(vec![999]))));
conform!(host_interleaved, Some(subjects::placement(Placement::Interleaved(vec![0]))));
conform!(host_locked, Some(subjects::host(&HostOptions { locked: true, ..HostOptions::default() })));
conform!(host_prefaulted, Some(subjects::host(&HostOptions { prefault: true, ..HostOptions::default() })));
conform!(scratch_file, Some(subjects::scratch_file()));
conform!(simulated, Some(subjects::simulated(false)));
conform!(simulated_with_contents, Some(subjects::simulated(true)));
conform!(cuda_device, subjects::cuda_device());
conform!(cuda_pinned, subjects::cuda_pinned());
