//! Whether memory that was watched grows for good. A series is judged by its floor: what is low in each slice of time, or the
//! valleys where it swings, because what is given back again is no leak. The trend of the floor is a robust slope with an
//! interval; growth that bends, may bend or has stopped is warming up. Growth in a run too short for a leak is growing where
//! it is steep, and warming up where it is not.

mod bend;
mod swings;
mod trend;

use serde::Serialize;
use swings::Swings;
pub use trend::{Trend, median};

/// A value at a moment: bytes, over seconds or repetitions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// When, in seconds or repetitions.
    pub at: f64,
    /// Bytes.
    pub value: f64,
}

/// What the memory of a process does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It does not grow.
    Stable,
    /// It grows, but less and less; or it is too early to tell.
    Warming,
    /// It grows steeply up to the end of a run that is too short to tell a leak from a program that still loads.
    Growing,
    /// It grows for good.
    Leaking,
}

impl Verdict {
    /// Whether a script may go on: nothing that was seen has to be a fault.
    pub fn is_fine(self) -> bool {
        self < Self::Growing
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Warming => "still warming",
            Self::Growing => "growing",
            Self::Leaking => "leaking",
        }
    }
}

/// Why a verdict is what it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// There are too few values to tell anything.
    TooShort,
    /// It rises all the time, for too short a time to be called a leak.
    Early,
    /// The floor does not rise, or not faster than what is called a leak.
    Flat,
    /// It rises, and was as high before and came back.
    GivesBack,
    /// It gave back some and is higher than ever, too few times to make a trend of it.
    FewSwings,
    /// It rises, but neither so long nor so evenly that a leak is sure.
    Unsure,
    /// It rises, slower and slower.
    Bends,
    /// It rose, and has stopped.
    Stopped,
    /// It rises all the time.
    Grows,
}

impl Reason {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::TooShort => "too short to tell",
            Self::Early => "it grows up to the end; 30 s are needed to call it a leak",
            Self::Flat => "no growth for good was found",
            Self::GivesBack => "it was as high before and came back",
            Self::FewSwings => "it gave memory back, and is higher than ever since",
            Self::Unsure => "it grows; more time would tell whether for good",
            Self::Bends => "it grows slower and slower",
            Self::Stopped => "it grew, and has stopped lately",
            Self::Grows => "it grows all the time",
        }
    }
}

/// A verdict, why, and the trend that it was made of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Judgement {
    /// What the memory does.
    pub verdict: Verdict,
    /// Why that is the verdict.
    pub reason: Reason,
    /// How fast the floor rises; nothing where there are too few values.
    pub trend: Option<Trend>,
    /// Where the judged part begins.
    pub from: f64,
}

impl Judgement {
    /// How sure it is of the slope that the verdict lies in; nothing where something else than the slope makes it.
    pub fn confidence(&self) -> Option<f64> {
        let trend = self.trend?;
        let is_by_slope = match self.reason {
            Reason::Grows => trend.is_above,
            Reason::Flat => !trend.is_above,
            _ => false,
        };
        is_by_slope.then_some(trend.confidence)
    }
}

/// What is called a leak, and which part of a series is judged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Judge {
    /// Growth up to this rate is no leak: bytes per second or repetition.
    pub rate: f64,
    /// Growth over the judged part below this many bytes is no leak.
    pub growth: f64,
    /// Where the judged part begins.
    pub from: f64,
    /// Where the run began to be what it is: what was reached and given back since then is no leak when reached again.
    pub settled: f64,
    /// The shortest part that can be judged.
    pub shortest: f64,
    /// The shortest part that can be called a leak.
    pub shortest_leak: f64,
}

/// The fewest values that make a trend.
const FEWEST: usize = 6;
/// Into how many slices of time a series without swings is cut.
const SLICES: usize = 30;
/// Of a slice, one value in so many is below its floor.
const LOW: usize = 4;
/// None is.
const LOWEST: usize = 0;
/// How deep a fall is, of the range of the judged part, to be a swing.
const SWING: f64 = 0.3;
/// How long, of the judged part, a fall at the very end may be there to be the end of the program.
const ENDING: f64 = 0.1;
/// How many times the rate that is no leak a steep growth is.
const STEEP: f64 = 100.0;
/// How many times the level where the run settled a steep growth comes to: collectors let memory double.
const STEEP_LEVEL: f64 = 2.0;
/// The fewest values of a steep growth.
const STEEP_VALUES: usize = 20;

impl Judge {
    /// Judges `points`, which are in order.
    pub fn judge(self, points: &[Point]) -> Judgement {
        let start = points.partition_point(|point| point.at < self.from);
        let from = points.get(start).map_or(self.from, |point| point.at);
        let of = |verdict, reason, trend| Judgement { verdict, reason, trend, from };
        let judged = &points[start..];
        let length = length(judged);
        if judged.len() < FEWEST || length < self.shortest || length <= 0.0 {
            return of(Verdict::Warming, Reason::TooShort, None);
        }
        let least = (SWING * range(judged)).max(self.growth);
        let mut swings = Swings::of(judged, least);
        let mut judged = judged;
        if swings.open.is_some()
            && let Some(fall) = ending(judged, least)
            && fall >= FEWEST
        {
            judged = &judged[..=fall];
            swings = Swings::of(judged, least);
        }
        let history = &points[points.partition_point(|point| point.at < self.settled)..start + judged.len()];
        let floor = Floor::of(judged, history);
        let is_smooth = |floor: &Floor| {
            let least = (SWING * range(&floor.points)).max(self.growth);
            Swings::of(&floor.points, least).valleys.is_empty()
        };
        let judgement = match swings.valleys.len() {
            FEWEST..=60 if !is_smooth(&floor) => self.grows(&Floor::of_valleys(swings.valleys), from, least),
            FEWEST.. => self.grows(&Floor { history: Vec::new(), ..floor }, from, least),
            count => {
                let floor = floor.without_spikes(least);
                if count == 0 || is_smooth(&floor) {
                    self.grows(&floor, from, least)
                } else {
                    self.few(judged, history, &floor, &swings, least)
                }
            }
        };
        if judgement.verdict == Verdict::Leaking && length < self.shortest_leak {
            let is_steep = judged.len() >= STEEP_VALUES && self.is_steep(&judgement, history);
            let verdict = if is_steep { Verdict::Growing } else { Verdict::Warming };
            return Judgement { verdict, reason: Reason::Early, ..judgement };
        }
        judgement
    }

    /// Whether growth is far above the rate, and beyond what a collector lets memory grow between two collections.
    fn is_steep(self, judgement: &Judgement, history: &[Point]) -> bool {
        let floor = lows(history, LOW);
        let is_higher =
            floor.first().zip(floor.last()).is_some_and(|(first, last)| last.value >= STEEP_LEVEL * first.value);
        is_higher && judgement.trend.is_some_and(|trend| trend.surely > STEEP * self.rate)
    }

    /// Judges a floor.
    fn grows(self, floor: &Floor, from: f64, least: f64) -> Judgement {
        let Floor { points, lowest, long, history } = floor;
        let trend = Trend::of(points, self.rate);
        let growth = trend.slope * length(points);
        let rises_below = || lowest.is_empty() || Trend::of(lowest, self.rate).slope > trend.slope / 4.0;
        let (verdict, reason) = if trend.low <= self.rate || growth < self.growth {
            (Verdict::Stable, Reason::Flat)
        } else if came_back(history, least) || !rises_below() {
            (Verdict::Stable, Reason::GivesBack)
        } else if bend::has_stopped(points, &trend) {
            (Verdict::Warming, Reason::Stopped)
        } else if bend::bends(points) || bend::bends(long) {
            (Verdict::Warming, Reason::Bends)
        } else if trend.surely <= self.rate || bend::may_bend(long) {
            (Verdict::Warming, Reason::Unsure)
        } else {
            (Verdict::Leaking, Reason::Grows)
        };
        Judgement { verdict, reason, trend: Some(trend), from }
    }

    /// Judges what swings too few times to have a trend of valleys in the judged part: those since it settled, where they are
    /// enough, or else what came after the last one, where that is higher than ever and long enough.
    fn few(self, judged: &[Point], history: &[Point], floor: &Floor, swings: &Swings, least: f64) -> Judgement {
        let earlier = Swings::of(history, least).valleys;
        if earlier.len() >= FEWEST {
            return self.grows(&Floor::of_valleys(earlier), judged[0].at, least);
        }
        let last = swings.valleys[swings.valleys.len() - 1].at;
        let behind = &judged[judged.partition_point(|point| point.at < last)..];
        let (before, since) = floor.history.split_at(floor.history.partition_point(|point| point.at < last));
        let trend = Trend::of(&lows(judged, LOW), self.rate);
        let of = |verdict, reason| Judgement { verdict, reason, trend: Some(trend), from: judged[0].at };
        if highest(since) < highest(before) + least / 2.0 && !keeps(before, since) {
            return of(Verdict::Stable, Reason::GivesBack);
        }
        if behind.len() >= 2 * FEWEST && length(behind) > 0.6 * length(judged) {
            return self.grows(&Floor::of(behind, &[]), last, least);
        }
        of(Verdict::Warming, Reason::FewSwings)
    }
}

/// The place of the high point from which a series falls at its very end, by itself: a spike before is another matter.
fn ending(points: &[Point], least: f64) -> Option<usize> {
    let from = points[points.len() - 1].at - ENDING * length(points);
    let tail = points.partition_point(|point| point.at <= from);
    Swings::of(&points[tail..], least).open.filter(|&fall| fall > 0).map(|fall| tail + fall)
}

/// What a series comes back to.
struct Floor {
    points: Vec<Point>,
    /// The lowest values, where they are not the floor already: it only rises where they do.
    lowest: Vec<Point>,
    /// The floor since the series settled, by which it is seen to bend.
    long: Vec<Point>,
    /// The same, by which it is seen to come back; nothing where it swings so often that a high moment before tells nothing.
    history: Vec<Point>,
}

impl Floor {
    fn of(judged: &[Point], history: &[Point]) -> Self {
        let long = if history.is_empty() { judged } else { history };
        // Teeth that beat with the slices make one of them ragged.
        let long = bend::smoother(lows(long, LOW), lows(long, LOWEST));
        Self { points: lows(judged, LOW), lowest: lows(judged, LOWEST), long, history: lows(history, LOW) }
    }

    fn of_valleys(valleys: Vec<Point>) -> Self {
        Self { long: valleys.clone(), points: valleys, lowest: Vec::new(), history: Vec::new() }
    }

    /// Without what is up for a moment by `least` or more.
    fn without_spikes(self, least: f64) -> Self {
        let [points, long, history] =
            [self.points, self.long, self.history].map(|points| without_spikes(&points, least));
        Self { points, long, history, ..self }
    }
}

/// What is up by `least` or more for fewer than three points becomes what is beside it.
fn without_spikes(points: &[Point], least: f64) -> Vec<Point> {
    let near = |values: &[f64], at: usize, pick: fn(f64, f64) -> f64| {
        values[at.saturating_sub(1)..(at + 2).min(values.len())].iter().copied().fold(values[at], pick)
    };
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    let lower: Vec<f64> = (0..values.len()).map(|at| near(&values, at, f64::min)).collect();
    let level = |(at, point): (usize, &Point)| match near(&lower, at, f64::max) {
        level if point.value - level >= least => Point { value: level, ..*point },
        _ => *point,
    };
    points.iter().enumerate().map(level).collect()
}

/// Whether the end of the floor is no higher than a moment in it after which it fell.
fn came_back(floor: &[Point], least: f64) -> bool {
    let Some((last, rest)) = floor.split_last() else { return false };
    let end = highest(&floor[floor.len().saturating_sub(floor.len() / 20 + 1)..]);
    let mut lowest_behind = last.value;
    for point in rest.iter().rev() {
        if point.value >= end && point.value - lowest_behind >= least {
            return true;
        }
        lowest_behind = lowest_behind.min(point.value);
    }
    false
}

/// Whether the floor since a fall stays above what it was before by half of all growth or more.
fn keeps(before: &[Point], since: &[Point]) -> bool {
    let grown = highest(since) - lowest(before);
    !before.is_empty() && !since.is_empty() && grown > 0.0 && lowest(since) - lowest(before) >= grown / 2.0
}

/// What is low in each of some slices of equal length: one value in `rank` is lower, or with zero none.
fn lows(points: &[Point], rank: usize) -> Vec<Point> {
    if points.len() <= SLICES {
        return points.to_vec();
    }
    let (start, width) = (points[0].at, length(points) / SLICES as f64);
    let slice = |point: &Point| (((point.at - start) / width) as usize).min(SLICES - 1);
    let low = |part: &[Point]| {
        let mut part = part.to_vec();
        let place = part.len().checked_div(rank).unwrap_or(0);
        *part.select_nth_unstable_by(place, |a, b| a.value.total_cmp(&b.value)).1
    };
    points.chunk_by(|a, b| slice(a) == slice(b)).map(low).collect()
}

fn length(points: &[Point]) -> f64 {
    points.last().zip(points.first()).map_or(0.0, |(last, first)| last.at - first.at)
}

fn highest(points: &[Point]) -> f64 {
    points.iter().map(|point| point.value).fold(f64::NEG_INFINITY, f64::max)
}

fn lowest(points: &[Point]) -> f64 {
    points.iter().map(|point| point.value).fold(f64::INFINITY, f64::min)
}

fn range(points: &[Point]) -> f64 {
    highest(points) - lowest(points)
}

#[cfg(test)]
mod rates;
#[cfg(test)]
mod tests;
