//! The inputs, steps and effects of an election.

use serde_json::Value;
use tokio::time::Instant;

use crate::{manager::lease::LeaseRequest, writer::ApiError};

/// A response or another event that drives an [`Election`](super::Election).
///
/// A driver passes one input per step, and [`Stop`](Self::Stop) at any time.
#[derive(Debug)]
pub enum Input {
    /// The Lease was read.
    Read(Value),
    /// The Lease does not exist.
    Absent,
    /// The Lease was created or updated; this is the response.
    Written(Value),
    /// The request failed, or its outcome is unknown.
    Failed(ApiError),
    /// The time of [`Step::Wait`] has come, or the driver ended the wait early, such as for a released Lease.
    WaitEnded,
    /// The process stops.
    Stop {
        /// `true` to release the Lease: no write of this process can be in flight any more.
        release: bool,
    },
}

/// The next request or wait of an [`Election`](super::Election).
///
/// [`Election::step`](super::Election::step) returns it. The step does not change until the next input.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Send this request, and give up at this instant.
    Send(LeaseRequest, Instant),
    /// Wait until this instant.
    Wait(Instant),
    /// The election is over.
    Done,
}

/// A consequence for this process.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The holder of the Lease has changed to this identity, which may be this process's; an empty string if it is free.
    Holder(String),
    /// This process leads, at least until this instant of the local clock.
    Leading(Instant),
    /// A leader had to read the Lease before it could renew it (`leader_election_slowpath_total`).
    SlowPath,
    /// This process does not lead and will not again. Comes exactly once, even if it never led.
    Ended(End),
}

/// The reason why an election is over.
///
/// ```
/// use kctl_runtime::manager::lease::End;
///
/// fn exit_code(end: &End) -> u8 {
///     match end {
///         End::Stopped | End::Released => 0,
///         End::Lost(why) => {
///             eprintln!("leader election lost: {why}");
///             1
///         }
///         _ => 1,
///     }
/// }
/// assert_eq!(exit_code(&End::Released), 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The process stopped. A Lease that it held expires.
    Stopped,
    /// The process stopped and released the Lease.
    Released,
    /// The process led and could not renew the Lease; the string is the reason.
    Lost(String),
}
