//! A cache of CRDs that were derived from types.
//!
//! Deriving the CRD of a kind with a pod template takes seconds in an unoptimized program, and each
//! test starts the same app again.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kctl_runtime::{
    manifest::{self, Descriptions, KindSpec},
    reconcile::Result,
};
use parking_lot::Mutex;
use serde_json::Value;

/// Maximum number of cached sets of kinds. At the bound the cache is cleared.
const KEPT_MAX: usize = 64;

/// Identifies a set of kinds by the functions that derive their CRDs: a function returns the same
/// CRD each time.
type Types = Vec<(fn() -> CustomResourceDefinition, Option<fn() -> Value>)>;
type Kept = Arc<Mutex<Option<Vec<CustomResourceDefinition>>>>;

static KEPT: LazyLock<Mutex<HashMap<Types, Kept>>> = LazyLock::new(Mutex::default);

/// Returns the CRDs of kinds, derived once per process.
///
/// # Errors
/// As [`manifest::definitions`]. An error is not cached.
pub(super) fn definitions(kinds: &[KindSpec]) -> Result<Vec<CustomResourceDefinition>> {
    let mut types: Types = kinds.iter().map(|kind| (kind.crd, kind.schema)).collect();
    types.sort_unstable();
    types.dedup();
    let cached = {
        let mut all = KEPT.lock();
        if all.len() >= KEPT_MAX && !all.contains_key(&types) {
            all.clear();
        }
        let cached = all.entry(types).or_default().clone();
        debug_assert!(all.len() <= KEPT_MAX, "the cache is cleared at the bound");
        cached
    };
    // Held while the CRDs are generated, so that a concurrent test of the same kinds waits instead of generating them
    // again.
    let mut cached = cached.lock();
    if let Some(definitions) = &*cached {
        return Ok(definitions.clone());
    }
    let definitions = manifest::definitions(kinds, Descriptions::All)?;
    *cached = Some(definitions.clone());
    Ok(definitions)
}
