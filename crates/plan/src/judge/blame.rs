//! Why something cannot fit: a set of buffers that cannot, and from which none can be left out.

use lowtide_core::{BufferIndex, Bytes, Problem};

use crate::outcome::Blame;

/// Shrinks `suspects`, which cannot fit together, as far as `fits` can tell: it says whether some of the buffers
/// fit, or `None` where it cannot tell in time.
pub(crate) fn shrink(
    suspects: Vec<BufferIndex>,
    mut fits: impl FnMut(&[BufferIndex]) -> Option<bool>,
    mut out_of_time: impl FnMut() -> bool,
) -> Blame {
    let mut guilty = suspects;
    // Halves first, then ever smaller runs, last each buffer on its own.
    let mut run = guilty.len().div_ceil(2).max(1);
    loop {
        let last_round = run == 1;
        let mut at = 0;
        let mut certain = true;
        while at < guilty.len() && guilty.len() > 1 {
            if out_of_time() {
                return finish(guilty, false);
            }
            let end = (at + run).min(guilty.len());
            let rest: Vec<BufferIndex> = guilty[..at].iter().chain(&guilty[end..]).copied().collect();
            match fits(&rest) {
                Some(false) => guilty = rest,
                Some(true) => at = end,
                None => {
                    certain = false;
                    at = end;
                }
            }
        }
        if last_round {
            return finish(guilty, certain);
        }
        run = run.div_ceil(2);
    }
}

fn finish(mut buffers: Vec<BufferIndex>, irreducible: bool) -> Blame {
    buffers.sort_unstable();
    Blame { buffers, irreducible }
}

/// Buffers alive at one time whose sizes alone exceed `capacity`, the largest first and no more than needed; `None`
/// where no moment is so full.
pub(crate) fn overfull_moment(problem: &Problem, among: &[BufferIndex], capacity: Bytes) -> Option<Vec<BufferIndex>> {
    let mut events: Vec<(i64, bool, BufferIndex)> = Vec::with_capacity(2 * among.len());
    for &index in among {
        let life = problem.buffer(index).lifetime;
        if !life.is_empty() {
            events.push((life.lower, true, index));
            events.push((life.upper, false, index));
        }
    }
    events.sort_unstable();
    let (mut load, mut fullest, mut when) = (0_u64, 0_u64, 0);
    for &(time, begins, index) in &events {
        let size = problem.buffer(index).size.get();
        if begins {
            load += size;
            if load > fullest {
                (fullest, when) = (load, time);
            }
        } else {
            load -= size;
        }
    }
    if fullest <= capacity.get() {
        return None;
    }
    let mut alive: Vec<BufferIndex> = among
        .iter()
        .copied()
        .filter(|&index| {
            let life = problem.buffer(index).lifetime;
            life.lower <= when && when < life.upper
        })
        .collect();
    alive.sort_by_key(|&index| (std::cmp::Reverse(problem.buffer(index).size), index));
    let mut sum = 0_u64;
    let enough = alive.iter().position(|&index| {
        sum += problem.buffer(index).size.get();
        sum > capacity.get()
    })?;
    alive.truncate(enough + 1);
    Some(alive)
}
