//! CRDs that can't be generated.

use kctl::{manifest::Descriptions, prelude::*};
use kctl_runtime::manifest;

use crate::world::app;

/// Two variants give one field two types.
#[resource(group = "example.com", version = "v1", kind = "Odd", namespaced)]
pub(crate) struct OddSpec {
    shape: Shape,
}

/// Round or named.
#[schema]
#[serde(tag = "type")]
pub(crate) enum Shape {
    /// By number.
    Round { size: u32 },
    /// By name.
    Named { size: String },
}

/// Reconciles nothing.
#[controller]
async fn odd(_odd: Arc<Odd>, _cx: Context<odd>) -> Result<Action> {
    Ok(Action::await_change())
}

#[test]
fn contradictory_schema_is_an_error_with_its_field() {
    let made = manifest::crd_manifests(&app().controller::<odd>().kinds(), Descriptions::default());
    let error = made.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("Odd") && error.contains("size"), "{error}");
}
