//! Functions that an API server asks before it stores an object: `#[admission(validate)]` and `#[admission(mutate)]`.
//!
//! ```
//! use kctl::prelude::*;
//!
//! /// A Deployment without a number of replicas gets two.
//! #[admission(mutate)]
//! fn two_replicas(deployment: &mut Deployment) {
//!     deployment.spec.replicas.get_or_insert(2);
//! }
//!
//! /// Nobody runs more than ten, but for those who may do everything.
//! #[admission(validate, failure_policy = Ignore)]
//! fn few_replicas(deployment: &Deployment, request: &Admission<Deployment>) -> Result<()> {
//!     let replicas = deployment.spec.replicas.unwrap_or(1);
//!     if replicas > 10 && !request.user.groups.iter().any(|group| group == "system:masters") {
//!         return Err(Denial::field("spec.replicas", replicas, "must be at most 10").into());
//!     }
//!     if replicas == 1 {
//!         request.warn("one replica is none while it is replaced");
//!     }
//!     Ok(())
//! }
//!
//! let app = App::new("web").admission::<(two_replicas, few_replicas)>();
//! ```
//!
//! The guide has the [options and the rest](https://github.com/kctl-rs/kctl/blob/main/guide/webhooks.md).

pub use kctl_webhook::admission::*;

/// Names used by generated code. Not part of the API: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use std::{result::Result::Ok, string::String, vec::Vec};

    pub use kctl_runtime::__private::{CrdProbe, HasCrd, HasSchema, NoCrd};

    pub use kctl_webhook::{
        About, Definition,
        admission::{Action, Admits, FailurePolicy, MatchPolicy, Operation, Options, Reinvocation, Rule, SideEffects},
    };

    use kctl_runtime::reconcile::Error;
    use kctl_webhook::admission::Denial;

    /// What an admission function may return: nothing, or a `Result` of nothing.
    #[diagnostic::on_unimplemented(
        message = "an admission function returns nothing, or a `Result<()>`",
        label = "not `()` and not `Result<()>`",
        note = "help: write `-> Result<()>`, and refuse by `Err(Denial::because(\"…\").into())`",
        note = "code: K0110"
    )]
    pub trait IsAdmitted {
        fn answer(self) -> Result<(), Denial>;
    }

    impl IsAdmitted for () {
        fn answer(self) -> Result<(), Denial> {
            Ok(())
        }
    }

    #[diagnostic::do_not_recommend]
    impl<E: Into<Error>> IsAdmitted for Result<(), E> {
        fn answer(self) -> Result<(), Denial> {
            self.map_err(|error| denied(&error.into()))
        }
    }

    /// An error as a refusal: one that is a refusal, or the answer of an API server, is handed on; any other says why not.
    fn denied(error: &Error) -> Denial {
        if let Some(denial) = error.find::<Denial>() {
            return denial.clone();
        }
        if let Some(kube::Error::Api(status)) = error.find::<kube::Error>() {
            return Denial::of_status(status.code, &status.reason, &error.to_string());
        }
        Denial::because(error.to_string())
    }
}
