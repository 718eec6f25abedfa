//! NUMA nodes, and the lists of numbers that the system writes.

use std::fs;
use std::path::Path;

/// Where the system describes its nodes.
const NODES: &str = "/sys/devices/system/node";

/// A NUMA node of this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Its number.
    pub number: u32,
    /// The processors on it; none on one that is memory only.
    pub processors: Vec<u32>,
}

/// The nodes that are there, by number; empty where the system does not say.
pub fn nodes() -> Vec<Node> {
    let read = |path: &Path| fs::read_to_string(path).ok().and_then(|text| parse_list(text.trim()));
    let root = Path::new(NODES);
    let numbers = online().and_then(|text| parse_list(&text)).unwrap_or_default();
    let node = |number| Node {
        number,
        processors: read(&root.join(format!("node{number}")).join("cpulist")).unwrap_or_default(),
    };
    numbers.into_iter().map(node).collect()
}

/// The list of the nodes that are there, as the system writes it.
pub(crate) fn online() -> Option<String> {
    fs::read_to_string(Path::new(NODES).join("online")).ok().map(|text| text.trim().to_owned())
}

/// Numbers as the system writes them: `0-3,8`. `None` for what is no such list.
pub fn parse_list(text: &str) -> Option<Vec<u32>> {
    /// More than any system has of anything that is listed so.
    const MOST: usize = 1 << 16;
    let mut numbers = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || (last - first) as usize >= MOST - numbers.len() {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_system_writes_them() {
        assert_eq!(parse_list("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_list(""), Some(vec![]));
        for text in ["x", "3-1", "-1", "0-", "0-4294967295"] {
            assert_eq!(parse_list(text), None, "{text}");
        }
    }
}
