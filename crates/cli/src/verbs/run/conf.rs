//! `MALLOC_CONF`, the settings of jemalloc: what they are made to be where nobody set them, and what is said of those that
//! give memory back only to fault it in again.

use std::ffi::OsString;

use super::underlying::Known;

/// Keeps freed memory, so that the next step finds it without a fault.
pub(crate) const KEEPING: &str = "dirty_decay_ms:-1,muzzy_decay_ms:-1";

const DECAYS: [&str; 2] = ["dirty_decay_ms", "muzzy_decay_ms"];

/// What becomes of `MALLOC_CONF`.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Settled {
    /// What it is set to; `None` where it stays as it is.
    pub set: Option<String>,
    pub warnings: Vec<String>,
}

/// Settles it from what was asked for, what is in the environment, and the underlying allocator.
pub(super) fn settle(asked: Option<&str>, there: Option<OsString>, known: Known) -> Settled {
    let there = there.filter(|text| !text.is_empty()).map(|text| text.to_string_lossy().into_owned());
    let text = asked.map(str::to_owned).or(there);
    if known != Known::Jemalloc {
        let useless =
            asked.map(|_| format!("`malloc-conf` is for jemalloc, and the underlying allocator is {}", known.name()));
        return Settled { set: asked.map(str::to_owned), warnings: useless.into_iter().collect() };
    }
    match text {
        None => Settled { set: Some(KEEPING.to_owned()), warnings: Vec::new() },
        Some(text) => Settled { set: asked.map(str::to_owned), warnings: warning(&text).into_iter().collect() },
    }
}

/// What is said of settings with which jemalloc gives back what it will need again.
fn warning(text: &str) -> Option<String> {
    let of = |name: &str| {
        let mut values = text.split(',').filter_map(|part| part.trim().split_once(':'));
        values.rfind(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
    };
    let values = DECAYS.map(|name| (name, of(name)));
    if values.iter().all(|(_, value)| value.as_deref() == Some("-1")) {
        return None;
    }
    let now = values.map(|(name, value)| match value {
        Some(value) => format!("{name}:{value}"),
        None => format!("{name} as jemalloc likes"),
    });
    Some(format!(
        "with {} jemalloc gives memory back that the next step faults in again, slower than glibc on training loops; \
         `{KEEPING}` keeps it (docs/host.md)",
        now.join(" and ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jemalloc_keeps_memory_unless_somebody_said_otherwise() {
        let settled = settle(None, None, Known::Jemalloc);
        assert_eq!(settled, Settled { set: Some(KEEPING.to_owned()), warnings: vec![] });
        assert_eq!(settle(None, None, Known::Glibc), Settled { set: None, warnings: vec![] });
        let kept = settle(Some("thp:always, dirty_decay_ms:-1,muzzy_decay_ms:-1"), None, Known::Jemalloc);
        assert_eq!((kept.set.is_some(), kept.warnings.len()), (true, 0));
    }

    #[test]
    fn settings_that_give_memory_back_are_warned_of() {
        let known = "background_thread:true,metadata_thp:auto,dirty_decay_ms:20000,muzzy_decay_ms:20000";
        for text in [known, "thp:always", "dirty_decay_ms:-1", "dirty_decay_ms:-1,muzzy_decay_ms:-1,muzzy_decay_ms:0"] {
            assert_eq!(settle(Some(text), None, Known::Jemalloc).warnings.len(), 1, "{text}");
            let there = settle(None, Some(text.into()), Known::Jemalloc);
            assert_eq!((there.set, there.warnings.len()), (None, 1), "{text}");
        }
        assert_eq!(settle(Some(known), None, Known::Glibc).warnings.len(), 1);
    }
}
