//! The clock that controllers write times from.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;

/// The clock for times that are written into objects, such as conditions and events.
///
/// Timers and timeouts use tokio's clock instead.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
