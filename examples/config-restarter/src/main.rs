//! Keeps pods that use a `ConfigMap`, and replaces them one at a time when its data changes.

use std::sync::Arc;

use config_restarter::{InMemoryRegistry, app};

#[tokio::main(flavor = "current_thread")]
async fn main() -> kctl::Result<()> {
    app(Arc::new(InMemoryRegistry::default())).main().await
}
