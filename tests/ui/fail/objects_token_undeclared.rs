//! To read an account is not to be it.
use kctl::prelude::*;

#[controller(reads = ServiceAccount)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.objects::<ServiceAccount>().token(&ServiceAccount::default(), Default::default()).await?;
    Ok(Action::await_change())
}

fn main() {}
