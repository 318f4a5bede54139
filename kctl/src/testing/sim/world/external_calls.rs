//! Calls of fake systems outside of the cluster, which faults can hit as they hit requests.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    future::pending,
    sync::{Arc, Weak},
};

use kctl_runtime::{
    __private_0_1::Freezer,
    reconcile::{Error, Result},
};
use tokio::time::sleep;

use super::Shared;
use crate::testing::sim::plan::ExternalFault;

thread_local! {
    /// The run of this thread. Weak, because a thread outlives the state of its run.
    static RUN: RefCell<Weak<Shared>> = const { RefCell::new(Weak::new()) };
}

/// The faults of external calls in one run.
#[derive(Default)]
pub(super) struct ExternalFaults {
    /// The index in the plan and the fault, by the number of the call.
    by_call: BTreeMap<u64, (usize, ExternalFault)>,
    /// Number of injected faults, by name.
    counts: BTreeMap<&'static str, u64>,
}

impl ExternalFaults {
    /// Sets the fault of the nth call. `index` is the fault's in the plan.
    pub(super) fn add(&mut self, nth: u64, index: usize, fault: ExternalFault) {
        self.by_call.insert(nth, (index, fault));
    }
}

/// Performs a call of a fake system outside of the cluster. A simulation can inject faults into it.
///
/// Use it in the fake cloud or registry of a test. Without it a simulation injects faults only at requests to the API
/// server, so a crash between two calls is never tried. With it the process may crash before or after the call takes
/// effect, the call may fail before or after that, or it takes five seconds. Each call is a line of the timeline.
/// `call` names the kind of the call, without the object: a test with few seeds tries the first and the last call of each
/// name first. Outside of a simulated process, for example in a step or with [`TestServer`](crate::testing::TestServer), it only
/// runs `effect`.
///
/// ```
/// use std::{cell::RefCell, collections::BTreeMap};
/// use kctl::{prelude::*, testing::{Scenario, Sim, external}};
///
/// thread_local! {
///     /// The buckets of a cloud, with their tags.
///     static BUCKETS: RefCell<BTreeMap<String, bool>> = const { RefCell::new(BTreeMap::new()) };
/// }
///
/// /// Creates a bucket for each `ConfigMap`, and tags it only then.
/// #[controller]
/// async fn buckets(config: Arc<ConfigMap>, _cx: Context<buckets>) -> Result<Action> {
///     let name = config.name_any();
///     if !BUCKETS.with_borrow(|buckets| buckets.contains_key(&name)) {
///         external("create the bucket", || BUCKETS.with_borrow_mut(|buckets| buckets.insert(name.clone(), false))).await?;
///         external("tag the bucket", || BUCKETS.with_borrow_mut(|buckets| buckets.insert(name.clone(), true))).await?;
///     }
///     Ok(Action::await_change())
/// }
///
/// let scenario = Scenario::new(|| App::new("buckets").controller::<buckets>())
///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}")
///     .settled("buckets have tags", |_snapshot| match BUCKETS.with_borrow(|buckets| buckets.values().all(|tagged| *tagged)) {
///         true => Ok(()),
///         false => Err("one has none".into()),
///     });
/// let report = Sim::single_faults().run(&scenario)?;
/// let failure = report.failure().expect("a crash between the two calls leaves the bucket without a tag");
/// assert_eq!(failure.checker(), "buckets have tags");
/// assert!(failure.faults()[0].contains("call 1 (create the bucket)"), "{failure}");
/// # Ok::<(), kctl::Error>(())
/// ```
///
/// # Errors
/// A fault makes the call fail. It may have taken effect nevertheless.
///
/// # Cancel safety
/// The effect happens at once or not at all. A fault may delay it; dropping the future before then keeps it from happening.
pub async fn external<T>(call: &str, effect: impl FnOnce() -> T) -> Result<T> {
    let Some((run, process)) = simulated_process() else { return Ok(effect()) };
    let Some(connection) = run.connection(&process) else {
        // Tasks of a process that has ended may be polled once more.
        drop(run);
        return pending().await;
    };
    let fault = run.begin_external(&process, call);
    // The state of the run must not outlive it in a task that waits indefinitely.
    drop(run);
    match fault {
        None => Ok(effect()),
        Some(ExternalFault::Slow(time)) => {
            sleep(time).await;
            Ok(effect())
        }
        Some(ExternalFault::Fails) => Err(call_error(call)),
        Some(ExternalFault::FailsAfter) => {
            drop(effect());
            Err(call_error(call))
        }
        Some(ExternalFault::CrashBefore) => {
            connection.disconnect();
            pending().await
        }
        Some(ExternalFault::CrashAfter) => {
            drop(effect());
            connection.disconnect();
            pending().await
        }
    }
}

fn call_error(call: &str) -> Error {
    Error::from(format!("{call}: failed by a fault on purpose"))
}

/// Returns the run of this thread with the name of the process whose task is polled now.
fn simulated_process() -> Option<(Arc<Shared>, Arc<str>)> {
    let run = RUN.with_borrow(Weak::upgrade)?;
    Some((run, Freezer::current_process()?))
}

impl Shared {
    /// Makes this the run of its thread.
    pub(super) fn enter(self: &Arc<Self>) {
        RUN.set(Arc::downgrade(self));
    }

    /// Returns the number of faults that were injected into external calls, by name.
    pub(in crate::testing::sim) fn external_counts(&self) -> BTreeMap<&'static str, u64> {
        self.externals.lock().counts.clone()
    }

    /// Records an external call. Returns its fault.
    fn begin_external(&self, process: &str, call: &str) -> Option<ExternalFault> {
        let nth = {
            let mut points = self.points.lock();
            points.externals.push(call.to_owned());
            points.externals.len() as u64
        };
        self.log(process, format!("calls: {call}"));
        let (index, fault) = {
            let mut externals = self.externals.lock();
            let (index, fault) = externals.by_call.remove(&nth)?;
            *externals.counts.entry(fault.name()).or_default() += 1;
            (index, fault)
        };
        let mut begins = self.fault_targets.begins(index);
        begins();
        self.fault_targets.record(call);
        self.log("fault", format!("{call} of {process}: {fault}"));
        Some(fault)
    }
}
