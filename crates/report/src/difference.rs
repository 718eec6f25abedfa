//! How two runs differ: what each group holds at the peak of one and of the other.

use std::collections::BTreeMap;

use lowtide_core::{Bytes, Usage};

use crate::{Grouping, alive_at, group};

/// What a group holds at the two peaks.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// What the group has in common; empty where it is not known.
    pub key: String,
    /// In the first run.
    pub before: Bytes,
    /// In the second.
    pub after: Bytes,
}

impl Difference {
    /// `+412.0 MiB (+4.2%)`.
    pub fn change(&self) -> String {
        let Self { before, after, .. } = *self;
        if before == after {
            return "no change".to_owned();
        }
        let (sign, amount) = if after > before { ('+', after - before) } else { ('−', before - after) };
        let percent = (before > Bytes::ZERO).then(|| format!(" ({sign}{:.1}%)", 100.0 * amount.ratio(before)));
        format!("{sign}{amount}{}", percent.unwrap_or_default())
    }
}

/// Every group of either run at its event, those first that changed most.
pub fn differences(before: (&Usage, i64), after: (&Usage, i64), by: Grouping) -> Vec<Difference> {
    let mut groups: BTreeMap<String, [Bytes; 2]> = BTreeMap::new();
    for (side, (usage, time)) in [before, after].into_iter().enumerate() {
        for found in group(usage, &alive_at(usage, time), by) {
            groups.entry(found.key).or_default()[side] = found.bytes;
        }
    }
    let mut differences: Vec<Difference> =
        groups.into_iter().map(|(key, [before, after])| Difference { key, before, after }).collect();
    differences.sort_by_key(|one| (std::cmp::Reverse(one.before.get().abs_diff(one.after.get())), one.key.clone()));
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_read_with_their_sign() {
        let of = |before, after| {
            Difference { key: String::new(), before: Bytes::new(before), after: Bytes::new(after) }.change()
        };
        assert_eq!(of(1000, 1042), "+42 B (+4.2%)");
        assert_eq!(of(1000, 500), "−500 B (−50.0%)");
        assert_eq!(of(7, 7), "no change");
        assert_eq!(of(0, 7), "+7 B");
    }
}
