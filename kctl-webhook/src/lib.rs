//! Webhooks of Kubernetes API servers as Rust functions: admission and conversion over HTTPS, with
//! certificates that renew themselves.
//!
//! An API server calls *admission* webhooks before it stores an object, and a *conversion* webhook when a client
//! uses another version of a CRD than the stored one. Each call is an HTTPS POST with a review as JSON. This crate
//! turns a review into a call of a typed function and the result into a response. It serves that safely: bodies,
//! connections and concurrency are bounded, requests time out, and panics become responses.
//!
//! Most programs use it through the crate `kctl`: `#[admission]`, `#[conversion]` and
//! `App::admission` build what is shown here. Use this crate directly for a webhook server without
//! controllers, or to embed the routes into a server of your own.
//!
//! | module | has | feature |
//! |---|---|---|
//! | [`admission`](admission/index.html) | functions that validate or change objects, and their webhook configurations | `function` |
//! | [`conversion`](conversion/index.html) | functions between versions of a CRD | `function` |
//! | [`server`](server/index.html) | TLS, connections, certificates from files or memory | `server` |
//! | [`client`](client/index.html) | calls webhooks of others, as Go's clients do | `client` |
//!
//! Hidden modules, such as the modules of the features `blocking` and `connections`, are for the other crates of kctl.
//!
//! # The path of a request
//!
//! 1. `server` accepts the connection, within its bound, and completes the TLS handshake.
//! 2. The route reads the body, up to 7 MiB for admission and 128 MiB for conversion.
//! 3. At most 64 requests run at a time; others wait.
//! 4. The function runs in a separate task. On a multi-threaded runtime, one that blocks its thread delays neither
//!    timeouts nor other requests.
//! 5. The webhook's response has the HTTP status 200. Errors are in the review, because an API server shows no other
//!    message to its client.
//!
//! # Example
//!
//! ```
//! # #[cfg(feature = "function")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kctl_webhook::{
//!     FunctionInfo, Metrics,
//!     admission::{Action, Denial, Options, Webhook},
//!     conversion::Conversions,
//!     routes,
//!     server::{Server, ServerOptions},
//! };
//!
//! let about = FunctionInfo::new("has_data", file!(), line!());
//! let has_data = Webhook::object(about, Options::new(Action::Validate), |config: ConfigMap, _request| async move {
//!     if config.data.is_none() {
//!         return Err(Denial::because("a ConfigMap without data is a mistake"));
//!     }
//!     Ok(config)
//! });
//! let routes = routes(&[has_data], Conversions::default(), &Metrics::default())?;
//! let server = Server::listen(routes, ServerOptions::default()).await?;
//! println!("https://{}/validate--v1-configmap", server.address());
//! let stopped = async {}; // usually a signal
//! server.serve(stopped).await?;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "function"))]
//! # fn main() {}
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "function")]
pub mod admission;
#[cfg(feature = "blocking")]
#[doc(hidden)] // shared with the other crates of kctl
pub mod blocking;
#[cfg(feature = "function")]
mod call;
#[doc(hidden)] // shared with the other crates of kctl
pub mod change;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "connections")]
mod client_limiter;
#[cfg(feature = "connections")]
#[doc(hidden)] // shared with the other crates of kctl
pub mod connections;
#[cfg(feature = "function")]
pub mod conversion;
#[cfg(any(feature = "client", feature = "server"))]
#[doc(hidden)] // shared with the other crates of kctl
pub mod error_chain;
#[cfg(feature = "function")]
mod kind;
#[cfg(feature = "function")]
mod metrics;
#[doc(hidden)] // shared with the other crates of kctl
pub mod panic;
#[doc(hidden)] // shared with the other crates of kctl
pub mod private_file;
#[cfg(feature = "function")]
#[doc(hidden)] // shared with the other crates of kctl
pub mod rotation;
#[cfg(feature = "function")]
mod routes;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "trust")]
#[doc(hidden)] // shared with the other crates of kctl
pub mod trust;

#[cfg(feature = "function")]
pub use self::{call::FunctionInfo, kind::Kind, metrics::Metrics, routes::routes};
// Expansions and `kctl` alone need these. They are hidden, so that they are not a part of the API.
#[cfg(feature = "function")]
#[doc(hidden)]
pub use self::kind::{Definition, MakeDefinition};

/// Implements a trait for tuples of up to twelve functions.
#[cfg(feature = "function")]
macro_rules! tuples {
    ($function:ident::$list:ident -> $item:ident) => {
        crate::tuples!($function::$list -> $item, A B C D E F G H I J K L);
    };
    ($function:ident::$list:ident -> $item:ident,) => {};
    ($function:ident::$list:ident -> $item:ident, $first:ident $($name:ident)*) => {
        #[diagnostic::do_not_recommend]
        impl<$first: $function, $($name: $function),*> $function for ($first, $($name,)*) {
            fn $list() -> Vec<$item> {
                [$first::$list(), $($name::$list()),*].into_iter().flatten().collect()
            }
        }
        crate::tuples!($function::$list -> $item, $($name)*);
    };
}
#[cfg(feature = "function")]
pub(crate) use tuples;
