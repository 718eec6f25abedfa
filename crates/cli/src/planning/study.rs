//! One run looked at from all sides: how its memory lay, how it could lie, how little it needs, and why. What `report` and
//! the demo show.

use lowtide_core::{Bytes, Explanation, Layout, Moment, Origin, PoolIndex, Problem, Usage};
use lowtide_plan::{At, Fits};
use lowtide_report::{Curve, Findings};

use crate::Failure;
use crate::console::show;
use crate::input::question::Question;
use crate::planning::solving::{Effort, Solved};
use crate::verbs::explain;
use crate::verbs::plan::{Summary, contradiction};

/// A run with its layouts, the planner's last.
pub(crate) struct Study {
    pub name: String,
    pub usage: Usage,
    /// The bytes alive in all pools together.
    pub live: Curve,
    pub summary: Summary,
    /// The pool that is explained, where there are several.
    pub focus: Option<Focus>,
    pub explanation: Explanation,
    pub notes: Vec<String>,
}

/// The pool of several in which most is alive at once.
pub(crate) struct Focus {
    /// Its name.
    pub pool: String,
    /// How it alone is used.
    pub usage: Usage,
    /// The bytes alive in it.
    pub live: Curve,
}

/// Which layouts stand before the planned one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Before {
    /// The recorded one, where there is one.
    Recorded,
    /// That, none shared, and greedy.
    All,
}

/// That there is no plan, in a sentence: buffers are pinned over each other.
pub(crate) struct Contradiction(pub String);

impl Contradiction {
    pub fn new(problem: &Problem, fits: &Fits) -> Self {
        Self(match fits {
            Fits::No(blame) => contradiction(problem, blame),
            Fits::Yes | Fits::Unknown => "there is no plan".to_owned(),
        })
    }
}

/// The largest time that a page can tell from the next.
const LARGEST_TIME: u64 = 1 << 52;

impl Study {
    /// Plans what `question` asks, lays it out in the ways that `before` says, and explains it. Messages call it `name`.
    pub fn new(
        question: Question,
        name: String,
        effort: &Effort,
        before: Before,
    ) -> Result<Result<Self, Contradiction>, Failure> {
        let file = question.name().to_owned();
        let mut notes = question.notes().to_vec();
        let mut usage = question.into_usage();
        let span = usage.span();
        if [span.start, span.end].iter().any(|time| time.unsigned_abs() > LARGEST_TIME) {
            notes.push(format!("times are counted from {} on", span.start));
            usage.count_from(span.start);
        }
        let problem = &usage.problem;
        let failed = |error| Failure::solve(&file, error);
        let mut layouts: Vec<Layout> =
            usage.layouts.iter().filter(|layout| layout.origin == Origin::Recorded).cloned().collect();
        if before == Before::All {
            layouts.push(Layout { origin: Origin::Unshared, plan: lowtide_plan::unshared(problem) });
            let greedy = Effort::first_plan(problem).map_err(failed)?.plan;
            layouts.extend(greedy.map(|plan| Layout { origin: Origin::Greedy, plan }));
        }
        let solved = effort.solve(problem, &name).map_err(failed)?;
        let summary = Summary::new(problem, &solved, effort);
        let Solved { outcome, .. } = solved;
        let Some(plan) = outcome.plan else { return Ok(Err(Contradiction::new(problem, &outcome.fits))) };
        layouts.push(Layout { origin: Origin::Planned, plan });
        usage.layouts = layouts;
        let live = live(&usage, &file)?;
        let mut focus = focus(&usage, &file)?;
        let explained = focus.as_mut().map_or(&mut usage, |focus| &mut focus.usage);
        let (explanation, _) = explain::of_usage(explained, At::Peak, effort, &file)?;
        Ok(Ok(Self { name, usage, live, summary, focus, explanation, notes }))
    }

    /// The moment at which most is alive: in the pool that is explained, where there are several.
    pub fn peak(&self) -> Moment {
        self.explanation.peak
    }

    /// What is explained, and the bytes alive in it.
    pub fn explained(&self) -> (&Usage, &Curve) {
        self.focus.as_ref().map_or((&self.usage, &self.live), |focus| (&focus.usage, &focus.live))
    }

    /// The explanation in sentences.
    pub fn findings(&self) -> Findings {
        Findings::new(self.explained().0, &self.explanation)
    }

    /// The most that the recorded allocator held, where that is known.
    pub fn reserved(&self) -> Option<Bytes> {
        Curve::reserved(&self.usage).highest().map(|(_, bytes)| bytes)
    }

    /// The numbers that matter, as parts of a headline.
    pub fn headline(&self) -> Vec<String> {
        let Summary { peak, lower_bound, proved, naive, .. } = &self.summary;
        let planned = peak.unwrap_or_default();
        let quality = if *proved {
            "optimal".to_owned()
        } else {
            format!("{}× the bound of {lower_bound}", show::ratio(planned, *lower_bound))
        };
        let pool = self.focus.as_ref().map(|focus| format!(" in {}", show::name(&focus.pool))).unwrap_or_default();
        let reserved = self.reserved().map(|reserved| format!("reserved as recorded {reserved}"));
        let parts = [
            Some(format!("alive at most {}{pool}", self.peak().live)),
            Some(format!("planned {planned}, {quality}")),
            reserved,
            Some(format!("without reuse {naive}")),
        ];
        parts.into_iter().flatten().collect()
    }
}

fn live(usage: &Usage, file: &str) -> Result<Curve, Failure> {
    let points = lowtide_plan::live(&usage.problem).map_err(|error| Failure::problem(file, None, error))?;
    Ok(Curve { points })
}

/// The pool in which most is alive at once; nothing where there is but one.
pub(crate) fn focus(usage: &Usage, file: &str) -> Result<Option<Focus>, Failure> {
    let pools = &usage.problem.pools;
    if pools.len() < 2 {
        return Ok(None);
    }
    let mut highest: Option<(Bytes, Focus)> = None;
    for (place, pool) in pools.iter().enumerate() {
        let usage = usage.of_pool(PoolIndex::new(place));
        let live = live(&usage, file)?;
        let most = live.highest().map_or(Bytes::ZERO, |(_, bytes)| bytes);
        if highest.as_ref().is_none_or(|(before, _)| most > *before) {
            highest = Some((most, Focus { pool: pool.name.to_string(), usage, live }));
        }
    }
    Ok(highest.map(|(_, focus)| focus))
}
