//! Describes the faults of a plan in reports and in the timeline of a run.

use std::{fmt, time::Duration};

use kctl_apiserver::faults::{EventFault, Moment, RequestFault, StaleState};
use kctl_runtime::__private_0_1::ThawOrder;

use super::{ExternalFault, Fault, Freeze, OUTAGE, SLOW_LISTS_DURATION, StaleServer, TimedFault, WriteFault};

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.describe(""))
    }
}

impl Fault {
    /// Describes the fault with the request or event that it hit in a run; `None` if it hit nothing.
    pub(in crate::testing::sim) fn describe_with_target(&self, target: Option<&str>) -> String {
        match (self, target) {
            (_, Some(target)) => self.describe(&format!(" ({target})")),
            (Self::Jitter { .. } | Self::AtStep { .. } | Self::At { .. }, None) => self.to_string(),
            (Self::Write { .. } | Self::Read { .. } | Self::Event { .. } | Self::External { .. }, None) => {
                format!("{self} (hit nothing)")
            }
        }
    }

    /// Describes the fault. `target` follows the number of the write, read or event.
    fn describe(&self, target: &str) -> String {
        match self {
            Self::Write { nth, what } => describe_write(&format!("write {nth}{target}"), what),
            Self::Read { nth, what } => format!("read {nth}{target}: {}", request(*what)),
            Self::Event { nth, what } => format!("watch event {nth}{target}: {}", event(*what)),
            Self::External { nth, what } => format!("call {nth}{target}: {what}"),
            Self::Jitter { seed } => format!("some requests and responses are 7 or 13 ms late (jitter {seed})"),
            Self::AtStep { nth } => format!("all processes are down during step {nth}"),
            Self::At { time, what } => format!("at {:.3} s: {what}", time.as_secs_f64()),
        }
    }
}

/// Describes a fault of a write, such as `write 7`.
fn describe_write(write: &str, fault: &WriteFault) -> String {
    match fault {
        WriteFault::Fails(fault) => format!("{write}: {}", request(*fault)),
        WriteFault::Crash { moment, behind } => {
            let restart = behind.as_ref().map_or_else(String::new, |behind| format!(", restart on {behind}"));
            format!("crash {} {write} took effect{restart}", moment_text(*moment))
        }
        WriteFault::CrashLate(time) => format!("crash at {write}, which arrives {time:?} later"),
        WriteFault::Outage(moment) => {
            format!("crash {} {write} took effect, restart {OUTAGE:?} later", moment_text(*moment))
        }
    }
}

impl fmt::Display for ExternalFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CrashBefore => formatter.write_str("crash before it took effect"),
            Self::CrashAfter => formatter.write_str("crash after it took effect"),
            Self::Fails => formatter.write_str("fails before it took effect"),
            Self::FailsAfter => formatter.write_str("fails after it took effect"),
            Self::Slow(time) => write!(formatter, "on its way for {time:?}"),
        }
    }
}

impl ExternalFault {
    /// Returns the short name under which injected faults are counted.
    pub(in crate::testing::sim) fn name(self) -> &'static str {
        match self {
            Self::CrashBefore | Self::CrashAfter => "crash at an external call",
            Self::Fails | Self::FailsAfter => "external call failed",
            Self::Slow(_) => "slow external call",
        }
    }
}

impl fmt::Display for TimedFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash { instance } => write!(formatter, "crash of app-{instance}"),
            Self::Stop { instance, downtime } => {
                write!(formatter, "stop of app-{instance}, which starts again {downtime:?} later")
            }
            Self::RollingUpdate => formatter.write_str("rolling update of all replicas"),
            Self::Partition { instance, length } => {
                write!(formatter, "app-{instance} does not reach the server for {length:?}")
            }
            Self::ClockJump { instance, seconds } => {
                write!(formatter, "the clock of app-{instance} jumps by {seconds} s")
            }
            Self::Freeze(freeze) => write!(formatter, "{freeze}"),
            Self::Lapse(lapse) => write!(formatter, "{lapse}"),
            Self::LeaseDeleted { slot } => write!(formatter, "the Lease of slot {slot} is deleted by hand"),
            Self::SlowLists { instance, delay } => {
                write!(formatter, "crash of app-{instance}, whose lists then {}", slow_lists(*delay))
            }
        }
    }
}

impl fmt::Display for Freeze {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, length, order } = self;
        let first = match order {
            ThawOrder::AsWoken => "first",
            ThawOrder::Reversed => "last",
        };
        match instance {
            Some(instance) => write!(formatter, "app-{instance}")?,
            None => formatter.write_str("the leader")?,
        }
        write!(formatter, " is frozen for {length:?}; the task that was woken {first} continues first")
    }
}

impl fmt::Display for StaleServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster, revision, is_outdated } = self;
        let of = if cluster.is_empty() { "" } else { " of " };
        if *is_outdated {
            write!(formatter, "a server{of}{cluster} that takes revision {revision} for the newest state")
        } else {
            write!(formatter, "a server{of}{cluster} that is behind (revision {revision})")
        }
    }
}

pub(in crate::testing::sim) fn slow_lists(delay: Duration) -> String {
    format!("take {delay:?} for {SLOW_LISTS_DURATION:?}, while its watches continue")
}

/// Returns the word for a moment relative to the effect of a write.
fn moment_text(moment: Moment) -> &'static str {
    match moment {
        Moment::Before => "before",
        Moment::After => "after",
    }
}

fn past_text(past: StaleState) -> String {
    match past {
        StaleState::Revision(revision) => format!("revision {revision}"),
        StaleState::Changes(n_changes) => format!("the state of {n_changes} changes ago"),
    }
}

pub(in crate::testing::sim) fn request(fault: RequestFault) -> String {
    match fault {
        RequestFault::Reject { code, retry_after, moment } => {
            let after = retry_after.map(|seconds| format!(" and Retry-After {seconds}")).unwrap_or_default();
            format!("rejected with {code}{after} {} it took effect", moment_text(moment))
        }
        RequestFault::Reset(moment) => format!("connection reset {} it took effect", moment_text(moment)),
        RequestFault::Half => "its response breaks off in the middle".into(),
        RequestFault::Delay(time) => format!("on its way for {time:?}"),
        RequestFault::Late(time) => format!("on its way for {time:?}, even if its client is gone"),
        RequestFault::DelayResponse(time) => format!("its response is on its way for {time:?}"),
        RequestFault::Stale { past, lag } => format!("server is behind ({}), events {lag:?} late", past_text(past)),
        RequestFault::Outdated { past, lag } => {
            format!("server takes {} for the newest state, events {lag:?} late", past_text(past))
        }
        RequestFault::Crash(moment) => format!("crash {} it took effect", moment_text(moment)),
        RequestFault::CrashLate(time) => format!("crash; it arrives {time:?} later"),
        RequestFault::Bookmarks { every, .. } => format!("a bookmark every {every:?}"),
        // The enum belongs to another crate and may grow; there, each fault has a name.
        other => kctl_apiserver::faults::Fault::Request(other).name().into(),
    }
}

pub(in crate::testing::sim) fn event(fault: EventFault) -> String {
    match fault {
        EventFault::Close => "the watch ends after it".into(),
        EventFault::Expire => "the watch expires before it".into(),
        EventFault::Hold(time) => format!("the watch pauses for {time:?} before it"),
        EventFault::Skip(_) => "skipped; only the next state is delivered".into(),
        EventFault::Repeat => "delivered twice".into(),
        other => kctl_apiserver::faults::Fault::Event(other).name().into(),
    }
}
