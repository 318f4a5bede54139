//! The bound `Owns` needs every verb of `owns = Kind`.
//!
//! Three errors: rustc reports an unmet bound of an `async fn` at its argument, at its call and at its `.await`. A helper that is not
//! `async` has one.
use kctl::prelude::*;

async fn renew<C: Owns<Pod>>(cx: &Context<C>) -> Result<()> {
    cx.owned::<Pod>().create(Pod::default()).await?;
    Ok(())
}

#[controller(owns = Pod(create))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    renew(&cx).await?;
    Ok(Action::await_change())
}

fn main() {}
