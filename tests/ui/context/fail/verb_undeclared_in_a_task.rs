//! A spawned task has the permissions of its controller.
use kctl::prelude::*;

#[controller(owns = Secret(create))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let own = cx.clone();
    tokio::spawn(async move {
        let secrets = own.owned::<Secret>();
        if let Some(first) = secrets.iter().next() {
            let _ = secrets.patch(&first, "{}").await;
        }
    });
    Ok(Action::await_change())
}

fn main() {}
