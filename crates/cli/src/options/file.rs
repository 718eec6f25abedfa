//! `lowtide.toml`: a key of the table and a value in each line. What is wrong in it is said with its line, and a key that
//! there is not with the one that looks most like it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

use lowtide_core::options::{Entry, Kind, TABLE, Type, Value};
use toml::de::{DeTable, DeValue};

use crate::Failure;
use crate::console::show;

/// The largest file that is read: some thousand times what one with every option takes.
const LARGEST: u64 = 1 << 20;

/// Characters of a value that are repeated.
const SHOWN: usize = 40;

/// How alike a key must be to be named.
const ALIKE: f64 = 0.7;

/// The options that the file sets, with their values and lines.
pub(super) fn read(path: &Path) -> Result<Vec<(&'static Entry, Value, usize)>, Failure> {
    let name = show::path(path);
    let failed = |error| Failure::unfit(&name, format!("cannot open: {error}"), "check the path");
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        return Err(Failure::unfit(&name, "it is larger than 1 MiB, which no file of options is", "check the path"));
    }
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(Failure::unfit(&name, "it is no text in UTF-8", "check the path"));
    };
    parse(&name, &text)
}

fn parse(name: &str, text: &str) -> Result<Vec<(&'static Entry, Value, usize)>, Failure> {
    let refuse =
        |at: usize, message: String, hint: &str| Failure::unfit(&format!("{name}:{}", line(text, at)), message, hint);
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let message = format!("this is no TOML: {}", first_line(error.message()));
        refuse(at, message, "write `key = value`, and text between quotation marks")
    })?;
    let mut keys: Vec<_> = table.get_ref().iter().collect();
    keys.sort_by_key(|(key, _)| key.span().start);
    let mut lines: HashMap<&str, usize> = HashMap::new();
    let mut found = Vec::new();
    for (key, value) in keys {
        let at = key.span().start;
        let Some(entry) = entry(key.get_ref()) else {
            return Err(refuse(
                at,
                format!("there is no option `{}`", show::name_within(key.get_ref(), SHOWN)),
                &nearest(key.get_ref()),
            ));
        };
        if let Some(before) = lines.insert(entry.name, line(text, at)) {
            let message = format!("`{}` is set by line {before} already", entry.key());
            return Err(refuse(at, message, "leave one of them out"));
        }
        let value = value_of(entry, value.get_ref()).ok_or_else(|| {
            let shown = shown(text, value.span());
            let message = format!("`{}` cannot be {shown}: it is {}", entry.key(), range(&entry.kind));
            refuse(at, message, "`docs/options.md` has every option and its values")
        })?;
        found.push((entry, value, line(text, at)));
    }
    Ok(found)
}

/// The option of a key.
fn entry(key: &str) -> Option<&'static Entry> {
    let is_named =
        |entry: &&Entry| entry.key() == key || entry.former.iter().any(|old| old.name.replace('-', "_") == key);
    of_run().find(is_named)
}

fn of_run() -> impl Iterator<Item = &'static Entry> {
    TABLE.iter().filter(|entry| entry.scope.is_of_run())
}

/// A hint with the key that looks most like this one.
fn nearest(key: &str) -> String {
    let likeness = |entry: &Entry| strsim::jaro_winkler(&entry.key(), &key.replace('-', "_"));
    let best = of_run().max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    match best.filter(|best| likeness(best) >= ALIKE) {
        Some(best) => format!("write `{}`; `lowtide config` lists all options", best.key()),
        None => "`lowtide config` lists all options".to_owned(),
    }
}

fn value_of(entry: &Entry, value: &DeValue<'_>) -> Option<Value> {
    let numbers = [Type::Count, Type::Number, Type::Size, Type::Seconds, Type::SecondsOrStep];
    let fractions = [Type::Number, Type::Seconds, Type::SecondsOrStep];
    let texts = [Type::Size, Type::SecondsOrStep, Type::Choice, Type::Text, Type::Path];
    let of = entry.kind.of_type();
    let text = match value {
        DeValue::Boolean(on) if of == Type::Switch => u8::from(*on).to_string(),
        DeValue::Integer(number) if numbers.contains(&of) => {
            i128::from_str_radix(number.as_str(), number.radix()).ok()?.to_string()
        }
        DeValue::Float(number) if fractions.contains(&of) => number.as_str().to_owned(),
        DeValue::String(text) if texts.contains(&of) => text.to_string(),
        _ => return None,
    };
    entry.kind.parse(OsStr::new(&text))
}

/// What a value can be, as it is written here.
fn range(kind: &Kind) -> String {
    match kind {
        Kind::Switch => "`true` or `false`".to_owned(),
        other => other.to_string(),
    }
}

/// A value as it stands in the file, as far as it is short.
fn shown(text: &str, span: Range<usize>) -> String {
    let whole = text.get(span).unwrap_or_default();
    let short: String = whole.chars().take(SHOWN).collect();
    let rest = if short.len() < whole.len() { "…" } else { "" };
    format!("`{}{rest}`", show::escaped(&short))
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}

/// The line of a place in `text`, counted from one.
fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use lowtide_core::options::Every;

    use super::*;

    fn read(text: &str) -> Result<Vec<(&'static str, String, usize)>, String> {
        let found = parse("x.toml", text).map_err(|failure| format!("{failure} | {}", failure.hint()))?;
        let shown = |(entry, value, line): (&'static Entry, Value, usize)| {
            (entry.name, value.text().to_string_lossy().into_owned(), line)
        };
        Ok(found.into_iter().map(shown).collect())
    }

    #[test]
    fn values_are_written_as_toml_has_them() {
        let text = "# of a run\npages = \"2M\"\nlearn = false\n\ndecay = 0.5\nlimit = \"1KiB\"\narena_max = 0x1_0\nbelow = 'mimalloc'\n";
        let expected = [
            ("pages", "2M", 2),
            ("learn", "0", 3),
            ("decay", "0.5", 5),
            ("limit", "1024", 6),
            ("arena-max", "16", 7),
            ("underlying", "mimalloc", 8),
        ];
        let found = read(text).unwrap();
        assert_eq!(found.iter().map(|(name, text, line)| (*name, text.as_str(), *line)).collect::<Vec<_>>(), expected);
        assert_eq!(read(""), Ok(vec![]));
        let (_, value, _) = parse("x", "trim_underlying = \"step\"").unwrap().remove(0);
        assert_eq!(value, Value::SecondsOrStep(Every::Step));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, words) in [
            ("\npagse = 1", "x.toml:2: there is no option `pagse` | write `pages`"),
            ("zzz = 1", "x.toml:1: there is no option `zzz` | `lowtide config` lists"),
            ("trim-threshold = 1", "write `trim_threshold`"),
            ("runner = 1", "there is no option `runner`"),
            ("[run]\npages = '2M'", "x.toml:1: there is no option `run`"),
            ("pages = 2", "x.toml:1: `pages` cannot be `2`: it is `base`, `transparent`, `2M` or `1G`"),
            ("prefault = 1", "`prefault` cannot be `1`: it is `true` or `false`"),
            ("malloc_conf = true", "`malloc_conf` cannot be `true`: it is a text"),
            ("malloc_conf = \"a\\u0000b\"", "cannot be"),
            ("decay = -1", "`decay` cannot be `-1`: it is a number of seconds"),
            ("decay = inf", "`decay` cannot be `inf`"),
            ("arena_max = 0x8000000000000000_0000", "`arena_max` cannot be"),
            ("decay = [1]", "`decay` cannot be `[1]`"),
            ("decay = 1979-05-27", "`decay` cannot be `1979-05-27`"),
            ("decay.x = 1", "`decay` cannot be"),
            ("decay = 1\nbelow = 'x'\nunderlying = 'y'", "x.toml:3: `underlying` is set by line 2 already"),
            ("decay = 1\ndecay = 2", "x.toml:2: this is no TOML: duplicate key"),
            ("pages = 2M", "x.toml:1: this is no TOML: "),
            ("pages", "x.toml:1: this is no TOML: "),
            ("\u{0}", "x.toml:1: this is no TOML: "),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{text:?}: {error}");
            assert!(!error.contains('\n') && error.len() < 300, "{error}");
        }
    }

    #[test]
    fn hostile_files_are_refused_without_harm() {
        let deep = format!("decay = {}", "[".repeat(100_000));
        let long = format!("malloc_conf = {}", "{a=".repeat(50_000));
        let wide = format!("{} = 1", "a".repeat(500_000));
        let value = format!("pages = '{}'", "é".repeat(100_000));
        for text in [deep, long, wide, value] {
            let error = read(&text).unwrap_err();
            assert!(!error.contains('\n'), "{}", &error[..100]);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lowtide.toml");
        for bytes in [vec![b'#'; (1 << 20) + 1], vec![0xff, 0xfe, 0]] {
            std::fs::write(&path, bytes).unwrap();
            assert!(super::read(&path).unwrap_err().to_string().contains("lowtide.toml: it is"));
        }
        assert!(super::read(folder.path()).is_err(), "a folder");
        assert!(super::read(&folder.path().join("none")).is_err());
    }
}
