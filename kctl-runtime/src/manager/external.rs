//! Readiness checks and bounds of parts of the program that are outside of the loop, such as webhooks.

use std::sync::Arc;

use super::Manager;

/// A bound outside of the loop, such as a webhook's connections, which metrics show as well.
#[derive(Clone)]
pub(crate) struct Bound {
    pub(crate) name: &'static str,
    pub(crate) used: Arc<dyn Fn() -> usize + Send + Sync>,
    pub(crate) limit: usize,
}

/// Returns a note if something outside of the loop is ready, or the reason why it is not.
type IsReady = Arc<dyn Fn() -> Result<String, String> + Send + Sync>;

/// A check of `/readyz` for something outside of the loop.
#[derive(Clone)]
pub(super) struct ReadyCheck {
    pub(super) name: &'static str,
    pub(super) is_ready: IsReady,
}

impl Manager {
    /// Adds a check to `/readyz`. `name` becomes the last part of its path.
    ///
    /// The function returns `Ok` with a note, or `Err` with what is missing. It is called at each probe and must
    /// not block.
    ///
    /// ```
    /// # use kctl_runtime::manager::Manager;
    /// # fn add(manager: &mut Manager) {
    /// use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
    ///
    /// let connected = Arc::new(AtomicBool::new(false));
    /// let seen = connected.clone();
    /// manager.ready_when("database", move || match seen.load(Ordering::Relaxed) {
    ///     true => Ok(String::new()),
    ///     false => Err("no connection yet".into()),
    /// });
    /// # }
    /// ```
    pub fn ready_when(
        &mut self,
        name: &'static str,
        is_ready: impl Fn() -> Result<String, String> + Send + Sync + 'static,
    ) {
        self.others_ready.push(ReadyCheck { name, is_ready: Arc::new(is_ready) });
    }

    /// Adds a bound outside of the loop to the metrics `kctl_bound_used` and `kctl_bound_limit`.
    ///
    /// `used` is called at each scrape and must not block. A dashboard that divides the two shows which buffer fills
    /// up.
    ///
    /// ```
    /// # use kctl_runtime::manager::Manager;
    /// # fn add(manager: &mut Manager) {
    /// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
    ///
    /// let open = Arc::new(AtomicUsize::new(0));
    /// let seen = open.clone();
    /// manager.add_bound("connections", 64, move || seen.load(Ordering::Relaxed));
    /// # }
    /// ```
    pub fn add_bound(&mut self, name: &'static str, limit: usize, used: impl Fn() -> usize + Send + Sync + 'static) {
        self.bounds.push(Bound { name, used: Arc::new(used), limit });
    }
}
