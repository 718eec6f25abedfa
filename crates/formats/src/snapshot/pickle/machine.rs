//! A pickle machine that cannot do anything: it builds lists, dicts, tuples, texts and numbers, and refuses every
//! opcode that imports, calls or builds objects. It works on a stream, and on handles instead of trees.

use std::io::Read;

use super::fault::{Halt, PickleFault};
use super::lists::Lists;
use super::memo::Memo;
use super::opcode::{self, name, why_refused};
use super::source::Source;
use super::value::{Opaque, Value};
use crate::error::shorten::shorten_message;
use crate::snapshot::contents::Contents;
use crate::snapshot::contents::records;
use crate::{Error, limits};

/// How deep containers may be in each other; a snapshot is seven deep.
const DEPTH: u64 = 100;
/// The longest whole number; what is beyond 64 bits has no meaning in a snapshot.
const NUMBER_BYTES: u64 = 1 << 10;
/// Of a dict with more items than a writer sets at once, more may follow.
const BATCH: usize = 1_000;

/// Reads the pickle of a snapshot.
pub(crate) fn read<'a>(reader: Box<dyn Read + 'a>) -> Result<Contents, Error> {
    let mut machine = Machine {
        source: Source::new(reader),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Memo::default(),
        lists: Lists::default(),
        contents: Contents::new(),
    };
    loop {
        let byte = machine.source.offset();
        match machine.advance() {
            Ok(true) => {}
            Ok(false) => return Ok(machine.contents),
            Err(halt) => return Err(halt.at(byte)),
        }
    }
}

struct Machine<'a> {
    source: Source<'a>,
    stack: Vec<Value>,
    /// Where marks stand in the stack.
    marks: Vec<usize>,
    memo: Memo,
    lists: Lists,
    contents: Contents,
}

impl Machine<'_> {
    /// Carries out one opcode; `false` behind the last one.
    #[inline]
    fn advance(&mut self) -> Result<bool, Halt> {
        let code = self.source.byte()?;
        match code {
            opcode::BINGET => {
                let index = self.source.byte()?;
                self.recall(u32::from(index))?;
            }
            opcode::LONG_BINGET => {
                let index = u32::from_le_bytes(self.source.array()?);
                self.recall(index)?;
            }
            opcode::MEMOIZE => self.memoize(None)?,
            opcode::BINPUT => {
                let index = self.source.byte()?;
                self.memoize(Some(u32::from(index)))?;
            }
            opcode::LONG_BINPUT => {
                let index = u32::from_le_bytes(self.source.array()?);
                self.memoize(Some(index))?;
            }
            opcode::MARK => self.mark()?,
            opcode::EMPTY_DICT => self.push(Value::OpenDict(None))?,
            opcode::EMPTY_LIST => {
                let slot = self.lists.open()?;
                self.push(Value::OpenList(slot))?;
            }
            opcode::SETITEMS => self.set_items()?,
            opcode::SETITEM => {
                self.mark_before(2, "SETITEM")?;
                self.set_items()?;
            }
            opcode::APPENDS => self.append()?,
            opcode::APPEND => {
                self.mark_before(1, "APPEND")?;
                self.append()?;
            }
            opcode::TUPLE => self.tuple()?,
            opcode::EMPTY_TUPLE => self.push(Value::Opaque(Opaque::Tuple))?,
            opcode::TUPLE1 | opcode::TUPLE2 | opcode::TUPLE3 => {
                self.mark_before(usize::from(code - opcode::TUPLE1) + 1, "TUPLE")?;
                self.tuple()?;
            }
            opcode::STOP => return self.stop().map(|()| false),
            opcode::PROTO => self.protocol()?,
            opcode::FRAME => drop(self.source.array::<8>()?),
            _ => self.scalar(code)?,
        }
        Ok(true)
    }

    fn scalar(&mut self, code: u8) -> Result<(), Halt> {
        let value = match code {
            opcode::BININT1 => Value::Whole(i64::from(self.source.byte()?)),
            opcode::BININT2 => Value::Whole(i64::from(u16::from_le_bytes(self.source.array()?))),
            opcode::BININT => Value::Whole(i64::from(i32::from_le_bytes(self.source.array()?))),
            opcode::LONG1 => {
                let length = self.source.byte()?;
                self.number(i64::from(length))?
            }
            opcode::LONG4 => {
                let length = i32::from_le_bytes(self.source.array()?);
                self.number(i64::from(length))?
            }
            opcode::SHORT_BINUNICODE => {
                let length = self.source.byte()?;
                self.text(u64::from(length))?
            }
            opcode::BINUNICODE => {
                let length = u32::from_le_bytes(self.source.array()?);
                self.text(u64::from(length))?
            }
            opcode::BINUNICODE8 => {
                let length = u64::from_le_bytes(self.source.array()?);
                self.text(length)?
            }
            opcode::NONE => Value::Opaque(Opaque::Nothing),
            opcode::NEWTRUE => Value::Opaque(Opaque::True),
            opcode::NEWFALSE => Value::Opaque(Opaque::False),
            opcode::BINFLOAT => {
                self.source.array::<8>()?;
                Value::Opaque(Opaque::Float)
            }
            refused => return Err(self.refuse(refused)),
        };
        self.push(value)
    }

    fn text(&mut self, length: u64) -> Result<Value, Halt> {
        if length > limits::TEXT {
            return Err(PickleFault::TextTooLong { length, limit: limits::TEXT }.into());
        }
        let bytes = self.source.bytes(length as usize)?;
        let text = std::str::from_utf8(bytes).map_err(|_| PickleFault::NotUtf8)?;
        Ok(Value::Text(self.contents.text(text)?))
    }

    /// A whole number of `length` bytes in two's complement, the lowest first.
    fn number(&mut self, length: i64) -> Result<Value, Halt> {
        let taken = usize::try_from(length).ok().filter(|&length| length as u64 <= NUMBER_BYTES);
        let Some(taken) = taken else {
            return Err(PickleFault::NumberTooLong { length, limit: NUMBER_BYTES }.into());
        };
        let bytes = self.source.bytes(taken)?;
        if taken > 8 {
            return Ok(Value::Opaque(Opaque::LargeNumber));
        }
        let is_negative = bytes.last().is_some_and(|&highest| highest >= 0x80);
        let mut whole = [if is_negative { 0xff } else { 0 }; 8];
        whole[..taken].copy_from_slice(bytes);
        Ok(Value::Whole(i64::from_le_bytes(whole)))
    }

    fn protocol(&mut self) -> Result<(), Halt> {
        let version = self.source.byte()?;
        if (2..=5).contains(&version) { Ok(()) } else { Err(PickleFault::Protocol { version }.into()) }
    }

    #[inline]
    fn push(&mut self, value: Value) -> Result<(), Halt> {
        if self.stack.len() as u64 >= limits::STACK {
            return Err(PickleFault::TooMany { what: "values on the stack", limit: limits::STACK }.into());
        }
        self.stack.push(value);
        Ok(())
    }

    fn mark(&mut self) -> Result<(), Halt> {
        if self.marks.len() as u64 >= DEPTH {
            return Err(PickleFault::TooMany { what: "containers in each other", limit: DEPTH }.into());
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    /// Sets a mark below the last `count` values.
    fn mark_before(&mut self, count: usize, opcode: &'static str) -> Result<(), Halt> {
        if self.stack.len() - self.fence() < count {
            return Err(PickleFault::Underflow { opcode }.into());
        }
        self.marks.push(self.stack.len() - count);
        Ok(())
    }

    /// Where the values begin that opcodes may work on now.
    fn fence(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    /// The place of the container below the last mark, and of the first item above it.
    fn filling(&mut self, opcode: &'static str) -> Result<(usize, usize), Halt> {
        let first = self.marks.pop().ok_or(PickleFault::NoMark { opcode })?;
        if first <= self.fence() {
            return Err(PickleFault::Underflow { opcode }.into());
        }
        Ok((first - 1, first))
    }

    #[inline]
    fn memoize(&mut self, index: Option<u32>) -> Result<(), Halt> {
        let fence = self.fence();
        let Some(top) = self.stack[fence..].last_mut() else {
            return Err(PickleFault::Underflow { opcode: "MEMOIZE" }.into());
        };
        let entry = match index {
            Some(index) => self.memo.push_as(index, *top)?,
            None => self.memo.push(*top)?,
        };
        match top {
            Value::OpenDict(known) => *known = known.or(Some(entry)),
            Value::OpenList(slot) => self.lists.remember(*slot, entry),
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn recall(&mut self, index: u32) -> Result<(), Halt> {
        match self.memo.get(index) {
            None => Err(PickleFault::UnknownMemo { index }.into()),
            Some(Value::OpenDict(_)) => Err(PickleFault::Recursive.into()),
            Some(Value::OpenList(slot)) => {
                self.lists.refer(slot);
                self.push(Value::OpenList(slot))
            }
            Some(value) => self.push(value),
        }
    }

    /// Makes of the values above `first`, which are about to be taken, what they stand for.
    fn settle_from(&mut self, first: usize) -> Result<(), Halt> {
        for place in first..self.stack.len() {
            // Most are settled already, and are left alone.
            self.stack[place] = match self.stack[place] {
                Value::OpenList(slot) => self.lists.take(slot, &mut self.contents, &mut self.memo)?,
                Value::OpenDict(entry) => {
                    entry.map_or(Ok(()), |entry| self.memo.settle(entry, DICT))?;
                    DICT
                }
                _ => continue,
            };
        }
        Ok(())
    }

    fn set_items(&mut self) -> Result<(), Halt> {
        let (target, first) = self.filling("SETITEMS")?;
        let items = self.stack.len() - first;
        if !items.is_multiple_of(2) {
            return Err(PickleFault::OddItems.into());
        }
        self.settle_from(first)?;
        self.stack[target] = match self.stack[target] {
            Value::OpenDict(entry) => {
                let is_complete = items / 2 < BATCH;
                let dict = if is_complete { records::read(&mut self.contents, &self.stack[first..])? } else { DICT };
                entry.map_or(Ok(()), |entry| self.memo.settle(entry, dict))?;
                dict
            }
            DICT => DICT,
            Value::Frame(_) | Value::Record(..) | Value::Settings(_) | Value::Snapshot => {
                return Err(PickleFault::Recursive.into());
            }
            other => return Err(PickleFault::NotAContainer { opcode: "SETITEMS", found: other.describe() }.into()),
        };
        self.stack.truncate(first);
        Ok(())
    }

    fn append(&mut self) -> Result<(), Halt> {
        let (target, first) = self.filling("APPENDS")?;
        let target = self.stack[target];
        let Value::OpenList(slot) = target else {
            return Err(PickleFault::NotAContainer { opcode: "APPENDS", found: target.describe() }.into());
        };
        if self.stack[first..].contains(&target) {
            return Err(PickleFault::Recursive.into());
        }
        self.settle_from(first)?;
        for &item in &self.stack[first..] {
            self.lists.append(slot, item, &mut self.contents)?;
        }
        self.stack.truncate(first);
        Ok(())
    }

    fn tuple(&mut self) -> Result<(), Halt> {
        let first = self.marks.pop().ok_or(PickleFault::NoMark { opcode: "TUPLE" })?;
        self.settle_from(first)?;
        let tuple = match self.stack[first..] {
            [Value::Whole(first), Value::Whole(second)] => self.contents.pair(first, second)?,
            _ => Value::Opaque(Opaque::Tuple),
        };
        self.stack.truncate(first);
        self.push(tuple)
    }

    fn stop(&mut self) -> Result<(), Halt> {
        self.settle_from(0)?;
        let result = match self.stack[..] {
            [] => return Err(PickleFault::Underflow { opcode: "STOP" }.into()),
            [result] => result,
            _ => return Err(PickleFault::NotASnapshot { found: "several values" }.into()),
        };
        if result != Value::Snapshot {
            return Err(PickleFault::NotASnapshot { found: result.describe() }.into());
        }
        if self.source.is_at_end()? { Ok(()) } else { Err(PickleFault::Trailing.into()) }
    }

    /// The refusal of an opcode, with what it names where that can be read.
    fn refuse(&mut self, code: u8) -> Halt {
        let named = match code {
            opcode::GLOBAL | opcode::INST => {
                let module = self.source.line();
                Some((module, self.source.line()))
            }
            opcode::STACK_GLOBAL => match self.stack[..] {
                [.., Value::Text(module), Value::Text(name)] => {
                    Some((self.contents.text_at(module).to_owned(), self.contents.text_at(name).to_owned()))
                }
                _ => None,
            },
            _ => None,
        };
        let Some(opcode) = name(code) else {
            let opcode = format!("the byte {code:#04x}");
            return Halt::refused(opcode, "is no opcode");
        };
        let opcode = match named {
            Some((module, name)) => format!("{opcode} `{}`", shorten_message(&format!("{module}.{name}"))),
            None => opcode.to_owned(),
        };
        Halt::refused(opcode, why_refused(code))
    }
}

const DICT: Value = Value::Opaque(Opaque::Dict);
