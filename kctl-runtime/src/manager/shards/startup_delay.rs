//! The wait of a replica that starts, before it asks for slots.
//!
//! Replicas often start together. The first one would take all slots, list all objects and hand most of them over again. In
//! this time its seat has an empty note of live seats, so no owner releases a slot for it.

use std::time::Duration;

use tokio::time::Instant;

use super::division::Seats;

/// Wait for another seat, from the last one that was taken or left.
const NEXT_SEAT_TIMEOUT: Duration = Duration::from_millis(200);
/// Longest wait.
const STARTUP_DELAY_MAX: Duration = Duration::from_secs(1);

/// Pure: the time is an argument. It begins when this replica has a seat, and never again after that.
#[derive(Debug, Default)]
pub(super) enum StartupDelay {
    /// This replica had no seat yet.
    #[default]
    NotBegun,
    /// It waits until `end`, or for a time after the live seats have changed, but not beyond `limit`. Invariant: `end` is
    /// not after `limit`.
    Waiting { live: Vec<u32>, end: Instant, limit: Instant },
    /// It asks for slots.
    Over,
}

impl StartupDelay {
    pub(super) fn observe(&mut self, seats: &Seats, now: Instant) {
        match self {
            Self::NotBegun if seats.own.is_some() => {
                let (end, limit) = (now + NEXT_SEAT_TIMEOUT, now + STARTUP_DELAY_MAX);
                *self = Self::Waiting { live: seats.live.clone(), end, limit };
            }
            Self::Waiting { end, .. } if now >= *end => *self = Self::Over,
            Self::Waiting { live, end, limit } if *live != seats.live => {
                live.clone_from(&seats.live);
                *end = (*limit).min(now + NEXT_SEAT_TIMEOUT);
            }
            Self::NotBegun | Self::Waiting { .. } | Self::Over => {}
        }
        if let Self::Waiting { end, limit, .. } = self {
            debug_assert!(end <= limit, "however often seats change, a replica asks for slots within a second");
        }
    }

    /// Returns `true` once this replica may ask for slots.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Over)
    }

    /// Returns when the wait ends without another change.
    pub(super) fn ends_at(&self) -> Option<Instant> {
        if let Self::Waiting { end, .. } = self { Some(*end) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_ends_after_last_seat_or_second() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let seats = |live: &[u32]| Seats { own: Some(0), live: live.to_vec(), ..Seats::default() };
        let mut startup_delay = StartupDelay::default();
        startup_delay.observe(&Seats::default(), at(0));
        assert_eq!((startup_delay.ends_at(), startup_delay.is_over()), (None, false), "it begins with the seat");
        startup_delay.observe(&seats(&[0]), at(50));
        startup_delay.observe(&seats(&[0]), at(100));
        assert_eq!(startup_delay.ends_at(), Some(at(250)));
        for (n, seat) in (1..6).enumerate() {
            startup_delay.observe(&seats(&(0..=seat).collect::<Vec<_>>()), at(240 + 190 * n as u64));
        }
        assert_eq!((startup_delay.ends_at(), startup_delay.is_over()), (Some(at(1050)), false));
        startup_delay.observe(&seats(&[0]), at(1050));
        assert_eq!((startup_delay.ends_at(), startup_delay.is_over()), (None, true));
        startup_delay.observe(&Seats::default(), at(2000));
        startup_delay.observe(&seats(&[0, 1]), at(2000));
        assert!(startup_delay.is_over(), "a replica that lost its seat does not wait again");
    }
}
