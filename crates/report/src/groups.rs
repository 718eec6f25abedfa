//! Buffers put together by what they have in common.

use lowtide_core::{Alive, Buffer, BufferIndex, Bytes, Usage};
use rustc_hash::FxHashMap;

use crate::site;

/// What buffers are put together by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Grouping {
    /// What they are for.
    Category,
    /// The file that asked for them, or the part of the model that their ids name.
    Module,
    /// The line that asked for them.
    Line,
    /// Their size, by powers of two.
    Size,
}

impl Grouping {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Category, Self::Module, Self::Line, Self::Size];

    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Category => "category",
            Self::Module => "module",
            Self::Line => "line",
            Self::Size => "size",
        }
    }

    /// The first of them that tells the buffers of `usage` apart; by size where none does.
    pub fn telling(usage: &Usage) -> Self {
        let has_category = || usage.labels.iter().any(|label| label.category.is_some());
        if has_category() {
            Self::Category
        } else if Self::names_modules(usage) {
            Self::Module
        } else {
            Self::Size
        }
    }

    /// Whether sites or ids say which module buffers belong to.
    pub(crate) fn names_modules(usage: &Usage) -> bool {
        let from_id = |buffer: &Buffer| site::module_of_id(&buffer.id).is_some();
        usage.labels.iter().any(|label| label.site.is_some()) || usage.problem.buffers.iter().any(from_id)
    }

    /// What `buffer` is under; empty where nothing is known.
    pub fn key(self, usage: &Usage, buffer: BufferIndex) -> String {
        let label = usage.label(buffer);
        let site = label.site.map(|site| usage.text(site));
        let id = &usage.problem.buffer(buffer).id;
        match self {
            Self::Category => label.category.map(|category| usage.text(category).to_owned()).unwrap_or_default(),
            Self::Module => {
                site.map(site::module).or_else(|| site::module_of_id(id).map(str::to_owned)).unwrap_or_default()
            }
            Self::Line => site.map(|site| site::line(site).into_owned()).unwrap_or_default(),
            Self::Size => size_class(usage.problem.buffer(buffer).size),
        }
    }
}

/// `256 KiB to 512 KiB`.
fn size_class(size: Bytes) -> String {
    match size.get().checked_ilog2() {
        None => Bytes::ZERO.to_string(),
        Some(power @ 0..63) => format!("{} to {}", Bytes::new(1 << power), Bytes::new(1 << (power + 1))),
        Some(power) => format!("{} and more", Bytes::new(1 << power)),
    }
}

/// Buffers with something in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// What; empty where it is not known.
    pub key: String,
    /// What they hold together.
    pub bytes: Bytes,
    /// How many they are.
    pub count: usize,
}

/// `alive` put together, those first that hold most.
pub fn group(usage: &Usage, alive: &[Alive], by: Grouping) -> Vec<Group> {
    let mut places: FxHashMap<String, usize> = FxHashMap::default();
    let mut groups: Vec<Group> = Vec::new();
    for one in alive {
        let key = by.key(usage, one.buffer);
        let place = *places.entry(key).or_insert_with_key(|key| {
            groups.push(Group { key: key.clone(), bytes: Bytes::ZERO, count: 0 });
            groups.len() - 1
        });
        groups[place].bytes += one.bytes;
        groups[place].count += 1;
    }
    groups.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.key.cmp(&b.key)));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alive_at;
    use lowtide_core::{Label, Lifetime, Problem, TextIndex};

    #[test]
    fn buffers_are_put_together_by_each_grouping() {
        let buffer = |id: &str, size| Buffer::new(id, Lifetime { lower: 0, upper: 1 }, Bytes::new(size));
        let mut usage = Usage::of(Problem::new(vec![buffer("a/x", 5), buffer("b", 6), buffer("c", 100)]));
        assert_eq!(Grouping::telling(&usage), Grouping::Module);
        usage.texts = vec!["weights".into(), "net.py:3 f".into()];
        usage.labels[1] = Label { category: Some(TextIndex(0)), site: Some(TextIndex(1)), ..Label::default() };
        assert_eq!(Grouping::telling(&usage), Grouping::Category);
        let keys = |by| -> Vec<(String, u64, usize)> {
            let groups = group(&usage, &alive_at(&usage, 0), by);
            groups.into_iter().map(|group| (group.key, group.bytes.get(), group.count)).collect()
        };
        assert_eq!(keys(Grouping::Category), [(String::new(), 105, 2), ("weights".into(), 6, 1)]);
        assert_eq!(keys(Grouping::Module), [(String::new(), 100, 1), ("net".into(), 6, 1), ("a".into(), 5, 1)]);
        assert_eq!(keys(Grouping::Line), [(String::new(), 105, 2), ("net.py:3 f".into(), 6, 1)]);
        assert_eq!(keys(Grouping::Size), [("64 B to 128 B".into(), 100, 1), ("4 B to 8 B".into(), 11, 2)]);
    }
}
