//! Measures the lag of watch events: each object carries the time of its write.
//!
//! Watchers search the raw bytes for the stamp instead of decoding JSON, because a hundred decoding watchers would take
//! more CPU than the server. The lags of all watchers are collected in one list, and its quantiles are reported.

use std::sync::{LazyLock, Mutex, PoisonError};

use tokio::time::Instant;

/// The origin of all stamps. Writer and watchers run in one process, so they share a monotonic clock.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The bytes before the stamp in the JSON of an event.
const MARK: &[u8] = b"\"stamp\":\"";

/// Returns a stamp for an object: the microseconds since [`START`].
pub(crate) fn stamp() -> String {
    START.elapsed().as_micros().to_string()
}

/// Measured lags in milliseconds.
#[derive(Default)]
pub(crate) struct Lags(Mutex<Vec<f64>>);

impl Lags {
    fn add(&self, lag: f64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(lag);
    }

    /// Returns a quantile: `0.99` is the lag that 99 % of the events don't exceed. Returns NaN if there are no events.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let mut lags = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lags.sort_by(f64::total_cmp);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index"
        )]
        let index = ((lags.len().saturating_sub(1)) as f64 * part) as usize;
        lags.get(index).copied().unwrap_or(f64::NAN)
    }
}

/// Splits the received bytes into complete lines, and measures their lags. Returns the number of events with a stamp.
///
/// An incomplete line remains in `rest`. Bookmarks have no stamp.
pub(crate) fn stamps(rest: &mut Vec<u8>, arrived: &[u8], lags: &Lags) -> usize {
    rest.extend_from_slice(arrived);
    let Some(end) = memchr::memrchr(b'\n', rest) else { return 0 };
    let now = START.elapsed();
    let (mut seen, mut left) = (0, &rest[..=end]);
    while let Some(line_end) = memchr::memchr(b'\n', left) {
        let (line, others) = left.split_at(line_end + 1);
        left = others;
        let Some(at) = memchr::memmem::find(line, MARK) else { continue };
        let digits = line[at + MARK.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        let written = digits.fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'));
        lags.add(now.saturating_sub(std::time::Duration::from_micros(written)).as_secs_f64() * 1_000.0);
        seen += 1;
    }
    rest.drain(..=end);
    seen
}
