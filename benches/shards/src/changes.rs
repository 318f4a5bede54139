//! Changes of primaries at a constant rate, and the times until they are reconciled.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kctl::kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep},
};

use crate::{
    Failure,
    journal::{Journals, between, now},
    stage::{Stage, name},
};

/// Maximum number of change requests in flight. A slow server therefore lowers the actual rate, which is printed.
const CHANGES_MAX: usize = 64;

/// A change that was sent.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    /// The number of the primary.
    group: usize,
    /// `spec.change`, which the replica copies to its journal.
    change: i64,
    /// Time just before the request, in nanoseconds since 1970.
    at: u64,
}

/// A task that changes one primary after another at a constant rate.
///
/// Late ticks are caught up immediately. So the rate is the option's unless [`CHANGES_MAX`] requests are in
/// flight.
pub(crate) struct Changes {
    /// Ends only on an error or when aborted.
    task: tokio::task::JoinHandle<Result<(), Failure>>,
    /// The accepted changes so far.
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Changes {
    /// Starts the changes of `n_groups` primaries, `rate` per second. The first one is numbered `last + 1`, and numbers only grow.
    pub(crate) fn start(stage: &Stage, n_groups: usize, rate: u64, last: i64) -> Self {
        let (groups, sent) = (stage.groups.clone(), Arc::new(Mutex::new(Vec::new())));
        let noted = sent.clone();
        let task = tokio::spawn(async move {
            let mut ticks = interval(Duration::from_micros(1_000_000 / rate));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
            let (mut tasks, at_once) = (JoinSet::new(), Arc::new(Semaphore::new(CHANGES_MAX)));
            for number in 0_usize.. {
                ticks.tick().await;
                let permit = at_once.clone().acquire_owned().await?;
                let (group, change) = (number % n_groups, last + 1 + i64::try_from(number)?);
                let (groups, noted) = (groups.clone(), noted.clone());
                tasks.spawn(async move {
                    let (_permit, at) = (permit, now());
                    let patch = Patch::Merge(json!({ "spec": { "change": change } }));
                    groups.patch(&name(group), &PatchParams::default(), &patch).await?;
                    noted.lock().unwrap_or_else(PoisonError::into_inner).push(Sent { group, change, at });
                    Ok::<_, Failure>(())
                });
                while let Some(done) = tasks.try_join_next() {
                    done??;
                }
            }
            Ok(())
        });
        Self { task, sent }
    }

    /// Stops the task, and returns the changes that the server has accepted.
    pub(crate) async fn stop(self) -> Result<Vec<Sent>, Failure> {
        self.task.abort();
        // Requests in flight are dropped. They may have changed an object, but are not counted.
        if let Ok(ended) = self.task.await {
            ended?;
        }
        Ok(std::mem::take(&mut *self.sent.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Times from a change to the end of its reconcile.
#[derive(Default)]
pub(crate) struct Lags {
    /// Milliseconds, sorted.
    pub(crate) ms: Vec<f64>,
    /// Number of changes that no reconcile saw.
    pub(crate) n_lost: usize,
}

impl Lags {
    /// Returns a quantile in milliseconds: `0.99` is the time that 99 % of the changes don't exceed.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index"
        )]
        let index = (self.ms.len().saturating_sub(1) as f64 * part) as usize;
        self.ms.get(index).copied().unwrap_or(f64::NAN)
    }
}

/// Waits up to a minute until every change is reconciled, and returns the times.
pub(crate) async fn lags(stage: &mut Stage, sent: &[Sent]) -> Result<Lags, Failure> {
    let begun = now();
    loop {
        stage.journals.refresh()?;
        let lags = lags_now(&stage.journals, sent);
        if lags.n_lost == 0 || between(begun, now()) > Duration::from_secs(60) {
            return Ok(lags);
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Returns the times of the changes reconciled so far. A reconcile of a later change to the same object also counts.
fn lags_now(journals: &Journals, sent: &[Sent]) -> Lags {
    let mut lags = Lags::default();
    for Sent { group, change, at } in sent {
        let runs = journals.runs.get(&name(*group)).into_iter().flatten();
        let done = runs.filter(|run| run.is_done && run.change >= *change).filter_map(|run| run.end).min();
        match done {
            Some(end) => lags.ms.push(between(*at, end).as_secs_f64() * 1_000.0),
            None => lags.n_lost += 1,
        }
    }
    lags.ms.sort_by(f64::total_cmp);
    lags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Run;

    #[test]
    fn lag_lasts_from_request_to_end_of_reconcile() {
        let run = |change, start, end| Run { change, start, end: Some(end), is_done: true, replica: 0 };
        let mut journals = Journals::default();
        journals.runs.insert(name(0), vec![run(1, 0, 1_000_000), run(3, 4_000_000, 6_000_000)]);
        let sent = |change, at| Sent { group: 0, change, at };
        let lags = lags_now(&journals, &[sent(1, 0), sent(2, 2_000_000), sent(3, 3_000_000), sent(4, 0)]);
        assert_eq!((lags.ms.as_slice(), lags.n_lost), (&[1.0, 3.0, 4.0][..], 1));
        assert!((lags.quantile(0.5) - 3.0).abs() < f64::EPSILON);
    }
}
