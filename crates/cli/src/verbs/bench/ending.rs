//! How a benchmark ends: its numbers on stdout, in a file where one was named, and a word on what is missing of them.

use serde::Serialize;

use crate::arguments::view::View;
use crate::atomic_file::Target;
use crate::console::show;
use crate::{Console, Failure};

/// Tells a `report`: as `lines`, or as JSON where that was asked for.
pub(super) fn tell<R: Serialize>(
    (report, interrupted): (&R, bool),
    lines: impl FnOnce(&R) -> Vec<String>,
    view: View,
    target: Option<&Target>,
    console: &mut Console,
) -> Result<(), Failure> {
    if view.is_json() {
        console.print_json(report)?;
    } else {
        for line in lines(report) {
            console.print(view.ink().written(&line))?;
        }
    }
    console.finish()?;
    if let Some(target) = target {
        let json = serde_json::to_vec(report).map_err(|error| Failure::Fault(error.to_string()))?;
        target.write_bytes(&[&json[..], b"\n"].concat())?;
        console.say(format!("wrote {}", show::path(target.path())));
    }
    if interrupted {
        console.say("interrupted: what was measured until then is shown");
    }
    Ok(())
}
