//! A helper that reads live needs a bound.
use kctl::prelude::*;

async fn token<C>(cx: &Context<C>) -> Result<Arc<Secret>> {
    Ok(cx.live::<Secret>().get("token").await?)
}

#[controller(reads = Secret(live))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _token = token(&cx).await?;
    Ok(Action::await_change())
}

fn main() {}
