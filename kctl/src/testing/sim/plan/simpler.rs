//! Simpler faults for a plan that fails: they are shorter, or have less to read about.

use std::time::Duration;

use kctl_apiserver::faults::Moment;
use kctl_runtime::__private_0_1::ThawOrder;

use super::{Fault, Freeze, StaleServer, TimedFault, WriteFault};

/// Seconds of a simple clock jump.
const JUMP: i64 = 60;

impl Fault {
    /// Returns simpler faults that may reveal the same, from the simplest one on. None of them leads back to this one.
    pub(in crate::testing::sim) fn simpler(&self) -> Vec<Self> {
        match self {
            Self::Write { nth, what } => {
                simpler_writes(what).into_iter().map(|what| Self::Write { nth: *nth, what }).collect()
            }
            Self::At { time, what } => {
                simpler_timed(*what).into_iter().map(|what| Self::At { time: *time, what }).collect()
            }
            Self::Read { .. }
            | Self::Event { .. }
            | Self::External { .. }
            | Self::Jitter { .. }
            | Self::AtStep { .. } => Vec::new(),
        }
    }
}

/// Returns a crash instead of one with a special restart, and a stale server instead of an outdated one.
fn simpler_writes(fault: &WriteFault) -> Vec<WriteFault> {
    let crash = |moment: Moment| WriteFault::Crash { moment, behind: None };
    match fault {
        WriteFault::Crash { moment, behind: Some(behind) } => {
            let stale = StaleServer { is_outdated: false, ..behind.clone() };
            let on_stale = behind.is_outdated.then_some(WriteFault::Crash { moment: *moment, behind: Some(stale) });
            std::iter::once(crash(*moment)).chain(on_stale).collect()
        }
        WriteFault::Outage(moment) => vec![crash(*moment)],
        WriteFault::CrashLate(_) => vec![crash(Moment::After)],
        WriteFault::Crash { behind: None, .. } | WriteFault::Fails(_) => Vec::new(),
    }
}

/// Returns a crash instead of an orderly end, and shorter times.
fn simpler_timed(fault: TimedFault) -> Vec<TimedFault> {
    match fault {
        TimedFault::Stop { instance, .. } | TimedFault::SlowLists { instance, .. } => {
            vec![TimedFault::Crash { instance }]
        }
        TimedFault::RollingUpdate => vec![TimedFault::Crash { instance: 0 }],
        TimedFault::Partition { instance, length } => {
            half(length).map(|length| TimedFault::Partition { instance, length }).into_iter().collect()
        }
        TimedFault::Freeze(freeze) => {
            let shorter = half(freeze.length).map(|length| Freeze { length, ..freeze });
            let in_order = Freeze { order: ThawOrder::AsWoken, ..freeze };
            let in_order = (freeze.order == ThawOrder::Reversed).then_some(in_order);
            in_order.into_iter().chain(shorter).map(TimedFault::Freeze).collect()
        }
        TimedFault::ClockJump { instance, seconds } if seconds.abs() > JUMP => {
            vec![TimedFault::ClockJump { instance, seconds: JUMP * seconds.signum() }]
        }
        TimedFault::Crash { .. }
        | TimedFault::ClockJump { .. }
        | TimedFault::Lapse(_)
        | TimedFault::LeaseDeleted { .. } => Vec::new(),
    }
}

/// Returns half of a time in whole seconds; `None` below a second.
fn half(time: Duration) -> Option<Duration> {
    let seconds = time.as_secs() / 2;
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simplest_fault_comes_first() {
        let behind = |is_outdated| Some(StaleServer { cluster: "".into(), revision: 7, is_outdated });
        let crash = |behind| Fault::Write { nth: 2, what: WriteFault::Crash { moment: Moment::Before, behind } };
        let at = |what| Fault::At { time: Duration::from_secs(9), what };
        let freeze = |seconds, order| {
            at(TimedFault::Freeze(Freeze { instance: None, length: Duration::from_secs(seconds), order }))
        };
        let jump = |seconds| at(TimedFault::ClockJump { instance: 1, seconds });
        let partition = |millis| at(TimedFault::Partition { instance: 0, length: Duration::from_millis(millis) });
        let cases = [
            (crash(behind(true)), vec![crash(None), crash(behind(false))]),
            (crash(behind(false)), vec![crash(None)]),
            (crash(None), Vec::new()),
            (at(TimedFault::RollingUpdate), vec![at(TimedFault::Crash { instance: 0 })]),
            (freeze(25, ThawOrder::Reversed), vec![freeze(25, ThawOrder::AsWoken), freeze(12, ThawOrder::Reversed)]),
            (freeze(1, ThawOrder::AsWoken), Vec::new()),
            (jump(-3_600), vec![jump(-60)]),
            (jump(60), Vec::new()),
            (partition(5_900), vec![partition(2_000)]),
            (partition(1_999), Vec::new()),
        ];
        for (fault, expected) in cases {
            assert_eq!(fault.simpler(), expected, "{fault}");
        }
    }

    /// A plan is simplified as long as it fails, so a circle would never end.
    #[test]
    fn simpler_faults_come_to_an_end() {
        let length = Duration::from_secs(30);
        let freeze = TimedFault::Freeze(Freeze { instance: None, length, order: ThawOrder::Reversed });
        let mut fault = Fault::At { time: Duration::ZERO, what: freeze };
        let mut n_steps = 0;
        while let Some(simpler) = fault.simpler().pop() {
            fault = simpler;
            n_steps += 1;
        }
        assert_eq!(n_steps, 5, "30 s, 15 s, 7 s, 3 s, 1 s, and the order");
    }
}
