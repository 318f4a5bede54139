//! Accepts connections, and waits after a failed accept.

use std::time::Duration;

use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};

/// Wait after a failed accept, which mostly means too many open files. Without it, the loop would use a whole core.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Returns the next connection of a listener. A failed accept is logged, and repeated after 100 ms.
///
/// # Cancel safety
/// Dropping the future loses no connection.
pub async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((socket, _peer)) => return socket,
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}
