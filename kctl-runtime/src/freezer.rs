//! Freezes all tasks of one simulated process at once, as SIGSTOP freezes a real one.
//!
//! The simulator runs several processes on one thread and one clock, so it can stop none of them by itself. Each task of
//! a process is therefore wrapped: while the process is frozen, a task that is woken is noted instead of polled. Timers
//! continue to run, as the monotonic clock of a real process does. When the process continues, its tasks find that
//! their deadlines have passed. They continue one after the other, in an order that the simulator chooses: a scheduler
//! may run one thread for a while before the next.
//!
//! Tasks inherit their process: [`spawn`] wraps a task if the task that spawns it is wrapped. A program outside of the
//! simulator has no freezer, and its tasks are spawned as they are. A task that user code spawns with [`tokio::spawn`]
//! is not wrapped and is not frozen.

use std::{
    cell::RefCell,
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{task::JoinSet, time::sleep};

/// Time between two tasks that continue. Simulated time advances when the first one waits for something else, such as
/// the response to its request.
const RESUME_INTERVAL: Duration = Duration::from_millis(1);

thread_local! {
    /// The process whose task is polled now.
    static CURRENT: RefCell<Option<Freezer>> = const { RefCell::new(None) };
}

/// The order in which the tasks of a frozen process continue. A real scheduler may choose any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThawOrder {
    /// The task that was woken first continues first.
    AsWoken,
    /// The task that was woken last continues first, for example a reconcile before the election.
    Reversed,
}

/// Stops and continues the tasks of one simulated process. Clones are for the same process.
#[derive(Debug, Clone, Default)]
pub struct Freezer {
    /// The name of the process.
    name: Arc<str>,
    state: Arc<Mutex<FreezerState>>,
}

#[derive(Debug, Default)]
struct FreezerState {
    is_frozen: bool,
    /// The tasks that were woken while frozen and have not continued, in this order. Each is in it once, so the number of
    /// tasks is the bound.
    woken: VecDeque<Waker>,
}

/// Restores the current process when the poll of a task ends, also by a panic.
struct Restore(Option<Freezer>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

impl Freezer {
    /// Creates one for a process with this name, whose tasks run.
    pub fn for_process(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Returns the name of the process whose task is polled now, or `None` outside of simulated processes.
    pub fn current_process() -> Option<Arc<str>> {
        CURRENT.try_with(|current| current.borrow().as_ref().map(|process| process.name.clone())).ok().flatten()
    }

    /// Stops all tasks: from now on none of them is polled.
    pub fn freeze(&self) {
        self.state.lock().is_frozen = true;
    }

    /// Lets the tasks continue, one after the other if they were woken while frozen. Returns when all of them have
    /// continued, or the process is frozen again.
    pub async fn thaw(&self, order: ThawOrder) {
        self.state.lock().is_frozen = false;
        while let Some(woken) = self.next_task(order) {
            woken.wake();
            sleep(RESUME_INTERVAL).await;
        }
    }

    /// Returns the next task that continues.
    fn next_task(&self, order: ThawOrder) -> Option<Waker> {
        let mut state = self.state.lock();
        if state.is_frozen {
            return None;
        }
        match order {
            ThawOrder::AsWoken => state.woken.pop_front(),
            ThawOrder::Reversed => state.woken.pop_back(),
        }
    }

    /// Runs a future as a task of this process. Tasks that it starts with `spawn` belong to the process too.
    pub fn run<F: Future>(&self, task: F) -> impl Future<Output = F::Output> + use<F> {
        let (process, mut task) = (self.clone(), Box::pin(task));
        poll_fn(move |cx| {
            if process.holds(cx.waker()) {
                return Poll::Pending;
            }
            let _restore = Restore(CURRENT.replace(Some(process.clone())));
            task.as_mut().poll(cx)
        })
    }

    /// Returns `true` if a task does not continue yet. If its process is frozen, notes that it was woken.
    fn holds(&self, waker: &Waker) -> bool {
        let mut state = self.state.lock();
        let is_noted = state.woken.iter().any(|woken| woken.will_wake(waker));
        if state.is_frozen && !is_noted {
            state.woken.push_back(waker.clone());
        }
        state.is_frozen || is_noted
    }
}

/// Spawns a task into a set. It belongs to the process of the current task, if that is a simulated one.
pub(crate) fn spawn<T: Send + 'static>(tasks: &mut JoinSet<T>, task: impl Future<Output = T> + Send + 'static) {
    let _handle = match CURRENT.with_borrow(Clone::clone) {
        Some(process) => tasks.spawn(process.run(task)),
        None => tasks.spawn(task),
    };
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// The names of tasks with the seconds at which they continued.
    type Log = Arc<Mutex<Vec<(&'static str, u64)>>>;

    /// Waits twice, and logs the time after each wait.
    async fn wait_twice(name: &'static str, first: Duration, log: Log, start: Instant) {
        for wait in [first, Duration::from_secs(100)] {
            sleep(wait).await;
            log.lock().push((name, start.elapsed().as_secs()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn frozen_process_sees_passed_deadlines_when_it_continues() {
        let second = Duration::from_secs;
        for (order, expected) in [
            (ThawOrder::AsWoken, [("other", 5), ("early", 20), ("late", 20)]),
            (ThawOrder::Reversed, [("other", 5), ("late", 20), ("early", 20)]),
        ] {
            let (log, start, process, mut tasks) = (Log::default(), Instant::now(), Freezer::default(), JoinSet::new());
            let (of_process, of_child) = (log.clone(), log.clone());
            // The second task is spawned by the first, so it belongs to the same process.
            tasks.spawn(process.run(async move {
                let mut children = JoinSet::new();
                spawn(&mut children, wait_twice("late", second(4), of_child, start));
                wait_twice("early", second(3), of_process, start).await;
            }));
            spawn(&mut tasks, wait_twice("other", second(5), log.clone(), start));
            sleep(second(1)).await;
            process.freeze();
            sleep(second(19)).await;
            process.thaw(order).await;
            sleep(second(1)).await;
            assert_eq!(*log.lock(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn task_knows_the_name_of_its_process() {
        let name = || Freezer::current_process().as_deref().map(ToOwned::to_owned);
        let inside = Freezer::for_process("app-0.1").run(async { name() }).await;
        assert_eq!((inside, name()), (Some("app-0.1".into()), None));
    }

    #[tokio::test(start_paused = true)]
    async fn panic_of_a_task_leaves_no_process_behind() {
        let mut tasks = JoinSet::<()>::new();
        tasks.spawn(Freezer::default().run(async { panic!("on purpose") }));
        let ended = tasks.join_next().await.unwrap();
        assert!(ended.unwrap_err().is_panic());
        assert!(CURRENT.with_borrow(Option::is_none));
    }
}
