//! One run looked at from all sides: how its memory lay, how it could lie, and how little it needs. What the verbs
//! `report` and `explain` and the demo show.

use lowtide_core::{Bytes, Layout, Moment, Origin, Usage};
use lowtide_plan::{At, Fits};
use lowtide_report::{Curve, Finding, peak, remedy_sentence};

use crate::plan::Summary;
use crate::question::Question;
use crate::solving::{Effort, Solved};
use crate::{Failure, explain};

/// A run with its layouts, the planner's last.
pub(crate) struct Study {
    pub name: String,
    pub usage: Usage,
    pub summary: Summary,
    pub peak: Moment,
    pub fits: bool,
    pub findings: Vec<Finding>,
}

/// Which layouts stand before the planned one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Before {
    /// The recorded one, where there is one.
    Recorded,
    /// That, none shared, and greedy.
    All,
}

impl Study {
    /// Plans what `question` asks and lays it out in the ways that `before` says. Messages call it `name`.
    pub fn new(question: Question, name: String, effort: &Effort, before: Before) -> Result<Self, Failure> {
        let file = question.name().to_owned();
        let mut usage = question.into_usage();
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
        let Some(plan) = outcome.plan else {
            let message = "there is no plan: buffers are pinned over each other while both are alive";
            return Err(Failure::unfit(&file, message, "move or drop one of the two pins"));
        };
        layouts.push(Layout { origin: Origin::Planned, plan });
        usage.layouts = layouts;
        let peak = peak(&usage, &Curve::live(&usage.problem));
        let explanation = explain::of_usage(&mut usage, At::Peak, effort, &file)?;
        let findings = explanation
            .remedies
            .iter()
            .map(|remedy| Finding { saves: Some(remedy.saves), text: remedy_sentence(&usage, remedy) });
        Ok(Self { findings: findings.collect(), name, peak, summary, fits: outcome.fits == Fits::Yes, usage })
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
            format!("{}× the bound of {lower_bound}", crate::show::ratio(planned, *lower_bound))
        };
        let reserved = self.reserved().map(|reserved| format!("reserved as recorded {reserved}"));
        let parts = [
            Some(format!("alive at most {}", self.peak.live)),
            Some(format!("planned {planned}, {quality}")),
            reserved,
            Some(format!("without reuse {naive}")),
        ];
        parts.into_iter().flatten().collect()
    }
}
