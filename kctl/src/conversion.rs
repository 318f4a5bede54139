//! Functions between versions of one kind: `#[conversion]`.
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

pub use kctl_webhook::conversion::*;

/// Names used by generated code. Not part of the API: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use std::{result::Result::Ok, vec::Vec};

    pub use kctl_runtime::__private::{CrdProbe, HasCrd, HasSchema, NoCrd};

    pub use kctl_webhook::{
        About, Definition,
        conversion::{Converts, Rule},
    };

    /// The error of a function in words, since that is what travels.
    pub fn failed(error: impl Into<kctl_runtime::reconcile::Error>) -> String {
        error.into().to_string()
    }
}
