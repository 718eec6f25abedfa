//! The columns of a usage file that is being read: their values one after the other, so that no column is held as a
//! whole beside what is made of it.

use std::collections::{BTreeMap, HashMap};

use super::columns::Reader;
use super::header::Header;
use super::read::fault;
use crate::{Error, ErrorKind, limits};

/// The columns by name, and how many values those about buffers have.
pub(super) struct Columns<'a> {
    bytes: HashMap<&'a str, &'a [u8]>,
    units: &'a BTreeMap<String, u64>,
    count: usize,
}

impl<'a> Columns<'a> {
    pub fn split(header: &'a Header, mut rest: &'a [u8]) -> Result<Self, Error> {
        let mut bytes = HashMap::new();
        for (name, length) in &header.columns {
            let length = usize::try_from(*length).unwrap_or(usize::MAX);
            let (column, behind) = rest.split_at_checked(length).ok_or_else(|| fault("it ends within its columns"))?;
            if bytes.insert(&**name, column).is_some() {
                return Err(fault("it has a column twice"));
            }
            rest = behind;
        }
        if !rest.is_empty() {
            return Err(fault("it goes on behind its columns"));
        }
        if header.buffers > limits::BUFFERS {
            return Err(Error::new(ErrorKind::TooManyRows { limit: limits::BUFFERS }));
        }
        if header.units.values().any(|&unit| unit == 0) {
            return Err(fault("a unit is 0"));
        }
        let columns = Self { bytes, units: &header.units, count: header.buffers as usize };
        columns.bytes.get("lower").map_or(Ok(()), |column| check_length("lower", column, columns.count))?;
        Ok(columns)
    }

    /// How many buffers there are.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn has(&self, name: &str) -> bool {
        self.bytes.contains_key(name)
    }

    /// The bytes of a column.
    pub fn take(&mut self, name: &str) -> Option<&'a [u8]> {
        self.bytes.remove(name)
    }

    /// A number per buffer.
    pub fn required(&mut self, name: &str) -> Result<Values<'a>, Error> {
        let bytes = self.take(name).ok_or_else(|| fault(&format!("it has no column `{name}`")))?;
        self.values(name, bytes, self.count)
    }

    /// A number per buffer, each written as what is between it and the one before.
    pub fn differences(&mut self, name: &str) -> Result<Values<'a>, Error> {
        self.required(name).map(Values::into_differences)
    }

    /// So many numbers, each written as what is between it and the one before.
    pub fn readings(&mut self, name: &str, count: usize) -> Result<Values<'a>, Error> {
        let bytes = self.take(name).ok_or_else(|| fault(&format!("it has no column `{name}`")))?;
        self.values(name, bytes, count).map(Values::into_differences)
    }

    /// A number per buffer, `usual` where there is no such column.
    pub fn optional(&mut self, name: &str, usual: u64) -> Result<Values<'a>, Error> {
        match self.take(name) {
            Some(bytes) => self.values(name, bytes, self.count),
            None => Ok(Values { reader: None, usual, unit: 1, before: None }),
        }
    }

    fn values(&self, name: &str, bytes: &'a [u8], count: usize) -> Result<Values<'a>, Error> {
        check_length(name, bytes, count)?;
        let unit = self.units.get(name).copied().unwrap_or(1);
        Ok(Values { reader: Some(Reader::new(name, bytes)), usual: 0, unit, before: None })
    }
}

/// Each value takes at least a byte, so that no more room is made than the file has.
fn check_length(name: &str, bytes: &[u8], count: usize) -> Result<(), Error> {
    if bytes.len() < count { Err(Reader::new(name, bytes).fault("ends too early")) } else { Ok(()) }
}

/// The values of a column, in order.
pub(super) struct Values<'a> {
    reader: Option<Reader<'a>>,
    usual: u64,
    unit: u64,
    /// The value before the next one, in units, where only what is between them is written.
    before: Option<u64>,
}

impl Values<'_> {
    fn into_differences(self) -> Self {
        Self { before: Some(0), ..self }
    }

    pub fn next(&mut self) -> Result<u64, Error> {
        let Some(reader) = &mut self.reader else { return Ok(self.usual) };
        let value = match &mut self.before {
            Some(before) => {
                *before = before.wrapping_add_signed(reader.signed()?);
                *before
            }
            None => reader.number()?,
        };
        value.checked_mul(self.unit).ok_or_else(|| reader.fault("leaves 64 bits"))
    }

    /// Nothing may be left.
    pub fn finish(self) -> Result<(), Error> {
        self.reader.map_or(Ok(()), Reader::finish)
    }
}
