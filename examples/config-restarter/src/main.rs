//! The program, with an in-memory registry instead of a real one. The operator is in the library.
//!
//! `dev -f examples/config-restarter/web.yaml` runs it without a cluster.

use std::sync::Arc;

use config_restarter::{InMemoryRegistry, app};

#[tokio::main(flavor = "current_thread")]
async fn main() -> kctl::Result<()> {
    app(Arc::new(InMemoryRegistry::default())).main().await
}
