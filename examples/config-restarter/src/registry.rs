//! The client of a service registry outside of the cluster, as a trait that tests can implement.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A pending call to the registry.
pub type Call<'a> = Pin<Box<dyn Future<Output = Result<(), RegistryError>> + Send + 'a>>;

/// The client of a registry. Both calls are idempotent, because a reconcile may repeat them.
pub trait Registry: Send + Sync {
    /// Registers the running revision of a service.
    ///
    /// # Errors
    /// The registry does not respond. The caller retries with the same revision.
    fn register<'a>(&'a self, service: &'a str, revision: &'a str) -> Call<'a>;

    /// Removes a service. It succeeds if the service is unknown.
    fn unregister<'a>(&'a self, service: &'a str) -> Call<'a>;
}

/// The registry did not respond, or rejected the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryError {
    /// The service that the call named.
    pub service: String,
}

impl std::fmt::Display for RegistryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the registry is not available for {}", self.service)
    }
}

impl std::error::Error for RegistryError {}

/// An in-memory registry, for `dev` and for tests without failures.
#[derive(Debug, Default)]
pub struct InMemoryRegistry(Mutex<BTreeMap<String, String>>);

impl InMemoryRegistry {
    /// Returns the revisions by service. It ignores a poisoned lock, which a panic in another test causes.
    fn revisions(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry for InMemoryRegistry {
    fn register<'a>(&'a self, service: &'a str, revision: &'a str) -> Call<'a> {
        self.revisions().insert(service.into(), revision.into());
        Box::pin(async { Ok(()) })
    }

    fn unregister<'a>(&'a self, service: &'a str) -> Call<'a> {
        self.revisions().remove(service);
        Box::pin(async { Ok(()) })
    }
}
