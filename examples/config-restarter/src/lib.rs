//! The operator: keeps pods that use a `ConfigMap`, and replaces them one at a time when its data changes.

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

/// The app with a client of the registry: a program has one for the network, tests have one that fails when told to.
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
