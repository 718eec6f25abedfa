//! The C compiler: the same objects come out, byte by byte, as without the library.

#![expect(clippy::unwrap_used, reason = "a test may end here")]

use std::fmt::Write as _;
use std::fs;

use lowtide_testing::{programs, thorough};

use crate::trial::{Trial, printed, well};

/// Functions with loops, switches, floating point and calls among each other.
fn source(unit: usize, functions: usize) -> String {
    let mut text = String::from("#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n#include <math.h>\n");
    for number in 0..functions {
        let name = format!("f{unit}_{number}");
        let inner = if number == 0 { "x".to_owned() } else { format!("f{unit}_{}(x / 2, n / 2)", number - 1) };
        write!(
            text,
            "uint64_t {name}(uint64_t x, unsigned n) {{\n\
             \x20 double total = x; uint64_t table[{size}]; memset(table, 0, sizeof table);\n\
             \x20 for (unsigned i = 0; i < n; i++) {{\n\
             \x20   switch ((x ^ i) % 7) {{\n\
             \x20     case 0: x = x * {odd}u + i; break; case 1: total += sqrt((double)(i + {number})); break;\n\
             \x20     case 2: table[i % {size}] ^= x; break; case 3: x += table[(i * 3) % {size}]; break;\n\
             \x20     case 4: total = total * 0.5 + i; break; default: x ^= x >> 7; }} }}\n\
             \x20 if (n) x += {inner};\n\
             \x20 return x + (uint64_t)total % 1000; }}\n",
            size = 16 + number % 48,
            odd = 2 * number + 3,
        )
        .unwrap();
    }
    text
}

#[test]
fn a_large_file_becomes_the_same_object() {
    if !thorough() {
        return;
    }
    let Some([gcc]) = programs(["gcc"], &[]) else { return };
    let trial = Trial::new();
    fs::write(trial.path("large.c"), source(0, 250)).unwrap();
    trial.run(&gcc, &["-O2", "-g", "-c", "large.c", "-o", "with.o"]);
    well(trial.bare(&gcc).args(["-O2", "-g", "-c", "large.c", "-o", "without.o"]));
    assert!(fs::read(trial.path("with.o")).unwrap() == fs::read(trial.path("without.o")).unwrap());
    trial.assert_served("cc1");
}

const MAKEFILE: &str = "\
OBJECTS := $(patsubst %.c,%.o,$(wildcard *.c))
program: $(OBJECTS)
\t$(CC) -O2 -flto=2 -o $@ $(OBJECTS) -lm
%.o: %.c
\t$(CC) -O2 -flto -c $< -o $@
";

#[test]
fn a_project_is_made_in_parallel_and_linked_as_one() {
    if !thorough() {
        return;
    }
    let Some([make, gcc]) = programs(["make", "gcc"], &[]) else { return };
    let trial = Trial::new();
    let mut sum = String::new();
    let mut main = String::from("#include <stdint.h>\n#include <stdio.h>\n");
    for unit in 0..8 {
        fs::write(trial.path(&format!("unit{unit}.c")), source(unit, 16)).unwrap();
        writeln!(main, "uint64_t f{unit}_15(uint64_t, unsigned);").unwrap();
        write!(sum, " + f{unit}_15({unit}, 5000)").unwrap();
    }
    writeln!(main, "int main(void) {{ printf(\"%llu\\n\", (unsigned long long)(0{sum})); }}").unwrap();
    fs::write(trial.path("main.c"), main).unwrap();
    fs::write(trial.path("Makefile"), MAKEFILE).unwrap();
    let compiler = format!("CC={}", gcc.display());
    let result = |command: &mut std::process::Command| {
        well(command.args(["-s", "-j2", "-B", &compiler]));
        printed(&well(&mut trial.bare(trial.path("program"))))
    };
    let with = result(&mut trial.command(&make));
    assert!(with.trim().parse::<u64>().is_ok() && with == result(&mut trial.bare(&make)), "{with}");
    trial.assert_served("lto1");
}
