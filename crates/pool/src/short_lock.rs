//! A lock for work that takes less time than the system takes to wake a thread: whoever finds it taken looks again a few
//! times, ever more seldom, and sleeps only then.

use std::hint;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// How often it is looked at before the thread sleeps.
const LOOKS: u32 = 40;

/// The longest pause between two looks, in turns of a spinning processor, as a power of two.
const LONGEST_PAUSE: u32 = 10;

/// A value that one thread at a time has. A panic of one leaves it to the others as it is.
#[derive(Debug)]
pub(crate) struct ShortLock<T>(Mutex<T>);

impl<T> ShortLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits until no other thread has the value.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        for look in 0..LOOKS {
            match self.0.try_lock() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
            for _ in 0..1 << look.min(LONGEST_PAUSE) {
                hint::spin_loop();
            }
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn threads_have_the_value_one_at_a_time_also_after_a_panic() {
        let lock = Arc::new(ShortLock::new(0_u64));
        let panicking = Arc::clone(&lock);
        let panicked = thread::spawn(move || {
            let _guard = panicking.lock();
            panic!("with the lock");
        });
        assert!(panicked.join().is_err());
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        let mut value = lock.lock();
                        let before = *value;
                        hint::spin_loop();
                        *value = before + 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 4_000);
    }

    #[test]
    fn who_waits_long_gets_it_too() {
        let lock = ShortLock::new(());
        thread::scope(|scope| {
            let guard = lock.lock();
            let waiting = scope.spawn(|| drop(lock.lock()));
            thread::sleep(Duration::from_millis(20));
            assert!(!waiting.is_finished());
            drop(guard);
        });
    }
}
