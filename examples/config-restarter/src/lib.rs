//! The operator: keeps pods that use a `ConfigMap`, and replaces them one at a time when its data changes.

mod controller;
mod policy;
mod registry;
mod rollout;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kctl::App;

use crate::controller::ConfigRestarter;
pub use crate::registry::{Call, InMemoryRegistry, Registry, RegistryError};

/// The app with a client of the registry: a program has one for the network, tests have one that fails when told to.
pub fn app(registry: Arc<dyn Registry>) -> App {
    App::new("config-restarter").controller_with(move |_env| {
        let registry = registry.clone();
        async move { Ok(ConfigRestarter { registry }) }
    })
}
