//! Lifetimes CSV in the dialect of MiniMalloc: one buffer per row, with the rows kept so that a plan can be
//! written as the same file with an `offset` column.

use std::io::{BufWriter, Write};

use lowtide_core::{Align, Buffer, Bytes, Class, Lifetime, Plan, Problem};

use super::gaps;
use crate::error::shorten::shorten;
use crate::reading::cell::Cell;
use crate::reading::fields::Fields;
use crate::reading::header::{self, Header};
use crate::reading::raw_rows::RawRows;
use crate::reading::records::Records;
use crate::{Error, ErrorKind};

/// A problem read from lifetimes CSV, with the file's own rows.
///
/// Columns stand in any order: `id` (also `buffer`, `buffer_id`), `lower` (also `begin`, `start`), `upper` (or
/// `end`, which is inclusive, as are then the ends of gaps), `size`, and where wanted `alignment` (also
/// `align`), `gaps`, `offset` (a pin; empty for none) and `class`. The column `hint` and every unknown one have
/// no effect and are kept.
#[derive(Clone, Debug)]
pub struct Lifetimes {
    /// The buffers, in the order of the rows, in one unlimited pool.
    pub problem: Problem,
    header: String,
    offset_column: Option<usize>,
    line_break: &'static str,
    rows: RawRows,
}

impl Lifetimes {
    /// The physical line of the file that buffer `index` of the problem stands on.
    pub fn row(&self, index: lowtide_core::BufferIndex) -> u64 {
        self.rows.line(index.get())
    }

    /// Writes the file's rows unchanged, with the plan's offsets as the column `offset`: in its place where the
    /// file has one, otherwise as the last.
    pub fn write_plan(&self, plan: &Plan, out: impl Write) -> Result<(), Error> {
        let (placements, buffers) = (plan.placements.len(), self.rows.len());
        if placements != buffers {
            return Err(Error::new(ErrorKind::PlanMismatch { placements, buffers }));
        }
        let mut out = BufWriter::new(out);
        let written = match self.offset_column {
            None => self.append_offsets(plan, &mut out),
            Some(column) => self.replace_offsets(plan, column, &mut out),
        };
        written.and_then(|()| out.flush()).map_err(Error::writing)
    }

    fn append_offsets(&self, plan: &Plan, out: &mut impl Write) -> std::io::Result<()> {
        write!(out, "{},offset{}", self.header, self.line_break)?;
        for (row, placement) in self.rows.iter().zip(&plan.placements) {
            write!(out, "{row},{}{}", placement.offset.get(), self.line_break)?;
        }
        Ok(())
    }

    fn replace_offsets(&self, plan: &Plan, column: usize, out: &mut impl Write) -> std::io::Result<()> {
        write!(out, "{}{}", self.header, self.line_break)?;
        let terminator = if self.line_break == "\n" { csv::Terminator::Any(b'\n') } else { csv::Terminator::CRLF };
        let mut writer = csv::WriterBuilder::new().terminator(terminator).from_writer(out);
        let mut fields = Fields::default();
        for (row, placement) in self.rows.iter().zip(&plan.placements) {
            // The row was split once before, when it was read.
            if fields.split(row).is_err() {
                return Err(std::io::ErrorKind::InvalidData.into());
            }
            let offset = placement.offset.get().to_string();
            let replaced =
                fields.iter().enumerate().map(|(place, field)| if place == column { &offset } else { field });
            writer.write_record(replaced)?;
        }
        writer.flush()
    }
}

/// Reads the rows under `header`.
pub(crate) fn read(mut records: Records<'_>, header: &Header) -> Result<Lifetimes, Error> {
    let columns = Columns::find(header)?;
    let mut buffers = Vec::new();
    let mut rows = RawRows::default();
    while records.advance_row(header.names().len())? {
        buffers.push(columns.buffer(records.fields(), records.row())?);
        rows.push(records.raw(), records.row());
    }
    let problem = Problem::new(buffers);
    problem.check().map_err(|error| Error::problem(error, |index| Some(rows.line(index.get()))))?;
    Ok(Lifetimes {
        problem,
        header: header.raw().to_owned(),
        offset_column: columns.offset,
        line_break: header.line_break(),
        rows,
    })
}

/// Where the columns with a meaning stand.
struct Columns {
    id: usize,
    lower: usize,
    upper: usize,
    inclusive: bool,
    size: usize,
    align: Option<usize>,
    gaps: Option<usize>,
    offset: Option<usize>,
    class: Option<usize>,
}

impl Columns {
    fn find(header: &Header) -> Result<Self, Error> {
        let upper = header.require(header::UPPER)?;
        Ok(Self {
            id: header.require(header::ID)?,
            lower: header.require(header::LOWER)?,
            upper,
            inclusive: header.is_named(upper, "end"),
            size: header.require(header::SIZE)?,
            align: header.find(&["alignment", "align"])?,
            gaps: header.find(&["gaps"])?,
            offset: header.find(header::OFFSET)?,
            class: header.find(&["class"])?,
        })
    }

    fn buffer(&self, fields: &Fields, row: u64) -> Result<Buffer, Error> {
        let cell = |column, place: usize| Cell { column, text: fields.get(place), row };
        let id = cell("id", self.id).required()?;
        let lower = cell("lower", self.lower).number()?;
        let size = Bytes::new(cell("size", self.size).number()?);
        let mut buffer = Buffer::new(id, Lifetime { lower, upper: self.upper(fields, row)? }, size);
        if let Some(place) = self.align {
            let cell = cell("alignment", place);
            let align = cell.optional_number()?.unwrap_or(1);
            buffer.align = Align::new(align).ok_or_else(|| cell.error(ErrorKind::ZeroAlignment))?;
        }
        if let Some(place) = self.gaps {
            buffer.gaps = gaps::parse(cell("gaps", place), self.inclusive)?;
        }
        if let Some(place) = self.offset {
            buffer.pin = cell("offset", place).optional_number()?.map(Bytes::new);
        }
        if let Some(place) = self.class {
            buffer.class = class(cell("class", place))?;
        }
        Ok(buffer)
    }

    fn upper(&self, fields: &Fields, row: u64) -> Result<i64, Error> {
        let column = if self.inclusive { "end" } else { "upper" };
        let cell = Cell { column, text: fields.get(self.upper), row };
        let written: i64 = cell.number()?;
        if self.inclusive { written.checked_add(1).ok_or_else(|| cell.out_of_range::<i64>()) } else { Ok(written) }
    }
}

fn class(cell: Cell<'_>) -> Result<Class, Error> {
    let text = cell.text.trim_ascii();
    if text.is_empty() || text.eq_ignore_ascii_case("transient") {
        Ok(Class::Transient)
    } else if text.eq_ignore_ascii_case("persistent") {
        Ok(Class::Persistent)
    } else {
        Err(cell.error(ErrorKind::UnknownClass { value: shorten(text) }))
    }
}

#[cfg(test)]
mod tests {
    use lowtide_core::{Placement, PoolIndex};

    use super::*;
    use crate::Input;

    fn read(text: &str) -> Lifetimes {
        match Input::read(text.as_bytes()).unwrap() {
            Input::Lifetimes(lifetimes) => lifetimes,
            other => panic!("{other:?}"),
        }
    }

    fn planned(text: &str, offsets: &[u64]) -> String {
        let placements = offsets
            .iter()
            .map(|&offset| Placement { pool: PoolIndex::default(), offset: Bytes::new(offset) })
            .collect();
        let plan = Plan { placements, heights: vec![Bytes::ZERO], lower_bound: Bytes::ZERO, proved: false };
        let mut out = Vec::new();
        read(text).write_plan(&plan, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_stand_in_any_order_under_any_of_their_names() {
        let text =
            "\u{feff} Size ,ALIGN,note,Begin,buffer_id,upper,class\r\n\r\n8,,x,-2,a,3,persistent\r\n9,4,y,0,b,3,\r\n";
        let Lifetimes { problem, .. } = read(text);
        let mut a = Buffer::new("a", Lifetime { lower: -2, upper: 3 }, Bytes::new(8));
        a.class = Class::Persistent;
        let mut b = Buffer::new("b", Lifetime { lower: 0, upper: 3 }, Bytes::new(9));
        b.align = Align::new(4).unwrap();
        assert_eq!(problem.buffers, [a, b]);
    }

    #[test]
    fn a_column_named_end_is_inclusive() {
        let Lifetimes { problem, .. } = read("id,start,end,size,gaps\na,0,9,8,2-4 6-6@0:8\n");
        let buffer = &problem.buffers[0];
        assert_eq!(buffer.lifetime, Lifetime { lower: 0, upper: 10 });
        let gaps: Vec<_> = buffer.gaps.iter().map(|gap| (gap.lifetime.lower, gap.lifetime.upper)).collect();
        assert_eq!(gaps, [(2, 5), (6, 7)]);
    }

    #[test]
    fn an_offset_is_a_pin_and_an_empty_one_is_none() {
        let Lifetimes { problem, .. } = read("id,lower,upper,size,hint,offset\na,0,9,8,5,16\nb,0,9,8,,\n");
        assert_eq!(problem.buffers[0].pin, Some(Bytes::new(16)));
        assert_eq!(problem.buffers[1].pin, None);
    }

    #[test]
    fn a_plan_is_the_file_unchanged_with_an_offset_column() {
        assert_eq!(
            planned("op,id, lower,upper,size\r\n\"x,1\",a,0, 3,8\r\n\r\ny,b,0,3,8", &[0, 8]),
            "op,id, lower,upper,size,offset\r\n\"x,1\",a,0, 3,8,0\r\ny,b,0,3,8,8\r\n"
        );
        assert_eq!(
            planned("id,Offset,lower,upper,size,op\na,,0,3,8,\"x,\"\"1\"\nb,9,0,3,8,y\n", &[0, 8]),
            "id,Offset,lower,upper,size,op\na,0,0,3,8,\"x,\"\"1\"\nb,8,0,3,8,y\n"
        );
    }

    #[test]
    fn a_plan_for_other_buffers_is_not_written() {
        let plan = Plan { placements: vec![], heights: vec![], lower_bound: Bytes::ZERO, proved: false };
        let error = read("id,lower,upper,size\na,0,1,1\n").write_plan(&plan, Vec::new()).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::PlanMismatch { placements: 0, buffers: 1 }));
    }

    #[test]
    fn a_header_alone_is_a_problem_without_buffers() {
        assert!(read("id,lower,upper,size\n").problem.buffers.is_empty());
    }

    #[test]
    fn a_bad_problem_is_reported_on_the_line_of_its_buffer() {
        let error = Input::read("id,lower,upper,size\na,0,1,1\n\n\na,0,1,1\n".as_bytes()).unwrap_err();
        assert_eq!((error.row, error.to_string().as_str()), (Some(5), "buffer `a` appears twice"));
    }
}
