//! The strategies that the checks are run over.

use std::sync::Arc;

use lowtide_memory::Source;
use lowtide_pool::{Arena, ArenaOptions, Caching, Error, Expandable, Pool, TorchOptions};

pub type Made = Result<Box<dyn Pool>, Error>;

pub fn caching(source: Arc<dyn Source>) -> Made {
    Ok(Box::new(Caching::new(source, TorchOptions::default())))
}

pub fn expandable(source: Arc<dyn Source>) -> Made {
    Ok(Box::new(Expandable::new(source, TorchOptions::default())))
}

pub fn arena(source: Arc<dyn Source>) -> Made {
    Ok(Box::new(Arena::new(source, ArenaOptions::default())?))
}
