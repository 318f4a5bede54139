//! Records where the code of a run panics: the place belongs to the finding, and a backtrace to the report.
//!
//! The default hook would print each panic of each run, although a reconcile that panics is retried, and many runs execute
//! at once.

use std::{
    any::Any,
    backtrace::{Backtrace, BacktraceStatus},
    cell::{Cell, RefCell},
    collections::VecDeque,
    panic::{PanicHookInfo, set_hook, take_hook},
    sync::Once,
};

use kctl_runtime::__private_0_1::Freezer;

use super::progress;

/// Maximum number of panics of a thread that are remembered; the oldest is forgotten.
const PANICS_MAX: usize = 16;

/// One panic of a run.
struct PanicRecord {
    text: String,
    /// File, line and column.
    place: String,
    /// The code that panicked, if [`within`] named it.
    code: Option<&'static str>,
    backtrace: Backtrace,
}

thread_local! {
    /// The last panics of this thread.
    static PANICS: RefCell<VecDeque<PanicRecord>> = const { RefCell::new(VecDeque::new()) };
    /// The code that runs now.
    static CODE: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Sets the name of the running code back, also after a panic.
struct Restore(Option<&'static str>);

impl Drop for Restore {
    fn drop(&mut self) {
        CODE.set(self.0);
    }
}

/// Records panics on the threads of runs from now on. Panics of other threads go to the hook that was set before.
pub(super) fn install_hook() {
    static INSTALLED: Once = Once::new();
    // A hook can't be replaced while this thread panics.
    if std::thread::panicking() {
        return;
    }
    INSTALLED.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| if progress::is_run() { record(panic) } else { before(panic) }));
    });
}

/// Runs code of the app, and names it in the finding of a panic.
pub(super) fn within<T>(code: &'static str, run: impl FnOnce() -> T) -> T {
    let _restore = Restore(CODE.replace(Some(code)));
    run()
}

fn record(panic: &PanicHookInfo<'_>) {
    let text = panic_text(panic.payload());
    let place = panic.location().map_or_else(String::new, ToString::to_string);
    if Freezer::current_process().is_none() {
        // Nothing else reports the panic of a task that `tokio::spawn` started.
        progress::log_outside("panic", format!("{text} at {place}"));
    }
    let record = PanicRecord { text, place, code: CODE.get(), backtrace: Backtrace::capture() };
    // The thread may be at its end. A panic within the hook would abort the program.
    let _ended = PANICS.try_with(|panics| {
        let mut panics = panics.borrow_mut();
        if panics.len() == PANICS_MAX {
            panics.pop_front();
        }
        panics.push_back(record);
    });
}

/// Returns the message of a panic.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".into())
}

/// Reads the last panic of this thread whose message is `text`.
fn find<T>(text: &str, read: impl FnOnce(&PanicRecord) -> T) -> Option<T> {
    PANICS.with_borrow(|panics| panics.iter().rev().find(|panic| panic.text == text).map(read))
}

/// Returns the place of the last panic of this thread with this message, such as ` at src/site.rs:41:9`, for the end of
/// a finding.
pub(super) fn place_of(text: &str) -> String {
    find(text, |panic| format!(" at {}", panic.place)).unwrap_or_default()
}

/// Describes a panic that was caught on this thread: the code, the message and the place. `code` is the name of the code
/// unless [`within`] knows a better one.
pub(super) fn describe(code: &str, panic: &(dyn Any + Send)) -> String {
    let text = panic_text(panic);
    let named = find(&text, |panic| panic.code).flatten();
    format!("{}: {text}{}", named.unwrap_or(code), place_of(&text))
}

/// Returns the backtrace of the last panic of this thread whose place a finding names, if `RUST_BACKTRACE` asks for
/// backtraces.
pub(super) fn backtrace_of(finding: &str) -> Option<String> {
    PANICS.with_borrow(|panics| {
        let named = |panic: &&PanicRecord| !panic.place.is_empty() && finding.contains(&panic.place);
        let backtrace = &panics.iter().rev().find(named)?.backtrace;
        (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Runs code on the thread of a run, on which panics are recorded.
    fn on_run_thread<T: Send>(code: impl FnOnce() -> T + Send) -> T {
        install_hook();
        let in_run = || {
            Arc::<progress::Progress>::default().enter();
            code()
        };
        std::thread::scope(|scope| scope.spawn(in_run).join().unwrap())
    }

    #[test]
    fn panic_is_described_with_its_place() {
        let fail = |text: &str| std::panic::catch_unwind(|| assert!(text.is_empty(), "{text}")).unwrap_err();
        let texts = on_run_thread(|| {
            let first = within("the function of `.app(…)`", || fail("no disk"));
            let second = fail("no tape");
            [describe("a step", &*first), describe("a step", &*second)]
        });
        let starts = ["the function of `.app(…)`: no disk at ", "a step: no tape at "];
        for (text, start) in texts.iter().zip(starts) {
            let place = text.strip_prefix(start).unwrap_or_else(|| panic!("{text}"));
            assert!(place.contains("panics.rs:"), "{text}");
        }
    }

    #[test]
    fn unrecorded_panic_has_no_place() {
        assert_eq!(describe("a step", &"no disk"), "a step: no disk");
        assert_eq!(backtrace_of("a step: no disk"), None);
    }
}
