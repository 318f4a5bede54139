//! The kind is reconciled, not its spec.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
pub struct GreetingSpec {
    pub name: String,
}

#[controller]
async fn configs(_config: Arc<GreetingSpec>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
