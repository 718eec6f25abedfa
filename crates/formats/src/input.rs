//! The front door: whatever a verb is given, [`Input::read`] tells what it is and reads it.

use std::io::Read;

use lowtide_core::{Problem, Trace};

use crate::json::{self, Document};
use crate::reading::header::{Dialect, Header};
use crate::reading::open::{Opened, open};
use crate::usage::html;
use crate::{Error, Lifetimes, PlanFile, Run, Snapshot, lifetimes, plan, problem, snapshot, trace};

/// What a file held.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Input {
    /// Lifetimes CSV.
    Lifetimes(Lifetimes),
    /// Trace CSV.
    Trace(Trace),
    /// A PyTorch memory snapshot.
    Snapshot(Snapshot),
    /// Problem JSON.
    Problem(Problem),
    /// Plan JSON.
    Plan(PlanFile),
    /// The runs that a report shows.
    Report(Vec<Run>),
}

impl Input {
    /// Reads any input: plain or gzip, told apart by the header of a table or the `kind` of JSON.
    ///
    /// Never panics and never reads on past its [`limits`](crate::limits), whatever the bytes. A problem that
    /// is returned has passed its own check. A CSV with lifetimes and offsets is lifetimes with pins; use
    /// [`PlanFile::read`] to read it as a plan.
    pub fn read(reader: impl Read) -> Result<Self, Error> {
        match open(reader)? {
            Opened::Table(mut records) => {
                let header = Header::read(&mut records)?;
                match header.dialect()? {
                    Dialect::Lifetimes => lifetimes::read(records, &header).map(Self::Lifetimes),
                    Dialect::Trace => trace::read(records, &header).map(Self::Trace),
                }
            }
            Opened::Pickle(reader) => snapshot::read(reader).map(Self::Snapshot),
            Opened::Html(start, rest) => html::read(start, rest).map(Self::Report),
            Opened::Json(text) => match json::kind(&text, "`problem` or `plan`")? {
                Document::Problem => problem::read(&text).map(Self::Problem),
                Document::Plan => plan::read_json(&text).map(Self::Plan),
            },
        }
    }

    /// What it is, in words for a message.
    pub fn what(&self) -> &'static str {
        match self {
            Self::Lifetimes(_) => "lifetimes",
            Self::Trace(_) => "a trace",
            Self::Snapshot(_) => "a memory snapshot",
            Self::Problem(_) => "a problem",
            Self::Plan(_) => "a plan",
            Self::Report(_) => "a report",
        }
    }
}
