//! The reference page of all options, made from the table.

use std::fmt::Write as _;

use lowtide_core::options::{Entry, Kind, Scope, TABLE};

const HEAD: &str = "\
# Options

This page is made by `lowtide config --reference` from the table in `crates/core/src/options/table.rs`; a test fails where the two differ.

An option can be given as a flag of `lowtide run`, as a variable, or as a key of `lowtide.toml` in the folder where `lowtide run` is started (or
of the file that `--config` names). Flags go before variables, variables before the file, and the file before defaults. `lowtide run` hands
flags and the file to the program as variables. A value that is out of its range is refused before the program starts; a library that finds one in its
variables warns and uses the default. An empty variable says nothing.

```sh
lowtide config
```

shows what is in force, and where each value came from. A file looks like this:

```toml
pages = \"2M\"        # text between quotation marks
decay = 0.5         # seconds
learn = false       # a switch
trim_threshold = \"128KiB\"
```
";

/// The page.
pub(super) fn page() -> String {
    let mut page = HEAD.to_owned();
    for scope in Scope::ALL.into_iter().filter(|scope| *scope != Scope::Internal) {
        let entries: Vec<&Entry> = TABLE.iter().filter(|entry| entry.scope == scope).collect();
        let _ = write!(page, "\n## {}\n\n", scope.heading());
        page.push_str(if scope.is_of_run() { RUN_HEADER } else { VARIABLE_HEADER });
        for entry in entries {
            page.push_str(&row(entry));
        }
    }
    page.push_str(&former());
    page.push_str(&older());
    page
}

const RUN_HEADER: &str = "| flag of `run` | variable | key | values | default | |\n|---|---|---|---|---|---|\n";
const VARIABLE_HEADER: &str = "| variable | values | default | |\n|---|---|---|---|\n";

fn row(entry: &Entry) -> String {
    let Entry { variable, kind, sentence, .. } = entry;
    let default = entry.default.map_or_else(|| "-".to_owned(), |default| format!("`{default}`"));
    if !entry.scope.is_of_run() {
        return format!("| `{variable}` | {kind} | {default} | {sentence} |\n");
    }
    let value = match kind {
        Kind::Switch => String::new(),
        Kind::Choice(_) => format!(" {}", entry.name.to_uppercase()),
        kind => format!(" {}", kind.placeholder().replace('|', "\\|")),
    };
    let (flag, key) = (entry.flag(), entry.key());
    format!("| `--{flag}{value}` | `{variable}` | `{key}` | {kind} | {default} | {sentence} |\n")
}

fn former() -> String {
    let mut text =
        "\n## Former names\n\nThey are still understood.\n\n| flag | variable | now |\n|---|---|---|\n".to_owned();
    for entry in TABLE {
        for former in entry.former {
            let _ = writeln!(text, "| `--{}` | `{}` | `--{}` |", former.name, former.variable, entry.flag());
        }
    }
    text
}

fn older() -> String {
    let mut text = "\n## Names of older systems\n\nThey have the meaning that the documents of their system give them. Who sets one \
                    variable of a system gets the defaults\nof that system for the others. `ENABLE_MEMORY_OPTIMIZATION=0` sets `arena` \
                    to `never` too, unless a flag, a variable or a\nfile says otherwise.\n\n\
                    | system | variable | option | values | default there |\n|---|---|---|---|---|\n"
        .to_owned();
    for entry in TABLE {
        for older in entry.older {
            let variable = older.variable.map_or_else(|| "-".to_owned(), |variable| format!("`{variable}`"));
            let default = older.default.map_or_else(|| "-".to_owned(), |default| format!("`{default}`"));
            let _ = writeln!(text, "| {} | {variable} | `{}` | {} | {default} |", older.system, entry.name, older.kind);
        }
    }
    text
}
