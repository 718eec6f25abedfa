//! The layouts of a usage file that is being read.

use lowtide_core::{Bytes, Layout, Origin, Placement, Plan, Problem};

use super::header::{Header, LayoutHeader};
use super::read::{fault, pool_index};
use super::values::{Columns, Values};
use crate::Error;

const ORIGINS: [Origin; 4] = [Origin::Recorded, Origin::Unshared, Origin::Greedy, Origin::Planned];
/// The most layouts of a run.
const MOST: usize = 8;

pub(super) fn read(header: &Header, columns: &mut Columns<'_>, problem: &Problem) -> Result<Vec<Layout>, Error> {
    if header.layouts.len() > MOST {
        return Err(fault("it has more layouts than there are kinds of them"));
    }
    let layouts = header.layouts.iter().enumerate();
    layouts.map(|(place, layout)| read_one(place, layout, columns, problem)).collect()
}

fn read_one(
    place: usize,
    header: &LayoutHeader,
    columns: &mut Columns<'_>,
    problem: &Problem,
) -> Result<Layout, Error> {
    let origin = ORIGINS.into_iter().find(|origin| origin.name() == header.origin);
    let plan = Plan {
        placements: placements(place, columns, problem)?,
        heights: header.heights.iter().map(|&height| Bytes::new(height)).collect(),
        lower_bound: Bytes::new(header.lower_bound),
        proved: header.proved,
    };
    check(&plan, problem)?;
    Ok(Layout { origin: origin.ok_or_else(|| fault("it has a layout of unknown origin"))?, plan })
}

fn placements(place: usize, columns: &mut Columns<'_>, problem: &Problem) -> Result<Vec<Placement>, Error> {
    let mut offset = columns.differences(&format!("offset {place}"))?;
    let name = format!("pool {place}");
    let mut pool = columns.has(&name).then(|| columns.required(&name)).transpose()?;
    let mut placements = Vec::with_capacity(problem.buffers.len());
    for buffer in &problem.buffers {
        let pool = match &mut pool {
            Some(pool) => pool_index(pool.next()?, problem.pools.len())?,
            None => buffer.pool,
        };
        placements.push(Placement { pool, offset: Bytes::new(offset.next()?) });
    }
    offset.finish()?;
    pool.map_or(Ok(()), Values::finish)?;
    Ok(placements)
}

/// Refuses heights that do not hold what is in the pools, and a bound above them.
fn check(plan: &Plan, problem: &Problem) -> Result<(), Error> {
    if plan.heights.len() != problem.pools.len() {
        return Err(fault("a layout has not a height for each pool"));
    }
    let total = plan.heights.iter().try_fold(Bytes::ZERO, |total, &height| total.checked_add(height));
    if total.is_none_or(|total| total < plan.lower_bound) {
        return Err(fault("a layout is lower than its bound, or leaves 64 bits"));
    }
    let fits = |(placement, size): (&Placement, Bytes)| {
        placement.offset.checked_add(size).is_some_and(|end| end <= plan.heights[placement.pool.get()])
    };
    let sizes = problem.buffers.iter().map(|buffer| buffer.size);
    if plan.placements.iter().zip(sizes).all(fits) { Ok(()) } else { Err(fault("a buffer leaves its pool")) }
}
