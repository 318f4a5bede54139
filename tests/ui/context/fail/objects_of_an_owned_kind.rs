//! An owned kind is written through `cx.owned`, not `cx.objects`.
use kctl::prelude::*;

#[controller(owns = Pod)]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    cx.objects::<Pod>().patch_status(&Pod::default(), "{}").await?;
    Ok(Action::await_change())
}

fn main() {}
