//! A kind is the name of a type.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Web-Site", namespaced)]
pub struct WebSpec {
    pub port: i32,
}

#[controller]
async fn webs(_web: Arc<Web>, _cx: Context<webs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
