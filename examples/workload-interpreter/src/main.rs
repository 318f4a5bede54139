//! The webhook program. `run` serves the webhook, and `generate-manifests` prints its registration for Karmada.

#[tokio::main]
async fn main() -> kctl::Result<()> {
    workload_interpreter::app().main().await
}
