//! A live read gets one object by name; it can't list.
use kctl::prelude::*;

#[controller(reads = Secret(live))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    for secret in cx.live::<Secret>().list().await? {
        println!("{}", secret.name_any());
    }
    Ok(Action::await_change())
}

fn main() {}
