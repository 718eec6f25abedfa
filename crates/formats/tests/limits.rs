//! Inputs that never end, or hold absurd numbers, are left after a bounded amount of reading.

use std::cell::Cell;
use std::io::{self, Read};

use lowtide_formats::{Error, ErrorKind, Input, PlanFile, limits};

/// A start, then one byte for ever; counts what was taken from it.
struct Endless<'a> {
    start: &'a [u8],
    byte: u8,
    taken: &'a Cell<u64>,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let from_start = self.start.read(buffer)?;
        if from_start == 0 {
            buffer.fill(self.byte);
        }
        let read = if from_start == 0 { buffer.len() } else { from_start };
        self.taken.set(self.taken.get() + read as u64);
        Ok(read)
    }
}

fn read_endless(start: &str, byte: u8) -> (Error, u64) {
    let taken = Cell::new(0);
    let error = Input::read(Endless { start: start.as_bytes(), byte, taken: &taken }).expect_err("it never ends");
    (error, taken.get())
}

const SLACK: u64 = 256 << 10;

#[test]
fn an_endless_line_is_left_after_a_mebibyte() {
    for (start, byte, row) in [
        ("", b'x', 1),
        ("id,lower,upper,size\n", b'a', 2),
        ("id,lower,upper,size\na,0,1,1\nb,0,1,", b'9', 3),
        ("event,id,bytes,stream\nalloc,a,", b'1', 2),
        ("id,lower,upper,size\na,0,1,1\n", b',', 3),
    ] {
        let (error, taken) = read_endless(start, byte);
        assert!(matches!(error.kind, ErrorKind::LineTooLong { limit: limits::LINE }), "{start}: {error:?}");
        assert_eq!(error.row, Some(row));
        assert!(taken < limits::LINE + SLACK, "{taken} bytes were read");
    }
}

#[test]
fn an_endless_quoted_field_is_left_after_a_mebibyte() {
    for byte in [b'\n', b'x'] {
        let (error, taken) = read_endless("id,lower,upper,size\na,0,1,\"", byte);
        let expected = matches!(error.kind, ErrorKind::UnclosedQuote | ErrorKind::LineTooLong { .. });
        assert!(expected && error.row == Some(2), "{error:?}");
        assert!(taken < limits::LINE + SLACK, "{taken} bytes were read");
    }
}

#[test]
fn an_endless_plan_is_left_after_a_mebibyte() {
    let taken = Cell::new(0);
    let error = PlanFile::read(Endless { start: b"id,offset\na,", byte: b'7', taken: &taken }).expect_err("no end");
    assert!(matches!(error, Error { row: Some(2), kind: ErrorKind::LineTooLong { .. } }));
    assert!(taken.get() < limits::LINE + SLACK);
}

#[test]
fn a_number_of_a_million_digits_is_out_of_range_and_not_repeated() {
    let digits = "7".repeat(1_000_000);
    for text in [
        format!("id,lower,upper,size\na,0,1,{digits}\n"),
        format!("id,lower,upper,size\na,-{digits},1,1\n"),
        format!("event,id,bytes,stream\nalloc,a,{digits},0\n"),
    ] {
        let error = Input::read(text.as_bytes()).expect_err("out of range");
        assert!(matches!(error, Error { row: Some(2), kind: ErrorKind::OutOfRange { .. } }), "{error:?}");
        assert!(error.to_string().len() < 200, "{error}");
    }
    let json = format!(r#"{{"kind":"problem","version":1,"buffers":[{{"id":{digits}}}]}}"#);
    let error = Input::read(json.as_bytes()).expect_err("out of range");
    assert!(matches!(error.kind, ErrorKind::BadJson(_)) && error.to_string().len() < 300, "{error}");
    let plan = format!("id,offset\na,{digits}\n");
    assert!(matches!(PlanFile::read(plan.as_bytes()), Err(Error { kind: ErrorKind::OutOfRange { .. }, .. })));
}

#[test]
fn a_reader_that_fails_is_told_apart_from_bad_input() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
    let error = Input::read(b"id,lower,upper,size\n".chain(Broken)).expect_err("it fails");
    assert!(matches!(error.kind, ErrorKind::Unreadable(_)), "{error:?}");
}
