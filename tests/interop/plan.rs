//! A seeded fault plan for programs of other projects: each fault has a probability and a maximum number.

use std::time::Duration;

use kctl_apiserver::faults::{EventFault, Faults, Moment, RequestFault, RequestSummary, Rule};

/// Name of the client that drives the test. Its requests never fail.
pub(crate) const DRIVER: &str = "driver";
/// Maximum number of faults per rule, after which the program must recover.
const TIMES_MAX: u64 = 12;
/// Minimum number of injected faults, so that a test proves something.
const N_FAULTS_MIN: u64 = 5;

/// Returns the fault plan of a seed.
pub(crate) fn plan(seed: u64) -> Faults {
    let faults = Faults::seeded(seed);
    let reject = |code, moment| RequestFault::Reject { code, retry_after: None, moment };
    let too_many = RequestFault::Reject { code: 429, retry_after: Some(1), moment: Moment::Before };
    let reads: &[(RequestFault, u16)] = &[
        (reject(500, Moment::Before), 60),
        (RequestFault::Reset(Moment::Before), 40),
        (RequestFault::Half, 60),
        (too_many, 40),
        (RequestFault::Delay(Duration::from_millis(300)), 60),
    ];
    let writes: &[(RequestFault, u16)] = &[
        (reject(500, Moment::After), 60),
        (reject(409, Moment::Before), 60),
        (RequestFault::Reset(Moment::After), 60),
        (RequestFault::Reset(Moment::Before), 40),
        (RequestFault::Half, 40),
        (RequestFault::DelayResponse(Duration::from_millis(300)), 60),
    ];
    for (fault, per_mille) in reads {
        add(&faults, *fault, *per_mille, |request| !request.is_write());
    }
    for (fault, per_mille) in writes {
        // Creates of Secrets are excluded: a retry would fail because the name exists, which is not the client's fault.
        add(&faults, *fault, *per_mille, |request| {
            request.is_write() && (request.verb, request.resource.as_str()) != ("create", "secrets")
        });
    }
    for (fault, per_mille) in [
        (EventFault::Close, 40),
        (EventFault::Expire, 30),
        (EventFault::Repeat, 80),
        (EventFault::Hold(Duration::from_millis(500)), 30),
        (EventFault::Skip(Duration::from_millis(500)), 30),
    ] {
        faults.add(Rule::event(fault, |change| change.client != DRIVER).per_mille(per_mille).times(TIMES_MAX));
    }
    faults
}

fn add(faults: &Faults, fault: RequestFault, per_mille: u16, picks: impl Fn(&RequestSummary) -> bool + Send + 'static) {
    // Leases are excluded: a leader that can't renew its Lease rightly exits, which another test covers.
    let may =
        move |request: &RequestSummary| request.client != DRIVER && request.resource != "leases" && picks(request);
    faults.add(Rule::request(fault, may).per_mille(per_mille).times(TIMES_MAX));
}

/// Checks that enough faults were injected.
pub(crate) fn assert_acted(faults: &Faults) {
    let counts = faults.counts();
    assert!(counts.values().sum::<u64>() >= N_FAULTS_MIN, "hardly anything went wrong: {counts:?}");
}
