//! What was asked of host memory and not granted: one sentence each, however often it happens.

use std::sync::{Mutex, PoisonError};

use crate::error::Error;
use crate::host::options::{Pages, Placement};
use crate::system::files::nodes;

/// Sentences for [`Description::fallbacks`](crate::Description::fallbacks).
#[derive(Debug, Default)]
pub(super) struct Fallbacks {
    said: Mutex<Vec<(Kind, String)>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Pages(Pages),
    PagesLater,
    Placement,
    Lock,
}

impl Fallbacks {
    pub(super) fn read(&self) -> Vec<String> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.iter().map(|(_, sentence)| sentence.clone()).collect()
    }

    /// Pages of this size are not to be had at all.
    pub(super) fn pages_refused(&self, asked: Pages, why: &str, taken: Pages) {
        self.say(Kind::Pages(asked), || format!("{asked} were refused ({why}); {taken} are used; {}", remedy(asked)));
    }

    /// There were some, and now there are no more.
    pub(super) fn huge_pages_ran_out(&self, asked: Pages) {
        self.say(Kind::PagesLater, || {
            format!("{asked} ran out; {} are used where there were none left; {}", Pages::Transparent, remedy(asked))
        });
    }

    pub(super) fn advice_refused(&self, error: &Error) {
        self.pages_refused(Pages::Transparent, &reason(error), Pages::Base);
    }

    pub(super) fn placement_refused(&self, asked: &Placement, error: &Error) {
        self.say(Kind::Placement, || {
            let there = nodes::online().unwrap_or_else(|| "only one".to_owned());
            let why = reason(error);
            format!("memory on {asked} was refused ({why}); any node is used; name nodes of those there are: {there}")
        });
    }

    pub(super) fn lock_refused(&self, error: &Error) {
        self.say(Kind::Lock, || {
            let why = reason(error);
            format!(
                "locking memory was refused ({why}); it is used unlocked; raise the limit with `ulimit -l unlimited` or, \
                 for a service, `LimitMEMLOCK=infinity`"
            )
        });
    }

    fn say(&self, kind: Kind, sentence: impl FnOnce() -> String) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.iter().all(|&(other, _)| other != kind) {
            said.push((kind, sentence()));
        }
    }
}

fn reason(error: &Error) -> String {
    match error {
        Error::Refused { why, .. } => why.clone(),
        other => other.to_string(),
    }
}

fn remedy(asked: Pages) -> &'static str {
    match asked {
        Pages::Huge1G => {
            "ask for some at boot with `hugepagesz=1G hugepages=N` or run `echo N > \
             /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages`"
        }
        Pages::Huge2M => "run `echo N > /proc/sys/vm/nr_hugepages`",
        Pages::Transparent | Pages::Base => "run `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_often_is_said_once() {
        let fallbacks = Fallbacks::default();
        let error = |why: &str| Error::Refused { call: "mlock", why: why.to_owned() };
        fallbacks.lock_refused(&error("the limit"));
        fallbacks.lock_refused(&error("the limit again"));
        fallbacks.pages_refused(Pages::Huge1G, "none", Pages::Base);
        fallbacks.pages_refused(Pages::Huge2M, "none", Pages::Base);
        fallbacks.huge_pages_ran_out(Pages::Huge2M);
        fallbacks.huge_pages_ran_out(Pages::Huge2M);
        let said = fallbacks.read();
        assert_eq!(said.len(), 4, "{said:?}");
        assert!(said[0].contains("(the limit)"), "{said:?}");
    }
}
