//! What was watched as one HTML page: memory and faults over time, marks, and the peak of each action.

use std::fmt::Write as _;

use serde::Serialize;

use super::{NUMBERS, PALETTE, STYLE, escaped, filled, head, notes, prose};

/// What goes into a page about something that was watched.
#[derive(Clone, Debug)]
pub struct Watched<'a> {
    /// What was watched.
    pub title: &'a str,
    /// What it does, in a word or two.
    pub verdict: &'a str,
    /// The numbers that matter, on one line.
    pub headline: &'a str,
    /// More of them, a line each.
    pub lines: &'a [String],
    /// Amounts and faults over time.
    pub series: &'a WatchedSeries,
    /// Actions that were marked.
    pub actions: &'a [WatchedAction],
    /// When an action ended, in seconds, and its place among the actions.
    pub marks: &'a [(f64, usize)],
    /// The trend that was judged.
    pub trend: Option<WatchedTrend>,
    /// Actions in numbers: the names of the columns, then a row each.
    pub table: &'a [Vec<String>],
    /// What the reader should know, a line each.
    pub notes: &'a [String],
    /// The name and version of the program that makes the page.
    pub generator: &'a str,
}

/// Amounts in bytes and faults since the start, by time in seconds: columns of one length.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[allow(missing_docs, reason = "they are what their names say")]
pub struct WatchedSeries {
    pub time: Vec<f64>,
    pub resident: Vec<u64>,
    pub anonymous: Vec<u64>,
    pub file: Vec<u64>,
    pub shared: Vec<u64>,
    pub swapped: Vec<u64>,
    pub huge: Vec<u64>,
    pub minor: Vec<u64>,
    pub major: Vec<u64>,
}

/// An action and its peaks.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WatchedAction {
    /// Its name.
    pub name: String,
    /// When a repetition ended, and its peak.
    pub peaks: Vec<(f64, u64)>,
}

/// A line through what was judged.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct WatchedTrend {
    /// Where it begins, in seconds.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Bytes at its begin.
    pub level: f64,
    /// Bytes per second.
    pub slope: f64,
}

#[derive(Serialize)]
struct Scene<'a> {
    series: &'a WatchedSeries,
    actions: &'a [WatchedAction],
    marks: &'a [(f64, usize)],
    trend: Option<WatchedTrend>,
}

const TEMPLATE: &str = include_str!("../../assets/watch.html");
const OWN_STYLE: &str = include_str!("../../assets/watch.css");
const SCRIPT: &str = include_str!("../../assets/watch.js");

/// The page. Takes time and memory in proportion to the series.
pub fn watched(page: &Watched<'_>) -> String {
    let &Watched { series, actions, marks, trend, .. } = page;
    let scene =
        serde_json::to_string(&Scene { series, actions, marks, trend }).expect("a scene is made of texts and numbers");
    let lines = page.lines.iter().fold(String::new(), |mut all, line| {
        let _ = write!(all, "<p class=\"small\">{}</p>", prose(line));
        all
    });
    let kind = page.verdict.rsplit(' ').next().unwrap_or_default();
    filled(
        TEMPLATE,
        &[
            ("head", &head(page.title, page.generator, &format!("{STYLE}{OWN_STYLE}"), "chart-section")),
            ("generator", &escaped(page.generator)),
            ("title", &escaped(page.title)),
            ("verdict", &escaped(page.verdict)),
            ("kind", &escaped(kind)),
            ("headline", &escaped(page.headline)),
            ("lines", &lines),
            ("notes", &notes(page.notes)),
            ("actions", &table(page.table)),
            // Inside a script only `<` can end it.
            ("scene", &scene.replace('<', "\\u003c")),
            ("script", &format!("(() => {{\n\"use strict\";\n{NUMBERS}{PALETTE}{SCRIPT}}})();")),
        ],
    )
}

/// The actions, as a table that needs no script.
fn table(cells: &[Vec<String>]) -> String {
    let Some((head, rows)) = cells.split_first().filter(|(_, rows)| !rows.is_empty()) else { return String::new() };
    let class = |column: usize| if column == 0 { "name" } else { "number" };
    let cell = |(column, text): (usize, &String)| format!("<td class=\"{}\">{}</td>", class(column), escaped(text));
    let title = |(column, text): (usize, &String)| {
        format!("<th scope=\"col\" class=\"{}\">{}</th>", class(column), escaped(text))
    };
    let row = |row: &Vec<String>| format!("<tr>{}</tr>", row.iter().enumerate().map(cell).collect::<String>());
    format!(
        "<section aria-label=\"Actions\"><h2>Actions</h2><div class=\"scroll\"><table><thead><tr>{}</tr></thead>\
         <tbody>{}</tbody></table></div></section>",
        head.iter().enumerate().map(title).collect::<String>(),
        rows.iter().map(row).collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str) -> String {
        let series = WatchedSeries {
            time: vec![0.1, 0.2],
            resident: vec![1024, 2048],
            anonymous: vec![512, 1024],
            file: vec![512, 1024],
            shared: vec![0, 0],
            swapped: vec![0, 0],
            huge: vec![0, 0],
            minor: vec![1, 5],
            major: vec![0, 0],
        };
        let table = [vec!["action".to_owned(), "count".to_owned()], vec![text.to_owned(), "2".to_owned()]];
        watched(&Watched {
            title: text,
            verdict: "still warming",
            headline: "peak 2.0 KiB",
            lines: &[text.to_owned()],
            series: &series,
            actions: &[WatchedAction { name: text.to_owned(), peaks: vec![(0.1, 2048)] }],
            marks: &[(0.1, 0)],
            trend: Some(WatchedTrend { from: 0.1, to: 0.2, level: 512.0, slope: 5120.0 }),
            table: &table,
            notes: &[text.to_owned()],
            generator: "lowtide 0",
        })
    }

    #[test]
    fn texts_of_a_program_cannot_become_markup_or_places() {
        let page = made("</script><script>alert(1)</script>{{scene}}&\"");
        assert!(!page.contains("<script>alert") && !page.contains("alert(1)</script>"));
        assert!(page.contains("\\u003c/script>\\u003cscript>alert"));
        assert!(page.contains("<td class=\"name\">&lt;/script&gt;"));
        assert!(page.contains("<b class=\"verdict warming\">still warming</b>peak 2.0 KiB"));
    }

    #[test]
    fn a_page_names_nothing_outside_itself() {
        let page = made("t");
        for outside in ["http:", "https:", "//cdn", "import(", "fetch(", "XMLHttpRequest", "src=", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}
