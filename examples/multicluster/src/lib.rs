//! A multi-cluster control plane, with one file per controller.
//!
//! ```text
//! cargo run -p multicluster -- dev --simulate-workloads
//! ```
//!
//! It shows several clusters with a type for each (`clusters.rs`), kinds that are discovered at run time, Karmada's
//! resource interpreters, and controllers that communicate through objects:
//!
//! ```text
//! template + PropagationPolicy ──detector──▶ ResourceBinding ──scheduler──▶ its clusters ──works──▶ Work, one a cluster
//!      ▲                                          │                             OverridePolicy ──┘       │
//!      └────────── status ◀──aggregation──────────┴──────────────◀ status ◀──────────────────── execution ┘
//!                                                                                                  │
//! Cluster ◀──members── does it answer?                                                  objects of the member
//! ```
//!
//! Resource interpreters read and change objects of a kind (`interpret.rs`). The program watches the control plane's
//! customizations and webhooks while it runs. The kinds of templates are unknown at compile time: `found.rs` watches a
//! kind once a policy names it.
//!
//! # Rules of the flow
//!
//! - A controller writes only its part of an object: the detector never sets `spec.clusters` of a binding, and the
//!   scheduler sets nothing else.
//! - The status of a template comes only from its works. The status of an object on a member counts once its work
//!   reports it as applied.
//! - An object on a member that did not come from a work is never changed. The work reports the conflict instead.
//! - An unreachable member keeps its works. When a reachable member leaves the fleet, its works and their objects are
//!   deleted.
//! - Dependencies of an object are placed on the same clusters as the object, and removed with it.

mod aggregation;
mod clusters;
mod detector;
mod execution;
mod found;
mod interpret;
mod kinds;
mod members;
mod overrides;
mod policies;
mod scheduler;
mod templates;
mod works;

use kctl::App;

pub use clusters::{Member1, Member2};
pub use kinds::{BindingCluster, MemberCluster, OverridePolicy, PropagationPolicy, ResourceBinding, Work, WorkStatus};

/// The name of the program and of its field manager.
const APP: &str = "multicluster";

/// Returns the program with the clients of both members.
pub fn app() -> App {
    clusters::connect(controllers().dev_objects(include_str!("../fleet.yaml")))
}

/// Returns the program without the members' clients, for tests that connect embedded API servers.
pub fn controllers() -> App {
    let rules = interpret::Rules::new();
    let app = App::new(APP)
        .controller_with(|_env| async { Ok(members::Members) })
        .controller_with(|env| async { Ok(policies::Policies { watches: env.watches }) })
        .controller::<overrides::overrides>()
        .controller::<scheduler::scheduler>();
    let app = rules.follow(app);
    let app = found::add::<detector::Detector>(app, &rules);
    let app = found::add::<works::Works>(app, &rules);
    let app = found::add::<execution::OnMember1>(app, &rules);
    let app = found::add::<execution::OnMember2>(app, &rules);
    found::add::<aggregation::Collector>(app, &rules)
}

#[cfg(test)]
mod tests {
    //! Tests that the printed roles match the permissions in the types.
    use kctl::prelude::*;

    use super::{
        MemberCluster, OverridePolicy, PropagationPolicy, ResourceBinding, Work,
        aggregation::Collector,
        clusters::{Member1, Member2},
        detector::Detector,
        execution::{OnMember1, OnMember2},
        members::Members,
        overrides::overrides,
        policies::Policies,
        scheduler::scheduler,
        works::Works,
    };

    kctl::permissions_test!(fn permissions_of_members: Members; uses Work, live(on = Member1) Namespace, live(on = Member2) Namespace);
    kctl::permissions_test!(fn permissions_of_policies: Policies; uses ResourceBinding);
    kctl::permissions_test!(fn permissions_of_overrides: overrides);
    kctl::permissions_test!(fn permissions_of_detector: Detector; owns ResourceBinding, uses PropagationPolicy);
    kctl::permissions_test!(fn permissions_of_scheduler: scheduler; uses MemberCluster);
    kctl::permissions_test!(fn permissions_of_works: Works; owns Work, uses OverridePolicy);
    kctl::permissions_test!(fn permissions_of_aggregation: Collector; uses Work, uses MemberCluster);
    kctl::permissions_test!(fn permissions_of_execution_on_member1: OnMember1; uses MemberCluster, uses(on = Member1) Namespace);
    kctl::permissions_test!(fn permissions_of_execution_on_member2: OnMember2; uses MemberCluster, uses(on = Member2) Namespace);
}
