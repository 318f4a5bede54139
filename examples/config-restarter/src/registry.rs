//! A registry outside of the cluster: told which revision of a service runs, and when it is gone.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A call to the registry in progress.
pub type Call<'a> = Pin<Box<dyn Future<Output = Result<(), RegistryError>> + Send + 'a>>;

/// The client of a registry. Both calls may be repeated: the second one changes nothing.
pub trait Registry: Send + Sync {
    /// Says that the service runs at this revision.
    fn register<'a>(&'a self, service: &'a str, revision: &'a str) -> Call<'a>;

    /// Says that the service is gone; one that is not known is gone already.
    fn unregister<'a>(&'a self, service: &'a str) -> Call<'a>;
}

/// The registry did not answer, or said no.
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

/// A registry in memory.
#[derive(Default)]
pub struct InMemoryRegistry(Mutex<BTreeMap<String, String>>);

impl InMemoryRegistry {
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
