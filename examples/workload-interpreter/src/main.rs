//! The webhook as a program. `run` serves it, and `generate-manifests` prints its registration in Karmada.

#[tokio::main]
async fn main() -> kctl::Result<()> {
    workload_interpreter::app().main().await
}
