//! The program, with a registry in memory instead of a real one. The library has the operator.
//!
//! `dev -f examples/config-restarter/web.yaml` runs it without a cluster.

use std::sync::Arc;

use config_restarter::{InMemoryRegistry, app};

#[tokio::main(flavor = "current_thread")]
async fn main() -> kctl::Result<()> {
    app(Arc::new(InMemoryRegistry::default())).main().await
}
