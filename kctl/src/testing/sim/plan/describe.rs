//! Describes the faults of a plan in reports and in the timeline of a run.

use std::{fmt, time::Duration};

use kctl_apiserver::faults::{EventFault, Moment, RequestFault, StaleState};
use kctl_runtime::__private_0_1::ThawOrder;

use super::{Fault, Freeze, OUTAGE, SLOW_LISTS_DURATION, StaleServer, TimedFault, WriteFault};

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { nth, what: WriteFault::Fails(fault) } => {
                write!(formatter, "write {nth}: {}", request(*fault))
            }
            Self::Write { nth, what: WriteFault::Crash { moment, behind } } => {
                write!(formatter, "crash {} write {nth} took effect", moment_text(*moment))?;
                behind.as_ref().map_or(Ok(()), |behind| write!(formatter, ", restart on {behind}"))
            }
            Self::Write { nth, what: WriteFault::CrashLate(time) } => {
                write!(formatter, "crash at write {nth}, which arrives {time:?} later")
            }
            Self::Write { nth, what: WriteFault::Outage(moment) } => {
                let moment = moment_text(*moment);
                write!(formatter, "crash {moment} write {nth} took effect, restart {OUTAGE:?} later")
            }
            Self::Read { nth, what } => write!(formatter, "read {nth}: {}", request(*what)),
            Self::Event { nth, what } => write!(formatter, "watch event {nth}: {}", event(*what)),
            Self::AtStep { nth } => write!(formatter, "all processes are down during step {nth}"),
            Self::At { time, what } => {
                write!(formatter, "at {:.3} s: ", time.as_secs_f64())?;
                match what {
                    TimedFault::Crash { instance } => write!(formatter, "crash of app-{instance}"),
                    TimedFault::Stop { instance, downtime } => {
                        write!(formatter, "stop of app-{instance}, which starts again {downtime:?} later")
                    }
                    TimedFault::RollingUpdate => formatter.write_str("rolling update of all replicas"),
                    TimedFault::Partition { instance, length } => {
                        write!(formatter, "app-{instance} does not reach the server for {length:?}")
                    }
                    TimedFault::ClockJump { instance, seconds } => {
                        write!(formatter, "the clock of app-{instance} jumps by {seconds} s")
                    }
                    TimedFault::Freeze(freeze) => write!(formatter, "{freeze}"),
                    TimedFault::Lapse(lapse) => write!(formatter, "{lapse}"),
                    TimedFault::LeaseDeleted { slot } => {
                        write!(formatter, "the Lease of slot {slot} is deleted by hand")
                    }
                    TimedFault::SlowLists { instance, delay } => {
                        write!(formatter, "crash of app-{instance}, whose lists then {}", slow_lists(*delay))
                    }
                }
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
    format!("take {delay:?} for {SLOW_LISTS_DURATION:?}, while its watches go on")
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
