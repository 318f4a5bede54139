//! An interpreter of one operation.
use kctl::{karmada::prelude::*, prelude::*};

/// A site is healthy when all of its replicas are ready.
#[interpreter(op = InterpretHealth)]
pub fn is_healthy(site: &Site) -> Result<bool> {
    Ok(site.status.as_ref().is_some_and(|status| status.ready == site.spec.replicas))
}
