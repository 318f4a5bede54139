//! The flow of a multi-cluster control plane, one file a controller:
//!
//! ```text
//! template + PropagationPolicy ──detector──▶ ResourceBinding ──scheduler──▶ its clusters ──works──▶ Work, one a cluster
//!      ▲                                          │                             OverridePolicy ──┘       │
//!      └────────── status ◀──aggregation──────────┴──────────────◀ status ◀──────────────────── execution ┘
//!                                                                                                  │
//! Cluster ◀──members── is it there?                                                     objects of the member
//! ```
//!
//! How a kind is read and changed is a matter of interpreters (`interpret.rs`): customizations and webhooks of the control plane
//! are followed while it runs.

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

/// The name, also as a field manager.
const APP: &str = "multicluster";

/// The program.
pub fn app() -> App {
    clusters::connect(controllers().dev_objects(include_str!("../fleet.yaml")))
}

/// The same without the members: tests bring their own.
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
    //! What the roles print is what the types grant.
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

    kctl::grants_test!(fn grants_of_members: Members; uses Work, live(on = Member1) Namespace, live(on = Member2) Namespace);
    kctl::grants_test!(fn grants_of_policies: Policies; uses ResourceBinding);
    kctl::grants_test!(fn grants_of_overrides: overrides);
    kctl::grants_test!(fn grants_of_detector: Detector; owns ResourceBinding, uses PropagationPolicy);
    kctl::grants_test!(fn grants_of_scheduler: scheduler; uses MemberCluster);
    kctl::grants_test!(fn grants_of_works: Works; owns Work, uses OverridePolicy);
    kctl::grants_test!(fn grants_of_aggregation: Collector; uses Work, uses MemberCluster);
    kctl::grants_test!(fn grants_of_execution_on_member1: OnMember1; uses MemberCluster, uses(on = Member1) Namespace);
    kctl::grants_test!(fn grants_of_execution_on_member2: OnMember2; uses MemberCluster, uses(on = Member2) Namespace);
}
