//! The places where the exact search could go on, one per pit, with the best of any range at hand.

/// A run of sections at one height, lower than what lies beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pit {
    pub lower: u32,
    pub upper: u32,
    pub ground: u64,
    /// The lowest height above the ground that something which does not fit into the pit could rest on.
    pub rim: u64,
}

/// A section of a pit, and how many ways there are to go on in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub pit: Pit,
    pub section: u32,
    pub choices: u32,
    /// Choices, fewer for a section that gave trouble.
    pub urgency: f32,
    /// The lowest top that something on the ground of the pit would have.
    pub lowest_top: u64,
}

impl Spot {
    /// Whether to go on here rather than at `other`: what is forced first, then the more urgent, then the lower.
    pub fn precedes(&self, other: &Self) -> bool {
        if self.choices <= 1 || other.choices <= 1 {
            (self.choices, self.pit.ground) < (other.choices, other.pit.ground)
        } else {
            self.urgency < other.urgency || (self.urgency <= other.urgency && self.pit.ground < other.pit.ground)
        }
    }
}

/// The spot of each pit, kept by the section in which the pit begins, under a tree of winners.
pub(crate) struct Spots {
    by_start: Vec<Option<Spot>>,
    /// Node `n` holds the section of the best spot below it, or `NOWHERE`; leaves start at `leaves`.
    winners: Vec<u32>,
    leaves: usize,
}

const NOWHERE: u32 = u32::MAX;

impl Spots {
    pub fn new(sections: usize) -> Self {
        let leaves = sections.next_power_of_two().max(1);
        Self { by_start: vec![None; sections], winners: vec![NOWHERE; 2 * leaves], leaves }
    }

    /// Sets or removes the spot of the pit that begins in `section`.
    pub fn set(&mut self, section: u32, spot: Option<Spot>) {
        if spot.is_none() && self.by_start[section as usize].is_none() {
            return;
        }
        self.by_start[section as usize] = spot;
        let mut node = self.leaves + section as usize;
        self.winners[node] = if spot.is_some() { section } else { NOWHERE };
        while node > 1 {
            node /= 2;
            self.winners[node] = self.better(self.winners[2 * node], self.winners[2 * node + 1]);
        }
    }

    /// The best spot of a pit that begins in `lower..upper`; of equal ones the leftmost.
    pub fn best(&self, lower: u32, upper: u32) -> Option<Spot> {
        let (mut low, mut high) = (self.leaves + lower as usize, self.leaves + upper as usize);
        let (mut left, mut right) = (NOWHERE, NOWHERE);
        while low < high {
            if low % 2 == 1 {
                left = self.better(left, self.winners[low]);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                right = self.better(self.winners[high], right);
            }
            (low, high) = (low / 2, high / 2);
        }
        let winner = self.better(left, right);
        if winner == NOWHERE { None } else { self.by_start[winner as usize] }
    }

    fn better(&self, first: u32, second: u32) -> u32 {
        let spot = |section: u32| if section == NOWHERE { None } else { self.by_start[section as usize] };
        match (spot(first), spot(second)) {
            (Some(a), Some(b)) if b.precedes(&a) => second,
            (None, _) => second,
            _ => first,
        }
    }
}
