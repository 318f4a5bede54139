//! Functions that an API server calls before it stores an object: validating ones reject it,
//! mutating ones change it.
//!
//! A [`Webhook`] is a function with its kind and [`Options`]. [`routes`](crate::routes) serves webhooks,
//! and [`Configurations`] prints the `ValidatingWebhookConfiguration` and
//! `MutatingWebhookConfiguration` that register them. Names and paths follow kubebuilder:
//! `/validate-example-com-v1-website` and `vwebsite-v1.example.com`.
//!
//! A webhook has one of two forms. [`Webhook::object`] gets the object in its Rust type, and the
//! difference that a mutating one makes becomes a JSON patch. [`Webhook::request`] gets the request
//! alone, for subresources such as `pods/exec`, whose object is of another kind.
//!
//! ```
//! use k8s_openapi::api::apps::v1::Deployment;
//! use kctl_webhook::{FunctionInfo, admission::{Action, ClientConfig, Configurations, Options, Webhook}};
//!
//! let two_replicas = Webhook::object(
//!     FunctionInfo::new("two_replicas", file!(), line!()),
//!     Options::new(Action::Mutate),
//!     |mut deployment: Deployment, _request| async move {
//!         deployment.spec.replicas.get_or_insert(2);
//!         Ok(deployment)
//!     },
//! );
//! let client = ClientConfig::Service { namespace: "web".into(), name: "webhooks".into(), port: 443 };
//! let objects = Configurations { name: "web", client: &client, authority: None }.objects(&[two_replicas]);
//! assert_eq!(objects[0]["kind"], "MutatingWebhookConfiguration");
//! assert_eq!(objects[0]["webhooks"][0]["name"], "mdeployment-v1.apps.k8s.io");
//! ```

mod configuration;
mod denial;
mod options;
mod request;
mod respond;
mod review;
mod user;
mod webhook;

pub use self::{
    configuration::Configurations,
    denial::{Denial, Invalid},
    options::{Action, FailurePolicy, MatchPolicy, Operation, Options, Reinvocation, SideEffects},
    request::{AUDIT_LEN_MAX, Admission, WARNINGS_LEN_MAX},
    user::User,
    webhook::{Decision, RegistrationError, Webhook},
};
pub use crate::server::ClientConfig;
pub(crate) use respond::{BODY_LEN_MAX, failed_response, respond};
pub(crate) use webhook::check;

/// A function with `#[admission(…)]`, or a tuple of such; the function's name is the type.
///
/// Generated code implements it. `App::admission` takes it. An implementation by hand needs the items of the crate
/// `kctl-webhook` from which a [`Webhook`] is built.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an admission function",
    label = "not made by `#[admission]`",
    note = "help: write `#[admission(validate)]` or `#[admission(mutate)]` on the function, and name it here without parentheses",
    note = "code: K0108"
)]
pub trait Admits {
    /// Returns the webhooks of the functions.
    fn webhooks() -> Vec<Webhook>;
}

crate::tuples!(Admits::webhooks -> Webhook);
