//! `Context` takes the controller, not the spec.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Site", namespaced, status = "SiteStatus")]
pub struct SiteSpec {
    pub replicas: i32,
}

#[schema]
pub struct SiteStatus {
    pub ready: i32,
}

#[controller]
async fn site(site: Arc<Site>, cx: Context<SiteSpec>) -> Result<Action> {
    cx.patch_status(SiteStatus { ready: site.spec.replicas }).await?;
    Ok(Action::await_change())
}

fn main() {}
