//! The report as one HTML page: style, scripts and data inside, nothing loaded from anywhere.

mod detail;
mod hilbert;
mod scene;
mod watched;

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lowtide_core::{Bytes, Moment};

use crate::{Difference, Finding, Findings, Group, Grouping, alive_at, counted, group, peak};

pub use detail::{Detail, Merged};
pub use scene::{Shown, carried};
pub use watched::{Watched, WatchedAction, WatchedSeries, WatchedTrend, watched};

/// What goes into a page.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// What the page is about.
    pub title: &'a str,
    /// The numbers that matter, on one line.
    pub headline: &'a str,
    /// The runs: one, or two to compare.
    pub runs: &'a [Shown<'a>],
    /// For each run the element that lets it be read back, such as `lowtide_formats` writes it.
    pub data: &'a [String],
    /// With two runs: what their groups hold at the two peaks.
    pub differences: &'a [Difference],
    /// What the reader of the inputs should know, a line each.
    pub notes: &'a [String],
    /// The name and version of the program that makes the page.
    pub generator: &'a str,
}

const HEAD: &str = include_str!("../assets/head.html");
const TEMPLATE: &str = include_str!("../assets/page.html");
pub(crate) const STYLE: &str = include_str!("../assets/page.css");
pub(crate) const NUMBERS: &str = include_str!("../assets/numbers.js");
pub(crate) const PALETTE: &str = include_str!("../assets/palette.js");
const SCRIPTS: [&str; 9] = [
    NUMBERS,
    include_str!("../assets/columns.js"),
    PALETTE,
    include_str!("../assets/main.js"),
    include_str!("../assets/state.js"),
    include_str!("../assets/map.js"),
    include_str!("../assets/curves.js"),
    include_str!("../assets/table.js"),
    include_str!("../assets/controls.js"),
];

/// The page. Takes time and memory in proportion to the runs.
pub fn page(page: &Page<'_>) -> String {
    let (scene, views) = scene::scene(page.runs);
    let scene = serde_json::to_string(&scene).expect("a scene is made of texts and numbers");
    let mut data = String::new();
    for (usage, view) in page.data.iter().zip(&views) {
        let view = STANDARD.encode(view);
        let _ = writeln!(data, "{usage}\n<script type=\"application/x-lowtide-view\">{view}</script>");
    }
    let (moment, table) = table(page.runs);
    filled(
        TEMPLATE,
        &[
            ("head", &head(page.title, page.generator, STYLE, "map-section")),
            ("generator", &escaped(page.generator)),
            ("title", &escaped(page.title)),
            ("headline", &escaped(page.headline)),
            ("moment", &moment),
            ("table", &table),
            ("notes", &notes(page.notes)),
            ("comparison", &comparison(page.differences)),
            ("findings", &page.runs.iter().enumerate().map(|run| findings(run, page.runs.len())).collect::<String>()),
            // Inside a script only `<` can end it.
            ("scene", &scene.replace('<', "\\u003c")),
            ("script", &format!("(() => {{\n\"use strict\";\n{}}})();", SCRIPTS.concat())),
            ("data", &data),
        ],
    )
}

/// What comes before the body of every page. Without scripts nothing of the class `scripted` is shown.
pub(crate) fn head(title: &str, generator: &str, style: &str, scripted: &str) -> String {
    let (title, generator) = (escaped(title), escaped(generator));
    filled(HEAD, &[("title", &title), ("generator", &generator), ("style", style), ("scripted", scripted)])
}

/// A template with its places filled, in one pass: what is filled in is not looked into again.
pub(crate) fn filled(template: &str, places: &[(&str, &str)]) -> String {
    let length = template.len() + places.iter().map(|(_, text)| text.len()).sum::<usize>();
    let mut page = String::with_capacity(length);
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once("{{") {
        let (name, after) = behind.split_once("}}").expect("the template closes its places");
        let text = places.iter().find(|(place, _)| *place == name).map(|(_, text)| *text);
        page.push_str(before);
        page.push_str(text.expect("every place of the template is filled"));
        rest = after;
    }
    page.push_str(rest);
    page
}

/// Who is alive at the peak of the last run, as a table that needs no script.
fn table(runs: &[Shown<'_>]) -> (String, String) {
    const MOST: usize = 20;
    let Some(Shown { usage, live, .. }) = runs.last() else { return (String::new(), String::new()) };
    let Moment { time, live, .. } = peak(usage, live);
    let alive = alive_at(usage, time);
    let by = Grouping::telling(usage);
    let groups = group(usage, &alive, by);
    let mut table = format!(
        "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">{}</th><th scope=\"col\" class=\"number\">bytes</th>\
         <th scope=\"col\" class=\"number\">buffers</th></tr></thead><tbody>",
        by.name()
    );
    let mut row = |key: &str, bytes: Bytes, count: usize| {
        let _ = write!(
            table,
            "<tr><td class=\"name\">{}</td><td class=\"number\">{bytes}</td><td class=\"number\">{count}</td></tr>",
            escaped(key)
        );
    };
    for Group { key, bytes, count } in groups.iter().take(MOST) {
        row(if key.is_empty() { "(unknown)" } else { key }, *bytes, *count);
    }
    if let Some(rest) = groups.get(MOST..).filter(|rest| !rest.is_empty()) {
        let bytes = rest.iter().map(|group| group.bytes).sum();
        row(&format!("+{} smaller", rest.len()), bytes, rest.iter().map(|group| group.count).sum());
    }
    table.push_str("</tbody></table></div>");
    (format!("At the peak, event {time}: {live} in {}", counted(alive.len(), "buffer")), table)
}

/// What was found out about the run at `place`; the page shows that of the run it shows.
fn findings((place, shown): (usize, &Shown<'_>), count: usize) -> String {
    let Findings { late, remedies } = shown.findings;
    let of = if count > 1 { format!(" of {}", escaped(shown.name)) } else { String::new() };
    let remedies = remedies.iter().map(|Finding { saves, leaves, text }| {
        format!("<li><b>−{saves}</b>, to {}: {}</li>", escaped(leaves), prose(text))
    });
    let late = late.iter().map(|text| format!("<li>{}</li>", prose(text)));
    let list = |title: &str, items: String| {
        if items.is_empty() { String::new() } else { format!("<h2>{title}</h2><ol class=\"findings\">{items}</ol>") }
    };
    let lists = list(&format!("What would lower the peak{of}, one change at a time"), remedies.collect())
        + &list(&format!("Freed too late{}", if count > 1 { &of } else { "" }), late.collect());
    format!("<section class=\"run-findings\" data-run=\"{place}\">{lists}</section>")
}

/// The groups of two runs side by side.
fn comparison(differences: &[Difference]) -> String {
    const MOST: usize = 30;
    if differences.is_empty() {
        return String::new();
    }
    let row = |one: &Difference| {
        let key = if one.key.is_empty() { "(unknown)" } else { &one.key };
        format!(
            "<tr><td class=\"name\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td></tr>",
            escaped(key),
            one.before,
            one.after,
            one.change()
        )
    };
    let sum = |of: fn(&Difference) -> Bytes, part: &[Difference]| part.iter().map(of).sum::<Bytes>();
    let total = |key: &str, part: &[Difference]| {
        let (before, after) = (sum(|one| one.before, part), sum(|one| one.after, part));
        row(&Difference { key: key.to_owned(), before, after })
    };
    let (shown, rest) = differences.split_at(differences.len().min(MOST));
    let more = if rest.is_empty() { String::new() } else { total(&format!("+{} that changed less", rest.len()), rest) };
    format!(
        "<section aria-label=\"The two peaks\"><h2>Alive at the two peaks</h2><div class=\"scroll\"><table class=\"comparison\">\
         <thead><tr><th scope=\"col\"></th><th scope=\"col\" class=\"number\">before</th>\
         <th scope=\"col\" class=\"number\">after</th><th scope=\"col\" class=\"number\">change</th></tr></thead>\
         <tbody>{}{}{more}</tbody></table></div></section>",
        total("in all", differences),
        shown.iter().map(row).collect::<String>()
    )
}

pub(crate) fn notes(notes: &[String]) -> String {
    notes.iter().fold(String::new(), |mut all, note| {
        let _ = write!(all, "<p class=\"note\">Note: {}</p>", escaped(note));
        all
    })
}

/// A sentence, with what stands between backticks set as code.
pub(crate) fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts.map(|(n, part)| if n % 2 == 1 { format!("<code>{}</code>", escaped(part)) } else { escaped(part) }).collect()
}

/// Text that can stand between tags and in attributes.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            _ => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Curve;
    use lowtide_core::{
        Buffer, Label, Layout, Lifetime, Origin, Placement, Plan, PoolIndex, Problem, TextIndex, Usage,
    };

    fn usage(id: &str) -> Usage {
        let buffer = Buffer::new(id, Lifetime { lower: 0, upper: 5 }, Bytes::new(1024));
        let mut usage = Usage::of(Problem::new(vec![buffer]));
        let plan = Plan {
            placements: vec![Placement { pool: PoolIndex::default(), offset: Bytes::ZERO }],
            heights: vec![Bytes::new(1024)],
            lower_bound: Bytes::new(1024),
            proved: true,
        };
        usage.layouts.push(Layout { origin: Origin::Planned, plan });
        usage
    }

    fn made(title: &str, usage: &Usage, remedies: &[Finding]) -> String {
        let live = Curve { points: vec![(0, Bytes::new(1024)), (5, Bytes::ZERO)] };
        let findings = Findings { late: Vec::new(), remedies: remedies.to_vec() };
        let runs = [Shown { name: title, usage, live: &live, findings: &findings }];
        let data = ["<script type=\"x\">DATA-ELEMENT</script>".to_owned()];
        page(&Page {
            title,
            headline: "peak 1.0 KiB",
            runs: &runs,
            data: &data,
            differences: &[],
            notes: &[title.to_owned()],
            generator: "lowtide 0",
        })
    }

    #[test]
    fn texts_from_the_input_cannot_become_markup_or_places() {
        let hostile = "</script><script>alert(1)</script>{{data}}&\"";
        let mut usage = usage(hostile);
        usage.texts.push(hostile.into());
        usage.labels[0] = Label { category: Some(TextIndex(0)), ..Label::default() };
        let finding = Finding { saves: Bytes::new(512), leaves: "0 B".to_owned(), text: hostile.to_owned() };
        let page = made(hostile, &usage, &[finding]);
        assert!(!page.contains("<script>alert"));
        assert_eq!(page.matches("DATA-ELEMENT").count(), 1);
        assert!(page.contains("\\u003c/script>\\u003cscript>alert"));
        assert!(page.contains("<b>−512 B</b>, to 0 B: &lt;/script&gt;"));
    }

    #[test]
    fn a_page_names_nothing_outside_itself() {
        let page = made("t", &usage("a"), &[]);
        for outside in ["http:", "https:", "//cdn", "import(", "fetch(", "XMLHttpRequest", "src=", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn the_table_of_the_peak_needs_no_script() {
        let page = made("t", &usage("a"), &[]);
        assert!(page.contains("At the peak, event 0: 1.0 KiB in 1 buffer"));
        assert!(page.contains("<td class=\"name\">1.0 KiB to 2.0 KiB</td><td class=\"number\">1.0 KiB</td>"));
    }
}
