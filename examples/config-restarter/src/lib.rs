//! An operator with an external system: it keeps pods that use a `ConfigMap`, replaces them one at a time when its data changes,
//! and registers the running revision outside of the cluster.
//!
//! ```text
//! cargo run -p config-restarter -- dev
//! ```
//!
//! It shows:
//!
//! - a pure decision function (`rollout`) with unit tests, and a thin controller that performs the decision;
//! - an injected client, `Arc<dyn Registry>`, which tests replace with a failing one;
//! - an index that maps a changed `ConfigMap` to its policies (`primary(index = …)`);
//! - a finalizer that removes the external registration, and conditions that report its failures;
//! - a custom metric in addition to the metrics of the framework.

mod controller;
mod policy;
mod registry;
mod rollout;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kctl::{App, metrics::counter::Counter};

use crate::controller::ConfigRestarter;
pub use crate::registry::{Call, InMemoryRegistry, Registry, RegistryError};

/// Returns the app with a registry client. A real program would pass a network client. Tests pass a client that fails
/// on demand.
pub fn app(registry: Arc<dyn Registry>) -> App {
    let replaced = Counter::<u64>::default();
    let counted = replaced.clone();
    App::new("config-restarter")
        .controller_with(move |_env| {
            let (registry, replaced) = (registry.clone(), replaced.clone());
            async move { Ok(ConfigRestarter { registry, replaced }) }
        })
        .metrics(move |metrics| {
            metrics.register("config_restarter_pods_replaced", "Pods that had older data", counted.clone());
        })
}
