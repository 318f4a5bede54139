//! How long after its write an event arrives: objects carry the time of their write.

use std::sync::{LazyLock, Mutex, PoisonError};

use tokio::time::Instant;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// What marks the time in the text of an event.
const MARK: &[u8] = b"\"stamp\":\"";

/// Now, as the text that goes into an object.
pub(crate) fn stamp() -> String {
    START.elapsed().as_micros().to_string()
}

/// What has been measured, in milliseconds.
#[derive(Default)]
pub(crate) struct Lags(Mutex<Vec<f64>>);

impl Lags {
    fn add(&self, lag: f64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(lag);
    }

    /// The lag that this part of the events do not exceed.
    pub(crate) fn at(&self, part: f64) -> f64 {
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

/// Takes whole lines out of what has arrived; how many of them are events of stamped objects.
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
