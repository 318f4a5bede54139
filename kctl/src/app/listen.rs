//! Listens on the address of a flag, and logs the address.

use kctl_runtime::{manager::serve::bind, reconcile::Result};
use tokio::net::TcpListener;

/// Listens on the address of a flag, and logs the address with the port that the system chose for port 0.
///
/// Returns `None` for `0` and without an address.
///
/// # Errors
/// The address is invalid, in use or not permitted.
pub(super) async fn listen(flag: &'static str, address: Option<&str>, endpoint: &str) -> Result<Option<TcpListener>> {
    let listener = bind(flag, address.unwrap_or_default()).await?;
    if let Some(address) = listener.as_ref().and_then(|listener| listener.local_addr().ok()) {
        tracing::info!(%address, "serving {endpoint}");
    }
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::{super::log::tests::capture_logs, *};

    #[test]
    fn bound_address_is_logged_with_its_port() {
        let messages = capture_logs(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
            runtime.block_on(async {
                for (address, is_bound) in [(Some("127.0.0.1:0"), true), (Some("0"), false), (None, false)] {
                    let listener = listen("--metrics-bind-address", address, "metrics").await.unwrap();
                    assert_eq!(listener.is_some(), is_bound, "{address:?}");
                }
            });
        });
        let [message] = messages.as_slice() else { panic!("{messages:?}") };
        assert_eq!(message["message"], "serving metrics");
        let address: SocketAddr = message["address"].as_str().unwrap().parse().unwrap();
        assert!(address.port() > 0, "{message}");
    }
}
