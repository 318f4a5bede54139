//! `get` of a ServiceAccount does not allow its `token`.
use kctl::prelude::*;

#[controller(reads = ServiceAccount)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.objects::<ServiceAccount>().token(&ServiceAccount::default(), Default::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
