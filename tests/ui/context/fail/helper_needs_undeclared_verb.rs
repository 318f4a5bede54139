//! A helper needs a verb that its caller does not declare.
//!
//! Three errors: rustc reports an unmet bound of an `async fn` at its argument, at its call and at its `.await`. A helper that is not
//! `async` has one.
use kctl::prelude::*;

async fn remove_all<C: Deletes<Pod>>(cx: &Context<C>) -> Result<()> {
    let pods = cx.owned::<Pod>();
    for pod in pods.iter() {
        pods.delete(&pod).await?;
    }
    Ok(())
}

#[controller(owns = Pod(create))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    remove_all(&cx).await?;
    Ok(Action::await_change())
}

fn main() {}
