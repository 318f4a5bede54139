//! The kind that most planted controllers reconcile, and the actions of a user.

use kctl::{
    kube::{
        Api, Client,
        api::{DeleteParams, Patch, PatchParams},
    },
    prelude::*,
};

/// Something that is wanted in a version.
#[resource(group = "planted.example.com", version = "v1", kind = "Site", namespaced, status = "SiteStatus")]
pub(crate) struct SiteSpec {
    pub version: i32,
}

/// The state that its controller reached.
#[schema]
#[derive(Default)]
pub(crate) struct SiteStatus {
    /// The version that was reached.
    #[serde(default)]
    pub version: i32,
    /// The name of what was made for the site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<String>,
    /// Number of reconciles of the site.
    #[serde(default)]
    pub runs: i64,
}

impl Site {
    /// Returns the version that was reached; 0 before the first one.
    pub(crate) fn reached(&self) -> i32 {
        self.status.as_ref().map_or(0, |status| status.version)
    }

    /// Returns the name of the object that was created for the site.
    pub(crate) fn made(&self) -> Option<String> {
        self.status.as_ref().and_then(|status| status.made.clone())
    }
}

/// Returns the status of a site that has reached its desired version.
pub(crate) fn reached(site: &Site) -> SiteStatus {
    SiteStatus { version: site.spec.version, ..SiteStatus::default() }
}

/// Returns the same status with the name of the created object.
pub(crate) fn reached_with(site: &Site, made: String) -> SiteStatus {
    SiteStatus { made: Some(made), ..reached(site) }
}

/// Returns `true` if the site still exists and is not being deleted. A cache may lag after a restart, and external
/// objects that are created for a deleted site leak.
pub(crate) fn stays(site: &Site, newest: &Site) -> bool {
    newest.metadata.uid == site.metadata.uid && newest.metadata.deletion_timestamp.is_none()
}

/// Sets the status of each site, for apps whose other controller handles all sites at once.
#[controller]
pub(crate) async fn sites(site: Arc<Site>, cx: Context<sites>) -> Result<Action> {
    cx.patch_status(reached(&site)).await?;
    Ok(Action::await_change())
}

/// Returns a Secret with this text.
pub(crate) fn secret(name: &str, text: &str) -> Secret {
    let data = [("text".to_owned(), text.to_owned())];
    let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    Secret { metadata, string_data: Some(data.into()), ..Secret::default() }
}

/// Returns a Secret with a generated name.
pub(crate) fn unnamed_secret(prefix: &str) -> Secret {
    let metadata = ObjectMeta { generate_name: Some(prefix.into()), ..ObjectMeta::default() };
    Secret { metadata, ..Secret::default() }
}

/// Returns the text of a Secret.
pub(crate) fn text(secret: &Secret) -> String {
    let data = secret.data.as_ref().and_then(|data| data.get("text"));
    data.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned()).unwrap_or_default()
}

/// Applies a site with this desired version.
pub(crate) async fn ask(client: &Client, name: &str, version: i32) -> Result<()> {
    let site = kctl::json!({
        "apiVersion": "planted.example.com/v1", "kind": "Site", "metadata": { "name": name }, "spec": { "version": version },
    });
    api(client).patch(name, &PatchParams::apply("user").force(), &Patch::Apply(site)).await?;
    Ok(())
}

/// Deletes a site.
pub(crate) async fn delete(client: &Client, name: &str) -> Result<()> {
    api(client).delete(name, &DeleteParams::default()).await?;
    Ok(())
}

fn api(client: &Client) -> Api<Site> {
    Api::default_namespaced(client.clone())
}

/// Names of the parts of a site.
pub(crate) const PARTS: [&str; 6] = ["cache", "database", "disk", "key", "queue", "record"];

/// The manifest of site `a` in version 1.
pub(crate) const A: &str = "
apiVersion: planted.example.com/v1
kind: Site
metadata: { name: a }
spec: { version: 1 }
";

/// The manifests of sites `a` and `b`.
pub(crate) const A_AND_B: &str = "
apiVersion: planted.example.com/v1
kind: Site
metadata: { name: a }
spec: { version: 1 }
---
apiVersion: planted.example.com/v1
kind: Site
metadata: { name: b }
spec: { version: 1 }
";
