//! Finds the steps of a program that nobody marks: the period with which the sizes of a lane repeat.
//!
//! A period is guessed from where the last few sizes were seen before, followed for as long as it holds, and believed
//! once it has held for a period or two. Loops inside a step (its layers) hold only for a while: the longer one held
//! before it broke, the longer it must hold to be believed again.

use lowtide_core::Bytes;
use rustc_hash::FxHashMap;

use crate::Lane;
use crate::plan::step_plan::mix;

/// The shortest period that is looked for, in allocations of one lane.
const SHORTEST: u64 = 4;

/// A shorter period is believed only when three of it agree, rather than two.
const SHORT: u64 = 64;

/// So many sizes in a row are looked up.
const ROW: u64 = 8;

/// As many sizes are kept of a lane unless it is said otherwise.
const KEPT: u64 = 1 << 19;

/// So many lanes are followed; where there are more, the one that was silent longest makes room.
const MOST_LANES: usize = 256;

/// So many loops are remembered that did not last.
const MOST_BROKEN: usize = 16;

/// How far back a guess may be followed, in steps per allocation.
const CREDIT: u64 = 4;

/// Finds the period of a sequence of allocations and says where steps end, always at the same place of the period. Of
/// several lanes with a period, that with the longest decides. Costs about constant time per allocation, and memory for
/// the last sizes of each lane: two of the longest periods and some.
#[derive(Debug)]
pub struct PeriodFinder {
    /// How many sizes are kept of a lane.
    kept: u64,
    lanes: Vec<(Lane, Track)>,
    last: usize,
    /// The lane that decides.
    marker: Option<usize>,
    /// Allocations of all lanes.
    count: u64,
}

impl Default for PeriodFinder {
    fn default() -> Self {
        Self::keeping(KEPT)
    }
}

impl PeriodFinder {
    /// One that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that has seen nothing and keeps so many sizes of a lane.
    pub fn keeping(kept: u64) -> Self {
        Self { kept, lanes: Vec::new(), last: 0, marker: None, count: 0 }
    }

    /// The same, without all that it has seen.
    pub fn forget(&mut self) {
        *self = Self::keeping(self.kept);
    }

    /// Takes the next allocation and says whether a step ends before it.
    pub fn push(&mut self, lane: Lane, bytes: Bytes) -> bool {
        self.count += 1;
        let Some(index) = self.lane(lane) else { return false };
        let track = &mut self.lanes[index].1;
        let ends = track.push(bytes.get(), self.count);
        let span = track.span;
        match self.marker {
            Some(marker) if marker == index && span.is_none() => self.marker = None,
            Some(marker) if marker != index && span <= self.lanes[marker].1.span => {}
            _ if span.is_some() => self.marker = Some(index),
            _ => {}
        }
        ends && self.marker == Some(index)
    }

    fn lane(&mut self, lane: Lane) -> Option<usize> {
        if self.lanes.get(self.last).is_none_or(|known| known.0 != lane) {
            self.last = match self.lanes.iter().position(|known| known.0 == lane) {
                Some(place) => place,
                None if self.lanes.len() < MOST_LANES => {
                    self.lanes.push((lane, Track::keeping(self.kept)));
                    self.lanes.len() - 1
                }
                None => {
                    let place = self.silent_longest()?;
                    self.lanes[place] = (lane, Track::keeping(self.kept));
                    place
                }
            };
        }
        Some(self.last)
    }

    /// The lane whose last allocation is longest ago: none where it is not long ago, or where it decides.
    fn silent_longest(&self) -> Option<usize> {
        let lanes = self.lanes.iter().enumerate().filter(|(place, _)| self.marker != Some(*place));
        let (place, (_, track)) = lanes.min_by_key(|(_, (_, track))| track.seen)?;
        (track.seen + self.kept < self.count).then_some(place)
    }
}

/// The sizes of one lane.
#[derive(Debug, Default)]
struct Track {
    /// How many are kept.
    kept: u64,
    /// When the last came, in allocations of all lanes.
    seen: u64,
    /// The last of them, by their number modulo `kept`.
    sizes: Vec<u64>,
    count: u64,
    /// Where each row of sizes was last, by its hash.
    rows: FxHashMap<u64, u64>,
    guess: Option<Guess>,
    /// How many allocations of all lanes the period takes, once it is believed.
    span: Option<u64>,
    /// When the last border was, in allocations of all lanes.
    border: u64,
    /// The longest period that was believed.
    longest: u64,
    /// Shorter ones that broke, and for how long they had held.
    broken: Vec<(u64, u64)>,
    credit: u64,
}

/// A period that has held so far.
#[derive(Clone, Copy, Debug)]
struct Guess {
    period: u64,
    /// The first size that was the same as one period before.
    start: u64,
    /// For how many sizes it must hold.
    needed: u64,
    /// The next border.
    next: u64,
}

impl Track {
    fn keeping(kept: u64) -> Self {
        Self { kept, ..Self::default() }
    }

    /// Takes the next size; whether the period, if it is believed, begins anew with it.
    fn push(&mut self, size: u64, now: u64) -> bool {
        self.seen = now;
        let at = self.count;
        self.keep(size);
        if let Some(guess) = self.guess
            && self.size(at - guess.period) != size
        {
            self.give_up(guess, at);
        }
        if self.span.is_none() {
            self.look_up(at);
        }
        let Some(guess) = &mut self.guess else { return false };
        let is_border = at == guess.next;
        if is_border {
            guess.next += guess.period;
        }
        if at + 1 - guess.start < guess.needed {
            return false;
        }
        self.longest = self.longest.max(guess.period);
        if is_border && self.border > 0 {
            self.span = Some(now - self.border);
        }
        if is_border {
            self.border = now;
        }
        // Before the first border only the lane's own count is known.
        self.span = self.span.or(Some(guess.period));
        is_border
    }

    fn keep(&mut self, size: u64) {
        if (self.sizes.len() as u64) < self.kept {
            self.sizes.push(size);
        } else {
            self.sizes[(self.count % self.kept) as usize] = size;
        }
        self.count += 1;
        self.credit = (self.credit + CREDIT).min(self.kept);
    }

    fn size(&self, at: u64) -> u64 {
        self.sizes[(at % self.kept) as usize]
    }

    fn give_up(&mut self, guess: Guess, at: u64) {
        (self.guess, self.span, self.border) = (None, None, 0);
        if guess.period < self.longest {
            let held = at - guess.start;
            let held =
                self.broken.iter().find(|broken| broken.0 == guess.period).map_or(held, |known| held.max(known.1));
            self.broken.retain(|broken| broken.0 != guess.period);
            self.broken.push((guess.period, held));
            if self.broken.len() > MOST_BROKEN {
                self.broken.remove(0);
            }
        }
    }

    /// Notes the last few sizes, and guesses a period where they were seen before.
    fn look_up(&mut self, at: u64) {
        if at + 1 < ROW {
            return;
        }
        let hash = (at + 1 - ROW..=at).fold(0, |hash, at| mix(hash, self.size(at)));
        if self.rows.len() as u64 >= self.kept {
            self.rows.clear();
        }
        let before = self.rows.insert(hash, at);
        if self.guess.is_some() {
            return;
        }
        let Some(before) = before else { return };
        let period = at - before;
        let is_same = (SHORTEST..=self.kept / 5 * 2).contains(&period)
            && before + 1 >= ROW
            && (0..ROW).all(|back| self.size(at - back) == self.size(before - back));
        if is_same {
            self.guess = Some(self.guessed(period, at));
        }
    }

    fn guessed(&mut self, period: u64, at: u64) -> Guess {
        let mut start = at + 1 - ROW;
        let oldest = self.count.saturating_sub(self.kept) + period;
        while start > oldest.max(period) && self.credit > 0 && self.size(start - 1) == self.size(start - 1 - period) {
            start -= 1;
            self.credit -= 1;
        }
        let agreed = if period < SHORT { 2 * period } else { period };
        let broke = self.broken.iter().find(|broken| broken.0 == period).map_or(0, |broken| 2 * broken.1);
        let periods_passed = (at - start).div_ceil(period);
        Guess { period, start, needed: agreed.max(broke), next: start + period * periods_passed }
    }
}
