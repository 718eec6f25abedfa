//! Blocks of slabs: those of programs that replace many large ones while the arena does not serve.

use crate::sandbox::{Sandbox, assert_well, printed};

/// Programs that are about any large block, whoever serves it.
const PROGRAMS: [&str; 8] = ["alive", "children", "family", "forks", "growth", "moving", "realloc", "threads"];

#[test]
fn what_is_promised_of_large_blocks_holds_for_those_of_slabs() {
    let Some(sandbox) = Sandbox::new() else { return };
    if cfg!(not(target_arch = "x86_64")) {
        return lowtide_testing::skip("glibc's blocks are looked at on x86-64 alone");
    }
    let program = sandbox.build("slabs", "slabs", &[]);
    for way in ["pages", "sizes", "counts", "limits"] {
        assert_well(&sandbox.program_at(&program).env("LOWTIDE_ARENA", "auto").arg(way).output());
    }
    for name in PROGRAMS {
        let run = sandbox.program(name).env("LOWTIDE_ARENA", "auto").env("TURNS_OVER", "1");
        assert_well(&run.output());
    }
}

#[test]
fn a_program_that_touches_little_has_less_memory_and_one_that_touches_all_no_more() {
    let Some(sandbox) = Sandbox::new() else { return };
    if cfg!(not(target_arch = "x86_64")) {
        return lowtide_testing::skip("glibc's blocks are looked at on x86-64 alone");
    }
    let program = sandbox.build("slabs", "slabs", &[]);
    let numbers = |text: &str| -> [u64; 2] {
        let words: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
        words.try_into().unwrap()
    };
    for way in ["sparse", "dense", "larger", "mixed"] {
        let alone = numbers(&printed(&sandbox.program_at(&program).arg(way).output_alone()));
        let run = sandbox.program_at(&program).env("LOWTIDE_ARENA", "auto").arg(way);
        let [peak, faults] = numbers(&printed(&run.output()));
        // Slabs are tried first, which costs faults once.
        let by = if way == "dense" { "underlying" } else { "slabs" };
        let run = sandbox.program_at(&program).env("LOWTIDE_ARENA", "auto").arg(way);
        assert_eq!(run.summary()["large"]["by"], by, "{way}");
        let most = match way {
            "sparse" => [alone[0] * 3 / 4, alone[1]],
            "larger" => [alone[0] / 2, alone[1]],
            _ => [alone[0] + alone[0] / 8, 2 * alone[1]],
        };
        assert!(peak <= most[0] && faults <= most[1], "{way}: {peak} KiB, {faults} faults, and not {alone:?}");
    }
}
