//! Admission webhooks as functions: [`#[admission(validate)]`](macro@crate::admission) and
//! `#[admission(mutate)]`.
//!
//! An API server calls admission webhooks after it has authenticated and authorized a request, and
//! before it stores the object. It calls the mutating ones, validates the result against the
//! schema, and then calls the validating ones. kctl turns a function into such a webhook. It
//! decodes the `AdmissionReview`, calls the function with the typed object, and answers with a
//! patch or a rejection.
//!
//! The attribute declares when the function is called. [`App::admission`](crate::App::admission)
//! adds it to the program. From then on `dev` and tests call it on the embedded API server, `run`
//! serves it, and `generate-manifests` prints the webhook configurations.
//!
//! ```
//! use kctl::prelude::*;
//!
//! /// Sets two replicas where a Deployment names no number.
//! #[admission(mutate)]
//! fn two_replicas(deployment: &mut Deployment) {
//!     deployment.spec.replicas.get_or_insert(2);
//! }
//!
//! /// Allows at most ten replicas, except for cluster administrators.
//! #[admission(validate, failure_policy = Ignore)]
//! fn few_replicas(deployment: &Deployment, request: &Admission<Deployment>) -> Result<()> {
//!     let replicas = deployment.spec.replicas.unwrap_or(1);
//!     if replicas > 10 && !request.user.groups.iter().any(|group| group == "system:masters") {
//!         return Err(Denial::field("spec.replicas", replicas, "must be at most 10").into());
//!     }
//!     if replicas == 1 {
//!         request.warn("one replica is unavailable during a rollout");
//!     }
//!     Ok(())
//! }
//!
//! let app = App::new("web").admission::<(two_replicas, few_replicas)>();
//! ```
//!
//! # Responses
//!
//! | the function returns | the client gets |
//! |---|---|
//! | `Ok(())` | the request proceeds |
//! | [`Denial::because`] | 403 Forbidden with the message |
//! | [`Denial::field`], [`Invalid`] | 422 Invalid with a cause for each field, like the API server's own validation errors |
//! | a `kube::Error` of another API call | the status of that API server |
//! | any other error | 403 Forbidden with its message |
//! | a panic | 500, with the location of the function |
//!
//! # Test it
//!
//! A function is called like any other one. To see it behind an API server, run the app on a test
//! server:
//!
//! ```
//! use kctl::{kube::{Api, api::PostParams}, prelude::*, testing::TestServer};
//!
//! /// Requires the label `owner`.
//! #[admission(validate)]
//! fn has_an_owner(config: &ConfigMap) -> Result<()> {
//!     match config.labels().get("owner") {
//!         Some(_) => Ok(()),
//!         None => Err(Denial::because("add the label `owner`").into()),
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> kctl::Result<()> {
//! let server = TestServer::start(App::new("owners").admission::<has_an_owner>()).await?;
//! let configs = Api::<ConfigMap>::default_namespaced(server.client());
//! let config = kctl::from_yaml("{metadata: {name: web}}").unwrap();
//! let error = configs.create(&PostParams::default(), &config).await.unwrap_err();
//! assert!(error.to_string().contains("add the label `owner`"), "{error}");
//! # Ok(())
//! # }
//! ```
//!
//! The guide has the [options, certificates and
//! metrics](https://github.com/kctl-rs/kctl/blob/main/guide/webhooks.md). A program that serves webhooks itself gets their
//! [`Routes`] from [`App::webhook_routes`](crate::App::webhook_routes), which count calls in [`Metrics`]. A program that
//! registers webhooks itself finds their configurations as values in [`kctl_webhook::admission`].

#[doc(inline)]
pub use kctl_webhook::{
    Metrics,
    admission::{Admission, Admits, Denial, Invalid, Operation, User, Webhook},
    server::Routes,
};

/// Names used by generated code. Not part of the API: it changes without notice.
#[doc(hidden)]
pub mod __private_0_1 {
    pub use std::{result::Result::Ok, string::String, vec::Vec};

    pub use kctl_runtime::__private_0_1::{CrdProbe, HasCrd, HasSchema, NoCrd};

    pub use kctl_webhook::{
        Definition, FunctionInfo,
        admission::{
            Action, Admits, FailurePolicy, MatchPolicy, Operation, Options, Reinvocation, SideEffects, Webhook,
        },
    };

    use kctl_runtime::reconcile::Error;
    use kctl_webhook::admission::{Admission, Denial};

    /// A kind that is `K` under another name: macros compare names, not types.
    #[diagnostic::on_unimplemented(
        message = "the object is a `{Self}`, and the request is about a `{K}`",
        label = "not the kind of the first parameter",
        note = "help: write `&Admission<…>` with the kind of the first parameter",
        note = "code: K0103"
    )]
    pub trait SameKind<K>: Sized {
        /// Returns the same request, with the kind of the first parameter.
        fn request(request: &Admission<Self>) -> &Admission<K>;
    }

    #[diagnostic::do_not_recommend]
    impl<K> SameKind<K> for K {
        fn request(request: &Admission<Self>) -> &Admission<K> {
            request
        }
    }

    /// Returns the request of a kind under the name that the function has for the kind.
    pub fn request_of<K: SameKind<R>, R>(request: &Admission<K>) -> &Admission<R> {
        <K as SameKind<R>>::request(request)
    }

    /// The return type of an admission function: nothing, or a `Result` of nothing.
    #[diagnostic::on_unimplemented(
        message = "an admission function returns nothing, or a `Result<()>`",
        label = "not `()` and not `Result<()>`",
        note = "help: write `-> Result<()>`, and reject by `Err(Denial::because(\"…\").into())`",
        note = "code: K0110"
    )]
    pub trait IntoAdmissionResult {
        /// Turns the result into the response.
        fn into_result(self) -> Result<(), Denial>;
    }

    impl IntoAdmissionResult for () {
        fn into_result(self) -> Result<(), Denial> {
            Ok(())
        }
    }

    #[diagnostic::do_not_recommend]
    impl<E: Into<Error>> IntoAdmissionResult for Result<(), E> {
        fn into_result(self) -> Result<(), Denial> {
            self.map_err(|error| to_denial(&error.into()))
        }
    }

    /// Returns the rejection for an error. A [`Denial`] and the status of an API server are passed
    /// on; any other error becomes the message of a 403.
    fn to_denial(error: &Error) -> Denial {
        if let Some(denial) = error.find::<Denial>() {
            return denial.clone();
        }
        if let Some(kube::Error::Api(status)) = error.find::<kube::Error>() {
            return Denial::from_status(status.code, &status.reason, &error.to_string());
        }
        Denial::because(error.to_string())
    }
}
