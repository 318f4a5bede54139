//! Builds the declaration of a controller as data. Its types are in the `declaration` module.
//!
//! `#[controller(…)]` expands to code that builds a [`ControllerSpec`] with a [`SpecBuilder`]. Everything that depends
//! on the declaration reads this one value. The [`manager`](crate::manager) opens its caches and workers, and
//! [`manifest`](crate::manifest) prints its RBAC rules, CRDs and graph. So a role and the caches cannot disagree.
//!
//! You can build a declaration without the macro. The permission checks of the compiler are missing then:
//!
//! ```
//! use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
//! use kctl_runtime::{
//!     reconcile::Controller,
//!     spec::{ControllerSpec, RelationKind, SpecBuilder},
//! };
//!
//! struct Rollout;
//!
//! impl Controller for Rollout {
//!     type Primary = ConfigMap;
//!     type Verbs = ();
//!
//!     fn spec() -> ControllerSpec {
//!         SpecBuilder::<Self>::new("Rollout", file!(), line!())
//!             .concurrency(4)
//!             .owns::<Deployment>("owns = Deployment")
//!             .selector("app=web")
//!             .build()
//!     }
//! }
//!
//! let spec = Rollout::spec();
//! assert_eq!((spec.name.as_str(), spec.concurrency), ("configmap", 4));
//! let owned = &spec.relations[0];
//! assert_eq!((owned.declared_as, owned.kind.resource()), (RelationKind::Owned, "deployments.apps".to_owned()));
//! assert!(owned.verbs.contains(&"apply"));
//! ```

mod builder;
mod owned_by;
mod relation;

pub use builder::{Definition, PrimaryStatus, Rules, SpecBuilder};
pub use relation::Relation;

pub use crate::declaration::{
    ControllerSpec, ExtraRule, Mapper, Predicate, RelationKind, RelationSpec, declaration_problem,
};
// `kctl` and the manager check declarations by these. They are hidden, so that they are not a part of the API.
#[doc(hidden)]
pub use crate::declaration::{finalizer_problem, finalizer_warning};
