//! The bounds of connections, which [`Default`] sets.

use std::time::Duration;

/// Bounds of connections.
///
/// [`Default`] has the values that [`builder`](super::builder) documents. Tests pass shorter ones.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Streams of one connection. kube-apiserver allows 100 (`--http2-max-streams-per-connection`), common
    /// proxies 100 to 250.
    pub(super) streams: usize,
    /// Silence after which a connection gets a ping.
    pub(super) ping_every: Duration,
    /// Time for the response to a ping; the connection is closed after it.
    pub(super) ping_within: Duration,
    /// A watch without a response for this time, on a connection with others, was one too many for the server.
    pub(super) response_within: Duration,
    /// Longest idle time of an HTTP/1.1 connection. It may be dead, and a lost write cannot be repeated.
    pub(super) reuse_within: Duration,
    /// A GET over a reused connection that has no response within this time is sent again over a new one.
    pub(super) first_byte_within: Duration,
    /// Shortest time between two runs of a plugin, so that a failing one does not run for each request.
    pub(super) plugin_every: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            streams: 80,
            ping_every: seconds(30),
            ping_within: seconds(15),
            response_within: seconds(5),
            reuse_within: seconds(5),
            first_byte_within: seconds(5),
            plugin_every: seconds(5),
        }
    }
}
