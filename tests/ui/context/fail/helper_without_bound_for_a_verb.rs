//! A helper needs a bound for each verb that it uses.
use kctl::prelude::*;

async fn remove_all<C: Creates<Pod>>(cx: &Context<C>) -> Result<()> {
    let pods = cx.owned::<Pod>();
    for pod in pods.iter() {
        pods.delete(&pod).await?;
    }
    Ok(())
}

fn main() {}
