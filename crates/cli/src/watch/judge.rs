//! Whether memory that was watched grows for good. A series is judged by its floor: the lowest of each window, or the
//! valleys where it swings, because what is given back again is no leak. The trend of the floor is a robust slope with an
//! interval; growth that bends or has stopped is warming up.

mod swings;
mod trend;

use serde::Serialize;
use swings::Swings;
pub(crate) use trend::Trend;

/// A value at a moment: bytes, over seconds or repetitions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Point {
    pub at: f64,
    pub value: f64,
}

/// What the memory of a process does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// It does not grow.
    Stable,
    /// It grows, but less and less; or it is too early to tell.
    Warming,
    /// It grows for good.
    Leaking,
}

impl Verdict {
    pub fn words(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Warming => "still warming",
            Self::Leaking => "leaking",
        }
    }
}

/// Why a verdict is what it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reason {
    /// There are too few values to tell anything.
    TooShort,
    /// The floor does not rise, or not faster than what is called a leak.
    Flat,
    /// It rises, and was as high before and came back.
    GivesBack,
    /// It gave back some and is higher than ever, too few times to make a trend of it.
    FewSwings,
    /// It rises, slower and slower.
    Bends,
    /// It rose, and has stopped.
    Stopped,
    /// It rises all the time.
    Grows,
}

impl Reason {
    pub fn words(self) -> &'static str {
        match self {
            Self::TooShort => "too short to tell",
            Self::Flat => "no growth for good was found",
            Self::GivesBack => "it was as high before and came back",
            Self::FewSwings => "it gave memory back, and is higher than ever since",
            Self::Bends => "it grows slower and slower",
            Self::Stopped => "it grew, and has stopped lately",
            Self::Grows => "it grows all the time",
        }
    }
}

/// A verdict, why, and the trend that it was made of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Judgement {
    pub verdict: Verdict,
    pub reason: Reason,
    pub trend: Option<Trend>,
    /// Where the judged part begins.
    pub from: f64,
}

/// What is called a leak, and which part of a series is judged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Judge {
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
}

/// The fewest values that make a trend.
const FEWEST: usize = 6;
/// Into how many windows a series without swings is cut.
const WINDOWS: usize = 30;
/// How deep a fall is, of the range of the judged part, to be a swing.
const SWING: f64 = 0.3;
/// How long, of the judged part, a fall at the very end may be there to be the end of the program.
const ENDING: f64 = 0.1;

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
        if let Some(fall) = swings.open
            && judged[judged.len() - 1].at - judged[fall].at < ENDING * length
            && fall >= FEWEST
        {
            judged = &judged[..=fall];
            swings = Swings::of(judged, least);
        }
        let history = &points[points.partition_point(|point| point.at < self.settled)..start + judged.len()];
        let floor = windows(judged);
        let is_smooth = Swings::of(&floor, (SWING * range(&floor)).max(self.growth)).valleys.is_empty();
        match swings.valleys.len() {
            0 => self.grows(&floor, from, history, least),
            1..FEWEST if is_smooth => self.grows(&floor, from, history, least),
            FEWEST..=60 => self.grows(&swings.valleys, from, &[], least),
            61.. => self.grows(&floor, from, &[], least),
            _ => self.few(judged, history, &swings, least),
        }
    }

    /// Judges a floor.
    fn grows(self, floor: &[Point], from: f64, history: &[Point], least: f64) -> Judgement {
        let trend = Trend::of(floor, self.rate);
        let growth = trend.slope * length(floor);
        let (verdict, reason) = if trend.low <= self.rate || growth < self.growth {
            (Verdict::Stable, Reason::Flat)
        } else if came_back(history, least) {
            (Verdict::Stable, Reason::GivesBack)
        } else if trend::has_stopped(floor, &trend) {
            (Verdict::Warming, Reason::Stopped)
        } else if trend::bends(floor) {
            (Verdict::Warming, Reason::Bends)
        } else {
            (Verdict::Leaking, Reason::Grows)
        };
        Judgement { verdict, reason, trend: Some(trend), from }
    }

    /// Judges what swings too few times to have a trend of valleys: only what came after the last one, where that is
    /// higher than ever and long enough.
    fn few(self, judged: &[Point], history: &[Point], swings: &Swings, least: f64) -> Judgement {
        let last = swings.valleys[swings.valleys.len() - 1].at;
        let behind = &judged[judged.partition_point(|point| point.at < last)..];
        let before = history.iter().filter(|point| point.at < last).map(|point| point.value).fold(0.0, f64::max);
        let trend = Trend::of(&windows(judged), self.rate);
        let of = |verdict, reason| Judgement { verdict, reason, trend: Some(trend), from: judged[0].at };
        if highest(behind) < before + least / 2.0 {
            return of(Verdict::Stable, Reason::GivesBack);
        }
        if behind.len() >= 2 * FEWEST && length(behind) > 0.6 * length(judged) {
            return self.grows(&windows(behind), last, &[], least);
        }
        of(Verdict::Warming, Reason::FewSwings)
    }
}

/// Whether the end of `history` is no higher than a moment in it after which it fell.
fn came_back(history: &[Point], least: f64) -> bool {
    let mut end = highest(&history[history.len().saturating_sub(history.len() / 20 + 1)..]);
    let Some((last, rest)) = history.split_last() else { return false };
    end = end.max(last.value);
    let mut lowest_behind = last.value;
    for point in rest.iter().rev() {
        if point.value >= end && point.value - lowest_behind >= least {
            return true;
        }
        lowest_behind = lowest_behind.min(point.value);
    }
    false
}

/// The lowest of each of some windows of equal length.
fn windows(points: &[Point]) -> Vec<Point> {
    if points.len() <= WINDOWS {
        return points.to_vec();
    }
    let (start, width) = (points[0].at, length(points) / WINDOWS as f64);
    let mut floor: Vec<(usize, Point)> = Vec::with_capacity(WINDOWS);
    for point in points {
        let window = (((point.at - start) / width) as usize).min(WINDOWS - 1);
        match floor.last_mut() {
            Some((last, lowest)) if *last == window => {
                if point.value < lowest.value {
                    *lowest = *point;
                }
            }
            _ => floor.push((window, *point)),
        }
    }
    floor.into_iter().map(|(_, point)| point).collect()
}

fn length(points: &[Point]) -> f64 {
    points.last().zip(points.first()).map_or(0.0, |(last, first)| last.at - first.at)
}

fn highest(points: &[Point]) -> f64 {
    points.iter().map(|point| point.value).fold(f64::NEG_INFINITY, f64::max)
}

fn range(points: &[Point]) -> f64 {
    highest(points) - points.iter().map(|point| point.value).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests;
