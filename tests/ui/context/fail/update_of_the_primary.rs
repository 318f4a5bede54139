//! The primary is patched, not updated as a whole.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Site", namespaced, status = "SiteStatus")]
pub struct SiteSpec {
    pub replicas: i32,
}

#[schema]
pub struct SiteStatus {
    pub ready: i32,
}

#[controller(primary(patch))]
async fn site(site: Arc<Site>, cx: Context<site>) -> Result<Action> {
    cx.update(&site).await?;
    Ok(Action::await_change())
}

fn main() {}
