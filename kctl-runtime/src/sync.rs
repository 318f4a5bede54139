//! The locks of the queue and the store: locks of `parking_lot`, or locks that shuttle schedules in the tests of this
//! crate.
//!
//! In tests each lock and unlock is a point where shuttle may switch to another task. Tests of schedules can therefore
//! reach every order of critical sections, without changes to the code under test. They try a sample of the orders.

#[cfg(not(test))]
pub(crate) use parking_lot::{Mutex, RwLock};
#[cfg(test)]
pub(crate) use under_test::{Mutex, RwLock, any_schedule};

#[cfg(test)]
mod under_test {
    use std::{
        cell::Cell,
        ops::{Deref, DerefMut},
    };

    use shuttle::scheduler::{PctScheduler, RandomScheduler};

    /// Number of schedules of each kind that a test runs, unless the variable `SHUTTLE_SCHEDULES` holds another number.
    const SCHEDULES: usize = 200;
    /// Number of priority changes in a PCT schedule. Bugs that need more changes are not found.
    const DEPTH: usize = 3;

    thread_local! {
        /// Shuttle runs all tasks on the thread that started it.
        static SCHEDULED: Cell<bool> = const { Cell::new(false) };
    }

    /// Runs a test under many schedules: random ones, and PCT ones with few priority changes, which find rare orders
    /// sooner.
    pub(crate) fn any_schedule(test: impl Fn() + Send + Sync + Clone + 'static) {
        let named = std::env::var("SHUTTLE_SCHEDULES").ok().and_then(|text| text.parse().ok());
        let n = named.unwrap_or(SCHEDULES);
        SCHEDULED.set(true);
        shuttle::Runner::new(RandomScheduler::new(n), shuttle::Config::default()).run(test.clone());
        shuttle::Runner::new(PctScheduler::new(DEPTH, n), shuttle::Config::default()).run(test);
        SCHEDULED.set(false);
    }

    /// Lets shuttle switch to another task.
    fn yield_task() {
        if SCHEDULED.get() && !std::thread::panicking() {
            shuttle::thread::yield_now();
        }
    }

    /// Takes a lock. A task that was interrupted while holding it keeps it, so the others must try again rather than
    /// block the only thread.
    fn wait<T>(mut attempt: impl FnMut() -> Option<T>, block: impl FnOnce() -> T) -> T {
        if !SCHEDULED.get() {
            return block();
        }
        loop {
            yield_task();
            if let Some(guard) = attempt() {
                return guard;
            }
        }
    }

    /// A guard that lets other tasks run after it was dropped.
    pub(crate) struct Guard<G>(Option<G>);

    impl<G: Deref> Deref for Guard<G> {
        type Target = G::Target;

        fn deref(&self) -> &G::Target {
            self.0.as_ref().unwrap()
        }
    }

    impl<G: DerefMut> DerefMut for Guard<G> {
        fn deref_mut(&mut self) -> &mut G::Target {
            self.0.as_mut().unwrap()
        }
    }

    impl<G> Drop for Guard<G> {
        fn drop(&mut self) {
            self.0 = None;
            yield_task();
        }
    }

    #[derive(Default)]
    pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(parking_lot::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> Guard<parking_lot::MutexGuard<'_, T>> {
            Guard(Some(wait(|| self.0.try_lock(), || self.0.lock())))
        }
    }

    pub(crate) struct RwLock<T>(parking_lot::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(parking_lot::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> Guard<parking_lot::RwLockReadGuard<'_, T>> {
            Guard(Some(wait(|| self.0.try_read(), || self.0.read())))
        }

        pub(crate) fn write(&self) -> Guard<parking_lot::RwLockWriteGuard<'_, T>> {
            Guard(Some(wait(|| self.0.try_write(), || self.0.write())))
        }
    }
}
