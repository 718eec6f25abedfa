//! Models of PyTorch's device allocators as pools over any source: what they would have reserved for a program, without
//! a device. [`Caching`] takes a segment at a time, [`Expandable`] lets ranges of addresses grow page by page; both
//! share everything above that.

use std::sync::Arc;

use lowtide_memory::Source;

use lowtide_pool::Pool;

/// Makes a pool of a type that has a model.
macro_rules! pool_of_model {
    ($pool:ident) => {
        impl lowtide_pool::Pool for $pool {
            fn alloc(&self, request: &lowtide_pool::Request) -> Result<lowtide_pool::Address, lowtide_pool::Error> {
                self.model.alloc(request)
            }

            fn free(&self, address: lowtide_pool::Address) -> Result<(), lowtide_pool::Error> {
                self.model.free(address)
            }

            fn record(
                &self,
                address: lowtide_pool::Address,
                stream: lowtide_core::StreamId,
            ) -> Result<(), lowtide_pool::Error> {
                self.model.record(address, stream)
            }

            fn trim(&self) -> Result<lowtide_core::Bytes, lowtide_pool::Error> {
                self.model.trim()
            }

            fn stats(&self) -> lowtide_pool::Stats {
                self.model.stats()
            }
        }
    };
}

mod blocks;
mod caching;
mod divisions;
mod expandable;
mod marks;
mod model;
mod option_error;
mod options;
mod parse;
mod supply;
#[cfg(test)]
mod tests;

pub use caching::Caching;
pub use expandable::Expandable;
pub use option_error::OptionError;
pub use options::TorchOptions;

impl TorchOptions {
    /// The pool that PyTorch would use with these options: [`Expandable`] where
    /// [they say so](Self::expandable_segments), else [`Caching`].
    pub fn pool(self, source: Arc<dyn Source>) -> Box<dyn Pool> {
        if self.expandable_segments() {
            Box::new(Expandable::new(source, self))
        } else {
            Box::new(Caching::new(source, self))
        }
    }
}
