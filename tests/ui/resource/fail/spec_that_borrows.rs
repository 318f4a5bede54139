//! A borrowed field is one error, also with its lifetime on the struct.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Web", namespaced)]
pub struct WebSpec<'a> {
    #[kctl(min_length = 1)]
    pub host: &'a str,
}

#[controller]
async fn webs(_web: Arc<Web>, _cx: Context<webs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
