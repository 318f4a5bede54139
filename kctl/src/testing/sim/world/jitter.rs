//! Delays some requests and responses of the app a little, so that reconciles of different keys meet in other orders.
//!
//! Requests take no simulated time, and tasks run in the order in which they were woken. Without jitter two reconciles
//! that begin together remain in step in each run.

use std::time::Duration;

use kctl_apiserver::faults::{RequestFault, RequestSummary, Rule};

use super::Shared;
use crate::testing::sim::checks::{is_app, is_bookkeeping};

/// The delays. They are primes, so that several of them rarely end together.
const DELAYS: [RequestFault; 2] =
    [RequestFault::Delay(Duration::from_millis(7)), RequestFault::DelayResponse(Duration::from_millis(13))];
/// The probability of each of them for one request, in thousandths. The first one that applies decides, so 30 % of the
/// requests and 21 % of the responses are late.
const PER_MILLE: u16 = 300;

/// Returns `true` for a request of a reconcile. Lists and watches fill caches: their delays are separate faults.
fn is_delayed(request: &RequestSummary) -> bool {
    let fills_cache = ["list", "watch"].contains(&request.verb);
    is_app(&request.client) && !fills_cache && !is_bookkeeping(&request.group, &request.resource)
}

impl Shared {
    /// Adds the delays. The rules come after the rules of the plan's other faults, which decide first.
    pub(super) fn delay_some_requests(&self) {
        for delay in DELAYS {
            self.faults.add(Rule::request(delay, is_delayed).per_mille(PER_MILLE));
        }
    }
}
