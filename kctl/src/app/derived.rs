//! Keeps definitions that were made from types: a kind with a pod template takes seconds of an unoptimized program, and each test
//! starts the same app anew.

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

/// Sets of kinds whose definitions are kept. At the bound all are forgotten, and made again when they are asked for.
const KEPT_MAX: usize = 64;

/// Names the types of some kinds: a function makes the same definition each time.
type Types = Vec<(fn() -> CustomResourceDefinition, Option<fn() -> Value>)>;
type Kept = Arc<Mutex<Option<Vec<CustomResourceDefinition>>>>;

static KEPT: LazyLock<Mutex<HashMap<Types, Kept>>> = LazyLock::new(Mutex::default);

/// Returns the definitions of kinds, which are made once in a process.
///
/// # Errors
/// As [`manifest::definitions`]; what failed is made again.
pub(super) fn definitions(kinds: &[KindSpec]) -> Result<Vec<CustomResourceDefinition>> {
    let mut types: Types = kinds.iter().map(|kind| (kind.crd, kind.schema)).collect();
    types.sort_unstable();
    types.dedup();
    let kept = {
        let mut all = KEPT.lock();
        if all.len() >= KEPT_MAX && !all.contains_key(&types) {
            all.clear();
        }
        all.entry(types).or_default().clone()
    };
    // Held while they are made: another test that asks for the same waits instead of making them, too.
    let mut kept = kept.lock();
    if let Some(definitions) = &*kept {
        return Ok(definitions.clone());
    }
    let definitions = manifest::definitions(kinds, Descriptions::All)?;
    *kept = Some(definitions.clone());
    Ok(definitions)
}
