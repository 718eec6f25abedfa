//! The opcodes of pickles by name. Those that a memory snapshot is made of are carried out by the machine; every other
//! one is refused, and said to be able to run code where it is.

/// Why an opcode that calls, imports or builds is refused.
pub(crate) const RUNS_CODE: &str = "can run code";
const FOREIGN: &str = "no memory snapshot has";

pub(crate) const MARK: u8 = b'(';
pub(crate) const STOP: u8 = b'.';
pub(crate) const BINFLOAT: u8 = b'G';
pub(crate) const BININT: u8 = b'J';
pub(crate) const BININT1: u8 = b'K';
pub(crate) const BININT2: u8 = b'M';
pub(crate) const NONE: u8 = b'N';
pub(crate) const BINUNICODE: u8 = b'X';
pub(crate) const APPEND: u8 = b'a';
pub(crate) const GLOBAL: u8 = b'c';
pub(crate) const APPENDS: u8 = b'e';
pub(crate) const BINGET: u8 = b'h';
pub(crate) const INST: u8 = b'i';
pub(crate) const LONG_BINGET: u8 = b'j';
pub(crate) const BINPUT: u8 = b'q';
pub(crate) const LONG_BINPUT: u8 = b'r';
pub(crate) const SETITEM: u8 = b's';
pub(crate) const TUPLE: u8 = b't';
pub(crate) const SETITEMS: u8 = b'u';
pub(crate) const EMPTY_DICT: u8 = b'}';
pub(crate) const EMPTY_LIST: u8 = b']';
pub(crate) const EMPTY_TUPLE: u8 = b')';
pub(crate) const PROTO: u8 = 0x80;
pub(crate) const TUPLE1: u8 = 0x85;
pub(crate) const TUPLE2: u8 = 0x86;
pub(crate) const TUPLE3: u8 = 0x87;
pub(crate) const NEWTRUE: u8 = 0x88;
pub(crate) const NEWFALSE: u8 = 0x89;
pub(crate) const LONG1: u8 = 0x8a;
pub(crate) const LONG4: u8 = 0x8b;
pub(crate) const SHORT_BINUNICODE: u8 = 0x8c;
pub(crate) const BINUNICODE8: u8 = 0x8d;
pub(crate) const STACK_GLOBAL: u8 = 0x93;
pub(crate) const MEMOIZE: u8 = 0x94;
pub(crate) const FRAME: u8 = 0x95;

/// The name of an opcode, for messages.
pub(crate) fn name(opcode: u8) -> Option<&'static str> {
    Some(match opcode {
        MARK => "MARK",
        STOP => "STOP",
        b'0' => "POP",
        b'1' => "POP_MARK",
        b'2' => "DUP",
        b'F' => "FLOAT",
        b'I' => "INT",
        BININT => "BININT",
        BININT1 => "BININT1",
        b'L' => "LONG",
        BININT2 => "BININT2",
        NONE => "NONE",
        b'P' => "PERSID",
        b'Q' => "BINPERSID",
        b'R' => "REDUCE",
        b'S' => "STRING",
        b'T' => "BINSTRING",
        b'U' => "SHORT_BINSTRING",
        b'V' => "UNICODE",
        BINUNICODE => "BINUNICODE",
        APPEND => "APPEND",
        b'b' => "BUILD",
        GLOBAL => "GLOBAL",
        b'd' => "DICT",
        EMPTY_DICT => "EMPTY_DICT",
        APPENDS => "APPENDS",
        b'g' => "GET",
        BINGET => "BINGET",
        INST => "INST",
        LONG_BINGET => "LONG_BINGET",
        b'l' => "LIST",
        EMPTY_LIST => "EMPTY_LIST",
        b'o' => "OBJ",
        b'p' => "PUT",
        BINPUT => "BINPUT",
        LONG_BINPUT => "LONG_BINPUT",
        SETITEM => "SETITEM",
        TUPLE => "TUPLE",
        EMPTY_TUPLE => "EMPTY_TUPLE",
        SETITEMS => "SETITEMS",
        BINFLOAT => "BINFLOAT",
        b'B' => "BINBYTES",
        b'C' => "SHORT_BINBYTES",
        PROTO => "PROTO",
        0x81 => "NEWOBJ",
        0x82 => "EXT1",
        0x83 => "EXT2",
        0x84 => "EXT4",
        TUPLE1 => "TUPLE1",
        TUPLE2 => "TUPLE2",
        TUPLE3 => "TUPLE3",
        NEWTRUE => "NEWTRUE",
        NEWFALSE => "NEWFALSE",
        LONG1 => "LONG1",
        LONG4 => "LONG4",
        SHORT_BINUNICODE => "SHORT_BINUNICODE",
        BINUNICODE8 => "BINUNICODE8",
        0x8e => "BINBYTES8",
        0x8f => "EMPTY_SET",
        0x90 => "ADDITEMS",
        0x91 => "FROZENSET",
        0x92 => "NEWOBJ_EX",
        STACK_GLOBAL => "STACK_GLOBAL",
        MEMOIZE => "MEMOIZE",
        FRAME => "FRAME",
        0x96 => "BYTEARRAY8",
        0x97 => "NEXT_BUFFER",
        0x98 => "READONLY_BUFFER",
        _ => return None,
    })
}

/// Why an opcode is refused, in words that follow "which".
pub(crate) fn why_refused(opcode: u8) -> &'static str {
    match opcode {
        GLOBAL | INST | STACK_GLOBAL | b'P' | b'Q' | b'R' | b'b' | b'o' | 0x81..=0x84 | 0x92 => RUNS_CODE,
        _ => FOREIGN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_of_the_five_protocols_has_a_name() {
        assert_eq!((0..=u8::MAX).filter(|&opcode| name(opcode).is_some()).count(), 68);
    }

    #[test]
    fn what_imports_calls_or_builds_is_said_to_run_code() {
        let names: Vec<&str> =
            (0..=u8::MAX).filter(|&opcode| why_refused(opcode) == RUNS_CODE).filter_map(name).collect();
        assert_eq!(
            names,
            [
                "PERSID",
                "BINPERSID",
                "REDUCE",
                "BUILD",
                "GLOBAL",
                "INST",
                "OBJ",
                "NEWOBJ",
                "EXT1",
                "EXT2",
                "EXT4",
                "NEWOBJ_EX",
                "STACK_GLOBAL"
            ]
        );
    }
}
