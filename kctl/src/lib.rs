//! A declarative Kubernetes controller framework: annotate a reconcile function, get a controller.
//!
//! ```no_run
//! use kctl::prelude::*;
//!
//! #[resource(group = "apps.example.com", version = "v1", kind = "Greeting", namespaced, status = "GreetingStatus")]
//! pub struct GreetingSpec {
//!     pub name: String,
//! }
//!
//! #[schema]
//! pub struct GreetingStatus {
//!     pub text: String,
//! }
//!
//! /// Greets.
//! #[controller]
//! async fn greeting(greeting: Arc<Greeting>, cx: Context<greeting>) -> Result<Action> {
//!     cx.patch_status(GreetingStatus { text: format!("Hello, {}!", greeting.spec.name) }).await?;
//!     Ok(Action::await_change())
//! }
//!
//! #[tokio::main]
//! async fn main() -> kctl::Result<()> {
//!     App::new("greeter").controller::<greeting>().main().await
//! }
//! ```

pub mod app;
#[cfg(feature = "interpreter")]
pub mod interpreter;
pub mod prelude;
#[cfg(feature = "dev")]
pub mod testing;

pub use app::App;
pub use k8s_openapi as k8s;
#[cfg(feature = "dev")]
pub use kctl_apiserver as apiserver;
#[cfg(feature = "interpreter")]
pub use kctl_macros::interpreter;
pub use kctl_macros::{controller, resource, schema};
#[doc(hidden)]
pub use kctl_runtime::__private;
pub use kctl_runtime::manager::metrics::prometheus_client::metrics;
pub use kctl_runtime::{
    effect::ApiError,
    reconcile::{Error, Result},
    *,
};
pub use kube;
pub use serde_json::{Value as Json, from_value as from_json, json};
pub use serde_saphyr::from_str as from_yaml;

/// The code of the guide is compiled and run with the tests.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../guide/tutorial.md")]
    struct Tutorial;
    #[doc = include_str!("../../guide/permissions.md")]
    struct Permissions;
    #[doc = include_str!("../../guide/attributes.md")]
    struct Attributes;
    #[doc = include_str!("../../guide/crds.md")]
    struct Crds;
}
