//! Where in its period a step is best closed: nobody says where it begins, so it is where least is alive. A period counts
//! when it has lasted for a while: what recurs while a program sets up, or in one of its layers, is no step.

/// For how many allocations a period has to last.
const LASTING: u64 = 256;

/// The boundary of steps that are found by their period.
#[derive(Debug, Default)]
pub(super) struct StepBoundary {
    /// How many allocations there were since the period began anew, once it has.
    since: Option<u64>,
    /// The least that was alive, and at which allocation that was.
    least: Option<(u64, u64)>,
    /// At which allocation of the period steps are closed, once one was seen whole.
    at: Option<u64>,
    /// How long the last period was, and for how many allocations that has been so.
    period: u64,
    lasted: u64,
}

impl StepBoundary {
    /// Takes the next allocation: whether the period begins anew with it, and what is alive before it where that is known.
    /// Says whether a step ends before it.
    pub(super) fn passes(&mut self, begins: bool, live: Option<u64>) -> bool {
        if begins {
            if let Some((_, at)) = self.least.take() {
                self.at = Some(at);
            }
            if let Some(period) = self.since.map(|since| since + 1) {
                self.lasted = if period == self.period { self.lasted + period } else { 0 };
                self.period = period;
            }
            self.since = Some(0);
        } else {
            self.since = self.since.map(|since| since + 1);
        }
        let Some(since) = self.since else { return false };
        if let Some(live) = live
            && self.least.is_none_or(|(least, _)| live < least)
        {
            self.least = Some((live, since));
        }
        self.lasted >= LASTING && self.at == Some(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_closed_where_least_is_alive() {
        let mut boundary = StepBoundary::default();
        let lives = [5, 9, 7, 2, 4];
        let passed: Vec<u64> = (0..400_u64)
            .filter(|&number| boundary.passes(number >= 5 && number % 5 == 0, Some(lives[number as usize % 5])))
            .collect();
        assert!(passed.iter().all(|number| number % 5 == 3), "{passed:?}");
        assert!((20..40).contains(&passed.len()), "{passed:?}");
    }
}
