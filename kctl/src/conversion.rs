//! Functions between versions of one kind: [`#[conversion]`](macro@crate::conversion).
//!
//! A CRD with several versions stores objects in one of them. When a client asks for another version, the
//! API server sends the objects to a conversion webhook. kctl serves that webhook at `/convert` for all
//! kinds of the program. You write one function per direction; where none leads directly from one version to
//! the other, kctl calls the shortest chain of functions.
//!
//! The API server calls it for each read and each write in another version than the stored one, and
//! for watches as well. A conversion must be fast, must not fail for stored objects, and may change
//! nothing in `metadata` but labels and annotations.
//!
//! ```
//! use kctl::prelude::*;
//!
//! mod v1alpha1 {
//!     use kctl::prelude::*;
//!
//!     #[resource(group = "example.com", version = "v1alpha1", kind = "Web", namespaced, storage = false)]
//!     pub struct WebSpec {
//!         pub host: String,
//!     }
//! }
//!
//! #[resource(group = "example.com", version = "v1", kind = "Web", namespaced)]
//! pub struct WebSpec {
//!     pub hosts: Vec<String>,
//! }
//!
//! #[conversion]
//! fn up(old: v1alpha1::Web) -> Web {
//!     Web { metadata: old.metadata, spec: WebSpec { hosts: vec![old.spec.host] } }
//! }
//!
//! #[conversion]
//! fn down(new: Web) -> Result<v1alpha1::Web> {
//!     let host = new.spec.hosts.into_iter().next().ok_or("spec.hosts is empty")?;
//!     Ok(v1alpha1::Web { metadata: new.metadata, spec: v1alpha1::WebSpec { host } })
//! }
//!
//! let app = App::new("web").conversion::<(up, down)>();
//! let crds = kctl::manifest::definitions(&app.kinds(), kctl::manifest::Descriptions::Own).unwrap();
//! assert_eq!(crds[0].spec.versions.len(), 2);
//! ```
//!
//! A test server converts as a cluster does. Here an object is written in the old version and read
//! in the new one:
//!
//! ```
//! # use kctl::prelude::*;
//! # mod v1alpha1 {
//! #     use kctl::prelude::*;
//! #     #[resource(group = "example.com", version = "v1alpha1", kind = "Web", namespaced, storage = false)]
//! #     pub struct WebSpec { pub host: String }
//! # }
//! # #[resource(group = "example.com", version = "v1", kind = "Web", namespaced)]
//! # pub struct WebSpec { pub hosts: Vec<String> }
//! # #[conversion]
//! # fn up(old: v1alpha1::Web) -> Web {
//! #     Web { metadata: old.metadata, spec: WebSpec { hosts: vec![old.spec.host] } }
//! # }
//! # #[conversion]
//! # fn down(new: Web) -> v1alpha1::Web {
//! #     v1alpha1::Web { metadata: new.metadata, spec: v1alpha1::WebSpec { host: new.spec.hosts.join(" ") } }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> kctl::Result<()> {
//! use kctl::{kube::{Api, api::PostParams}, testing::TestServer};
//!
//! let server = TestServer::start(App::new("web").conversion::<(up, down)>()).await?;
//! let old = v1alpha1::Web::new("web", v1alpha1::WebSpec { host: "example.com".into() });
//! Api::<v1alpha1::Web>::default_namespaced(server.client()).create(&PostParams::default(), &old).await?;
//! let new = Api::<Web>::default_namespaced(server.client()).get("web").await?;
//! assert_eq!(new.spec.hosts, ["example.com"]);
//! # Ok(())
//! # }
//! ```

#[doc(inline)]
pub use kctl_webhook::conversion::{Converts, Rule};

/// Names used by generated code. Not part of the API: it changes without notice.
#[doc(hidden)]
pub mod __private_0_1 {
    pub use std::{result::Result::Ok, vec::Vec};

    pub use kctl_runtime::__private_0_1::{CrdProbe, HasCrd, HasSchema, NoCrd};

    pub use kctl_webhook::{
        Definition, FunctionInfo,
        conversion::{Converts, Rule},
    };

    use kctl_runtime::reconcile::Error;

    /// An error that a conversion can return: one that converts into kctl's error.
    #[diagnostic::on_unimplemented(
        message = "a conversion can't return the error `{Self}`",
        label = "the error is not `Send + Sync + 'static`, or not an error",
        note = "help: write kctl's `Result<…>`, or `Box<dyn std::error::Error + Send + Sync>` as the error",
        note = "code: K0112"
    )]
    pub trait IntoMessage {
        /// Returns the message with its causes: a `ConversionReview` carries text.
        fn into_message(self) -> String;
    }

    #[diagnostic::do_not_recommend]
    impl<E: Into<Error>> IntoMessage for E {
        fn into_message(self) -> String {
            self.into().to_string()
        }
    }

    /// Returns the message of an error.
    pub fn failed<E: IntoMessage>(error: E) -> String {
        error.into_message()
    }
}
