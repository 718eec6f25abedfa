//! How two threads free each other's blocks: what one gives, the other frees. Blocks change hands several at a time, and a
//! thread that is too far ahead sleeps until there is room. Nothing is allocated once an exchange is made.

use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::work::Block;

/// Blocks that change hands at once.
const BATCH: usize = 8;
/// The most blocks that wait for a thread to free them.
const MOST: usize = 8 * BATCH;

/// Between two threads.
pub(super) struct Exchange {
    sides: Mutex<[Side; 2]>,
    changed: Condvar,
}

/// What waits for one thread.
struct Side {
    /// Blocks that it is to free.
    arrived: Vec<Block>,
    /// How often it has given all that it had to give.
    finished: u64,
    sleeps: bool,
}

impl Exchange {
    pub fn new() -> Self {
        let side = || Side { arrived: Vec::with_capacity(MOST), finished: 0, sleeps: false };
        Self { sides: Mutex::new([side(), side()]), changed: Condvar::new() }
    }

    /// The end of a thread, 0 or 1.
    pub fn end(&self, thread: usize) -> End<'_> {
        End { exchange: self, own: thread, leaving: Vec::with_capacity(BATCH), freeing: Vec::with_capacity(MOST) }
    }

    fn sides(&self) -> MutexGuard<'_, [Side; 2]> {
        self.sides.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thread's end of an exchange.
pub(super) struct End<'a> {
    exchange: &'a Exchange,
    own: usize,
    /// What it gives, until that is a batch.
    leaving: Vec<Block>,
    /// What it was given; empty but while it frees that.
    freeing: Vec<Block>,
}

impl End<'_> {
    /// The other thread is to free `block`. Now and then this frees what the other gave.
    pub fn give(&mut self, block: Block) {
        self.leaving.push(block);
        if self.leaving.len() == BATCH {
            self.pass();
        }
    }

    /// Gives what is left, and frees what the other gives until that has finished as often.
    pub fn finish(&mut self) {
        self.pass();
        let mut sides = self.exchange.sides();
        sides[self.own].finished += 1;
        loop {
            self.take(&mut sides);
            let is_over = sides[1 - self.own].finished >= sides[self.own].finished;
            if !self.freeing.is_empty() {
                drop(sides);
                self.freeing.clear();
                sides = self.exchange.sides();
            } else if is_over {
                return;
            } else {
                sides = self.sleep(sides);
            }
        }
    }

    /// Passes the batch on as soon as there is room, and frees what arrived.
    fn pass(&mut self) {
        let mut sides = self.exchange.sides();
        loop {
            let for_other = &mut sides[1 - self.own].arrived;
            let has_room = for_other.len() + self.leaving.len() <= MOST;
            if has_room {
                for_other.append(&mut self.leaving);
            }
            self.take(&mut sides);
            if !has_room && self.freeing.is_empty() {
                sides = self.sleep(sides);
                continue;
            }
            drop(sides);
            self.freeing.clear();
            if has_room {
                return;
            }
            sides = self.exchange.sides();
        }
    }

    /// Takes what arrived, and wakes the other, for which something may have changed.
    fn take(&mut self, sides: &mut [Side; 2]) {
        mem::swap(&mut sides[self.own].arrived, &mut self.freeing);
        if mem::take(&mut sides[1 - self.own].sleeps) {
            self.exchange.changed.notify_one();
        }
    }

    /// Sleeps until the other has done something.
    fn sleep<'a>(&self, mut sides: MutexGuard<'a, [Side; 2]>) -> MutexGuard<'a, [Side; 2]>
    where
        Self: 'a,
    {
        sides[self.own].sleeps = true;
        let asleep = |sides: &mut [Side; 2]| sides[self.own].sleeps;
        self.exchange.changed.wait_while(sides, asleep).unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_give_and_free_at_different_speeds_both_come_to_an_end() {
        let exchange = Exchange::new();
        std::thread::scope(|scope| {
            for (thread, blocks) in [(0, 10_000), (1, 77)] {
                let mut end = exchange.end(thread);
                scope.spawn(move || {
                    for _ in 0..3 {
                        for _ in 0..blocks {
                            end.give(vec![1; 10]);
                        }
                        end.finish();
                        assert!(end.leaving.is_empty() && end.freeing.is_empty());
                        assert_eq!((end.leaving.capacity(), end.freeing.capacity()), (BATCH, MOST));
                    }
                });
            }
        });
        assert!(exchange.sides().iter().all(|side| side.arrived.is_empty() && side.finished == 3));
    }
}
