//! `patch_status` takes the status type of the primary.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Greeting", namespaced, status = "GreetingStatus")]
pub struct GreetingSpec {
    pub name: String,
}

#[schema]
pub struct GreetingStatus {
    pub text: String,
}

#[controller]
async fn greet(_greeting: Arc<Greeting>, cx: Context<greet>) -> Result<Action> {
    cx.patch_status(String::new()).await?;
    Ok(Action::await_change())
}

fn main() {}
