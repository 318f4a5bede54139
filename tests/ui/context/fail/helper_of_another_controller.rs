//! A helper takes the `Context` of one controller and is called by another controller.
use kctl::prelude::*;

#[controller(owns = Pod, name = "first")]
async fn first(_config: Arc<ConfigMap>, cx: Context<first>) -> Result<Action> {
    clear(&cx).await?;
    Ok(Action::await_change())
}

#[controller(name = "second")]
async fn second(_config: Arc<ConfigMap>, cx: Context<second>) -> Result<Action> {
    clear(&cx).await?;
    Ok(Action::await_change())
}

async fn clear(cx: &Context<first>) -> Result<()> {
    println!("{}", cx.owned::<Pod>().len());
    Ok(())
}

fn main() {}
