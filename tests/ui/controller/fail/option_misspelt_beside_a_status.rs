//! A mistake in the attribute takes no permission away.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Web", namespaced, status = "WebStatus")]
pub struct WebSpec {
    pub host: String,
}

#[schema]
pub struct WebStatus {
    pub ready: bool,
}

#[controller(own = Pod)]
async fn webs(_web: Arc<Web>, cx: Context<webs>) -> Result<Action> {
    cx.patch_status(WebStatus { ready: true }).await?;
    let _client = cx.client();
    Ok(Action::await_change())
}

fn main() {}
