//! The kind that most planted controllers reconcile, and what a user does with it.

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
    /// How often the site was looked at.
    #[serde(default)]
    pub runs: i64,
}

impl Site {
    /// The version that was reached; 0 before the first one.
    pub(crate) fn reached(&self) -> i32 {
        self.status.as_ref().map_or(0, |status| status.version)
    }

    /// The name of what was made.
    pub(crate) fn made(&self) -> Option<String> {
        self.status.as_ref().and_then(|status| status.made.clone())
    }
}

/// The status of a site that has reached what it asks for.
pub(crate) fn reached(site: &Site) -> SiteStatus {
    SiteStatus { version: site.spec.version, ..SiteStatus::default() }
}

/// The same with what was made for it.
pub(crate) fn reached_with(site: &Site, made: String) -> SiteStatus {
    SiteStatus { made: Some(made), ..reached(site) }
}

/// Whether a site is still the one that was read, and stays. A cache may be behind after a restart, and what is made outside
/// for a site that is gone stays for ever.
pub(crate) fn stays(site: &Site, newest: &Site) -> bool {
    newest.metadata.uid == site.metadata.uid && newest.metadata.deletion_timestamp.is_none()
}

/// Says that a site has what it asks for, where another controller works for all sites at once.
#[controller]
pub(crate) async fn sites(site: Arc<Site>, cx: Context<sites>) -> Result<Action> {
    cx.patch_status(reached(&site)).await?;
    Ok(Action::await_change())
}

/// A secret with this text.
pub(crate) fn secret(name: &str, text: &str) -> Secret {
    let data = [("text".to_owned(), text.to_owned())];
    let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    Secret { metadata, string_data: Some(data.into()), ..Secret::default() }
}

/// A secret whose name the server makes up.
pub(crate) fn unnamed_secret(prefix: &str) -> Secret {
    let metadata = ObjectMeta { generate_name: Some(prefix.into()), ..ObjectMeta::default() };
    Secret { metadata, ..Secret::default() }
}

/// The text of a secret.
pub(crate) fn text(secret: &Secret) -> String {
    let data = secret.data.as_ref().and_then(|data| data.get("text"));
    data.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned()).unwrap_or_default()
}

/// Asks for a site in a version.
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
