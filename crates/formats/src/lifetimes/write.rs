//! Problems, with or without their plan, as lifetimes CSV for those that did not come from one.

use std::io::{BufWriter, Write};

use lowtide_core::{Align, Buffer, Class, Plan, Problem};

use super::gaps;
use crate::{Error, ErrorKind};

/// Writes `problem` as lifetimes CSV, with the optional columns that some buffer needs. A pool's name and
/// capacity are no part of the format; relations and several pools are refused.
pub fn write_lifetimes(problem: &Problem, out: impl Write) -> Result<(), Error> {
    let beyond = [
        (!problem.aliases.is_empty(), "aliases"),
        (!problem.may_share.is_empty(), "may-share pairs"),
        (!problem.contiguous.is_empty(), "contiguous groups"),
        (problem.pools.len() > 1, "several pools"),
    ];
    if let Some((_, what)) = beyond.into_iter().find(|(is_there, _)| *is_there) {
        return Err(Error::new(ErrorKind::NotExpressible { what }));
    }
    write(problem, None, out)
}

/// Writes `plan` as lifetimes CSV with its offsets, and with the pool of each buffer where there are several.
pub fn write_plan_csv(problem: &Problem, plan: &Plan, out: impl Write) -> Result<(), Error> {
    let (placements, buffers) = (plan.placements.len(), problem.buffers.len());
    if placements != buffers {
        return Err(Error::new(ErrorKind::PlanMismatch { placements, buffers }));
    }
    write(problem, Some(plan), out)
}

fn write(problem: &Problem, plan: Option<&Plan>, out: impl Write) -> Result<(), Error> {
    let needed = |needs: fn(&Buffer) -> bool| problem.buffers.iter().any(needs);
    let align = needed(|buffer| buffer.align != Align::ONE);
    let gaps = needed(|buffer| !buffer.gaps.is_empty());
    let class = needed(|buffer| buffer.class == Class::Persistent);
    let pool = plan.is_some() && problem.pools.len() > 1;
    let offset = plan.is_some() || needed(|buffer| buffer.pin.is_some());

    let mut table = csv::Writer::from_writer(BufWriter::new(out));
    let optional = [(align, "alignment"), (gaps, "gaps"), (class, "class"), (pool, "pool"), (offset, "offset")];
    let header = ["id", "lower", "upper", "size"].into_iter();
    let header = header.chain(optional.into_iter().filter_map(|(is_there, name)| is_there.then_some(name)));
    table.write_record(header).map_err(Error::writing)?;
    for (index, buffer) in problem.indices().zip(&problem.buffers) {
        let placement = plan.map(|plan| plan.placement(index));
        let mut row = vec![
            buffer.id.to_string(),
            buffer.lifetime.lower.to_string(),
            buffer.lifetime.upper.to_string(),
            buffer.size.get().to_string(),
        ];
        if align {
            row.push(buffer.align.to_string());
        }
        if gaps {
            row.push(gaps::format(&buffer.gaps));
        }
        if class {
            row.push(class_name(buffer.class).to_owned());
        }
        if let Some(placement) = placement.filter(|_| pool) {
            row.push(problem.pools[placement.pool.get()].name.to_string());
        }
        if offset {
            let at = placement.map(|placement| placement.offset).or(buffer.pin);
            row.push(at.map_or_else(String::new, |offset| offset.get().to_string()));
        }
        table.write_record(&row).map_err(Error::writing)?;
    }
    table.flush().map_err(Error::writing)
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Persistent => "persistent",
        Class::Transient => "transient",
    }
}

#[cfg(test)]
mod tests {
    use lowtide_core::{BufferIndex, Bytes, Lifetime, Placement, Pool, PoolIndex};

    use super::*;

    fn two() -> Problem {
        Problem::new(["a", "b"].map(|id| Buffer::new(id, Lifetime { lower: 0, upper: 4 }, Bytes::new(8))).into())
    }

    #[test]
    fn only_the_columns_that_are_needed_are_written() {
        let mut problem = two();
        problem.buffers[1].pin = Some(Bytes::new(64));
        let mut out = Vec::new();
        write_lifetimes(&problem, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "id,lower,upper,size,offset\na,0,4,8,\nb,0,4,8,64\n");
    }

    #[test]
    fn what_the_format_cannot_hold_is_refused() {
        let mut problem = two();
        problem.aliases = vec![problem.indices().collect::<Vec<BufferIndex>>()];
        let error = write_lifetimes(&problem, Vec::new()).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::NotExpressible { what: "aliases" }));
    }

    #[test]
    fn a_plan_names_the_pools_where_there_are_several() {
        let mut problem = two();
        problem.pools.push(Pool::unlimited("slow"));
        let at = |pool, offset| Placement { pool: PoolIndex::new(pool), offset: Bytes::new(offset) };
        let plan = Plan {
            placements: vec![at(0, 0), at(1, 8)],
            heights: vec![Bytes::new(8), Bytes::new(16)],
            lower_bound: Bytes::ZERO,
            proved: false,
        };
        let mut out = Vec::new();
        write_plan_csv(&problem, &plan, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "id,lower,upper,size,pool,offset\na,0,4,8,main,0\nb,0,4,8,slow,8\n");
    }
}
