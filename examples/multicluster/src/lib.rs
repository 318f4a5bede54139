//! The flow of a multi-cluster control plane, one file a controller:
//!
//! ```text
//! template + PropagationPolicy ──detector──▶ ResourceBinding ──scheduler──▶ its clusters ──works──▶ Work, one a cluster
//!      ▲                                          │                             OverridePolicy ──┘       │
//!      └────────── status ◀──aggregation──────────┴──────────────◀ status ◀──────────────────── execution ┘
//!                                                                                                  │
//! Cluster ◀──members── is it there?                                                     objects of the member
//! ```

mod aggregation;
mod clusters;
mod detector;
mod execution;
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

/// The program.
pub fn app() -> App {
    clusters::connect(controllers().dev_objects(include_str!("../fleet.yaml")))
}

/// The same without the members: tests bring their own.
pub fn controllers() -> App {
    App::new("multicluster")
        .controller::<members::members>()
        .controller::<policies::policies>()
        .controller::<overrides::overrides>()
        .controller::<detector::detector>()
        .controller::<scheduler::scheduler>()
        .controller::<works::works>()
        .controller_with(|_env| async { Ok(execution::OnMember1) })
        .controller_with(|_env| async { Ok(execution::OnMember2) })
        .controller::<aggregation::aggregation>()
}
