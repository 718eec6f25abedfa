//! Host memory as the kernel sees it: what was asked for is what the process has.

#![allow(clippy::unwrap_used)]
#![expect(unsafe_code, reason = "touches memory that a source committed")]

use std::fs;

use lowtide_core::Bytes;
use lowtide_memory::{Host, HostOptions, Pages, Placement, Source, Span};
use lowtide_testing::skip;

const MIB: u64 = 1 << 20;

/// What the kernel says of the mapping at `address`: its access, then the lines of `smaps`.
fn mapping(address: u64) -> Option<String> {
    let text = fs::read_to_string("/proc/self/smaps").unwrap();
    let mut found = None;
    for line in text.lines() {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let range = range.and_then(|(a, b)| Some((u64::from_str_radix(a, 16).ok()?, u64::from_str_radix(b, 16).ok()?)));
        match (range, &mut found) {
            (Some((start, end)), None) if (start..end).contains(&address) => found = Some(line.to_owned()),
            (Some(_), Some(_)) => break,
            (None, Some(found)) => *found = format!("{found}\n{line}"),
            _ => {}
        }
    }
    found
}

fn resident(address: u64) -> Bytes {
    let mapping = mapping(address).unwrap();
    let line = mapping.lines().find(|line| line.starts_with("Rss:")).unwrap();
    let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    Bytes::new(kibibytes << 10)
}

fn has_flag(address: u64, flag: &str) -> bool {
    let mapping = mapping(address).unwrap();
    let flags = mapping.lines().find(|line| line.starts_with("VmFlags:")).unwrap();
    flags.split_whitespace().any(|word| word == flag)
}

fn policy(address: u64) -> String {
    let text = fs::read_to_string("/proc/self/numa_maps").unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("{address:08x} "))).unwrap_or_default();
    line.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// A committed span with room on both sides, so that the kernel shows it as a mapping of its own.
fn committed(host: &Host, bytes: u64) -> Span {
    let bytes = Bytes::new(bytes.max(host.describe().granularity.get()));
    let range = host.reserve(Bytes::new(3 * bytes.get())).unwrap();
    let span = Span::new(range.start + bytes.get(), bytes);
    host.commit(span).unwrap();
    span
}

fn touch(span: Span) {
    for address in (span.start..span.end()).step_by(4096) {
        let byte = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: the span is committed.
        unsafe { byte.write_volatile(1) };
    }
}

#[test]
fn base_pages_come_when_they_are_touched_and_go_at_once() {
    let host = Host::new(&HostOptions::default());
    let span = committed(&host, MIB);
    assert_eq!(resident(span.start), Bytes::ZERO);
    touch(span);
    assert_eq!(resident(span.start), span.bytes);
    host.decommit(span).unwrap();
    let empty = mapping(span.start).unwrap();
    assert!(empty.contains("---p"), "{empty}");
    assert_eq!(resident(span.start), Bytes::ZERO);
    host.commit(span).unwrap();
    assert_eq!(resident(span.start), Bytes::ZERO, "old pages do not come back");
    assert!(!has_flag(span.start, "hg"));
}

#[test]
fn addresses_without_memory_cannot_be_used_and_cost_none() {
    let host = Host::new(&HostOptions::default());
    let span = host.reserve(Bytes::new(1 << 40)).unwrap();
    let mapping = mapping(span.start).unwrap();
    assert!(mapping.contains("---p"), "{mapping}");
    assert_eq!(resident(span.start), Bytes::ZERO);
}

#[test]
fn transparent_pages_are_asked_for_where_they_are_on() {
    let host = Host::new(&HostOptions { pages: Pages::Transparent, ..HostOptions::default() });
    let span = committed(&host, 4 * MIB);
    let small = host.reserve(Bytes::new(1)).unwrap();
    let said = host.describe();
    assert_eq!(has_flag(span.start, "hg"), said.fallbacks.is_empty(), "{said:?}");
    assert_eq!(said.name.contains("transparent"), said.fallbacks.is_empty(), "{said:?}");
    assert!(small.start.is_multiple_of(2 * MIB) || !said.fallbacks.is_empty(), "{small:?}");
}

#[test]
fn prefaulted_memory_is_there_before_it_is_touched() {
    let host = Host::new(&HostOptions { prefault: true, ..HostOptions::default() });
    let span = committed(&host, 2 * MIB);
    assert_eq!(resident(span.start), span.bytes);
}

#[test]
fn locked_memory_is_locked_or_the_refusal_is_said() {
    let host = Host::new(&HostOptions { locked: true, ..HostOptions::default() });
    let span = committed(&host, MIB);
    let said = host.describe().fallbacks;
    assert_eq!(has_flag(span.start, "lo"), said.is_empty(), "{said:?}");
    if said.is_empty() {
        assert_eq!(resident(span.start), span.bytes);
    } else {
        assert!(said[0].contains("ulimit -l"), "{said:?}");
    }
    if host.describe().relocates {
        host.relocate(span, span.start - MIB).unwrap();
        assert_eq!(has_flag(span.start - MIB, "lo"), said.is_empty());
        assert!(!has_flag(span.end() - 1, "lo"));
    }
}

#[test]
fn nodes_are_told_to_the_kernel() {
    for (placement, expected) in
        [(Placement::Bound(vec![0]), "bind:0"), (Placement::Interleaved(vec![0]), "interleave:0")]
    {
        let host = Host::new(&HostOptions { placement, ..HostOptions::default() });
        let span = committed(&host, MIB);
        let said = host.describe();
        if said.fallbacks.is_empty() {
            assert_eq!(policy(span.start), expected);
            assert!(said.name.contains("NUMA nodes 0"), "{said:?}");
        } else {
            assert!(said.fallbacks[0].contains("NUMA nodes 0"), "{said:?}");
        }
        host.decommit(span).unwrap();
        host.commit(span).unwrap();
    }
}

#[test]
fn a_node_that_is_not_there_is_said_once_with_those_that_are() {
    for node in [999, 1_000_000] {
        let placement = Placement::Bound(vec![node]);
        let host = Host::new(&HostOptions { placement, ..HostOptions::default() });
        touch(committed(&host, MIB));
        touch(committed(&host, MIB));
        let said = host.describe();
        assert_eq!(said.fallbacks.len(), 1, "{said:?}");
        assert!(said.fallbacks[0].contains(&format!("NUMA nodes {node}")), "{said:?}");
        assert!(!said.name.contains("NUMA"), "{said:?}");
    }
}

#[test]
fn huge_pages_are_had_or_the_way_to_them_is_said() {
    for (pages, size, remedy) in
        [(Pages::Huge2M, 2 * MIB, "/proc/sys/vm/nr_hugepages"), (Pages::Huge1G, 1 << 30, "hugepages-1048576kB")]
    {
        let host = Host::new(&HostOptions { pages, ..HostOptions::default() });
        let said = host.describe();
        if said.fallbacks.is_empty() {
            assert_eq!(said.granularity, Bytes::new(size));
            let span = host.reserve(Bytes::new(2 * size)).unwrap();
            host.commit(Span::new(span.start, Bytes::new(size))).unwrap();
            assert!(has_flag(span.start, "ht") || !host.describe().fallbacks.is_empty());
        } else {
            assert!(said.granularity < Bytes::new(size));
            assert!(said.fallbacks[0].contains(remedy), "{said:?}");
            touch(committed(&host, 2 * MIB));
        }
    }
}

#[test]
fn moved_memory_leaves_its_addresses_reserved() {
    let host = Host::new(&HostOptions::default());
    if !host.describe().relocates {
        return skip("this system does not move memory and keep its addresses");
    }
    let range = host.reserve(Bytes::new(8 * MIB)).unwrap();
    let (from, to) = (Span::new(range.start, Bytes::new(MIB)), Span::new(range.start + 4 * MIB, Bytes::new(MIB)));
    host.commit(from).unwrap();
    touch(from);
    host.relocate(from, to.start).unwrap();
    assert_eq!(resident(to.start), to.bytes);
    assert!(mapping(from.start).unwrap().contains("---p"));
    assert_eq!(resident(from.start), Bytes::ZERO);
}

#[test]
fn memory_of_several_lives_still_moves_as_one() {
    let host = Host::new(&HostOptions::default());
    if !host.describe().relocates {
        return skip("this system does not move memory and keep its addresses");
    }
    let range = host.reserve(Bytes::new(8 * MIB)).unwrap();
    let place = |index: u64| Span::new(range.start + index * MIB, Bytes::new(MIB));
    for index in [2, 0, 1] {
        host.commit(place(index)).unwrap();
        touch(place(index));
    }
    host.decommit(Span::new(range.start, Bytes::new(3 * MIB))).unwrap();
    let whole = Span::new(range.start, Bytes::new(3 * MIB));
    host.commit(whole).unwrap();
    touch(whole);
    host.relocate(whole, place(4).start).unwrap();
    assert_eq!(resident(place(4).start), whole.bytes);
}
