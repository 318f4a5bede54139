//! The webhook that teaches Karmada the kind `Workload`.

#[tokio::main]
async fn main() -> kctl::Result<()> {
    workload_interpreter::app().main().await
}
