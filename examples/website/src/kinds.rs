//! The kind `Website`, in its stored version and its old version.
use kctl::prelude::*;

/// A website on any number of hosts.
#[resource(group = "example.com", version = "v1", kind = "Website", namespaced, status = "WebsiteStatus")]
pub(crate) struct WebsiteSpec {
    /// Host names of the website; the first one is the main one.
    pub hosts: Vec<String>,
    /// Number of replicas; defaults to two.
    pub replicas: Option<i32>,
}

/// Observed state of a website.
#[schema]
pub(crate) struct WebsiteStatus {
    /// Number of hosts.
    pub hosts: i32,
}

pub(crate) mod v1alpha1 {
    //! The old version, in which a website has a single host.
    use kctl::prelude::*;

    /// A website on one host.
    #[resource(
        group = "example.com",
        version = "v1alpha1",
        kind = "Website",
        namespaced,
        storage = false,
        deprecated = "use example.com/v1",
        status = "super::WebsiteStatus"
    )]
    pub(crate) struct WebsiteSpec {
        /// Host name of the website.
        pub host: String,
        /// Number of replicas.
        pub replicas: Option<i32>,
    }
}
