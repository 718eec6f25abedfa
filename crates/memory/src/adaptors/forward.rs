//! A source around another writes only what it does differently; the rest is asked of the one within.

/// Writes the named functions of [`Source`](crate::Source), each of which asks the field `source`. The crate that uses it
/// depends on `lowtide-core`.
#[macro_export]
macro_rules! forward_to_source {
    ($($function:ident),* $(,)?) => {
        $($crate::forward_to_source!(@ $function);)*
    };
    (@ describe) => {
        fn describe(&self) -> $crate::Description {
            self.source.describe()
        }
    };
    (@ reserve) => {
        fn reserve(&self, bytes: ::lowtide_core::Bytes) -> Result<$crate::Span, $crate::Error> {
            self.source.reserve(bytes)
        }
    };
    (@ release) => {
        fn release(&self, span: $crate::Span) -> Result<(), $crate::Error> {
            self.source.release(span)
        }
    };
    (@ commit) => {
        fn commit(&self, span: $crate::Span) -> Result<(), $crate::Error> {
            self.source.commit(span)
        }
    };
    (@ decommit) => {
        fn decommit(&self, span: $crate::Span) -> Result<(), $crate::Error> {
            self.source.decommit(span)
        }
    };
    (@ alias) => {
        fn alias(&self, from: $crate::Span, to: u64) -> Result<(), $crate::Error> {
            self.source.alias(from, to)
        }
    };
    (@ relocate) => {
        fn relocate(&self, from: $crate::Span, to: u64) -> Result<(), $crate::Error> {
            self.source.relocate(from, to)
        }
    };
    (@ calls) => {
        fn calls(&self) -> $crate::Calls {
            self.source.calls()
        }
    };
    (@ now) => {
        fn now(&self) -> ::std::time::Duration {
            self.source.now()
        }
    };
    (@ mark) => {
        fn mark(&self, stream: ::lowtide_core::StreamId) -> Result<$crate::Mark, $crate::Error> {
            self.source.mark(stream)
        }
    };
    (@ passed) => {
        fn passed(&self, mark: $crate::Mark) -> bool {
            self.source.passed(mark)
        }
    };
    (@ hold) => {
        fn hold(&self, stream: ::lowtide_core::StreamId, mark: $crate::Mark) -> Result<(), $crate::Error> {
            self.source.hold(stream, mark)
        }
    };
    (@ wait) => {
        fn wait(&self, mark: $crate::Mark) -> Result<(), $crate::Error> {
            self.source.wait(mark)
        }
    };
    (@ forget) => {
        fn forget(&self, mark: $crate::Mark) {
            self.source.forget(mark);
        }
    };
    (@ drain) => {
        fn drain(&self) -> Result<(), $crate::Error> {
            self.source.drain()
        }
    };
}
