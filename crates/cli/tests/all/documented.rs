//! The commands in `tests/cmd` say and do what stands there.

#[test]
fn commands_do_what_is_written() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd").env("NO_COLOR", "1");
}
