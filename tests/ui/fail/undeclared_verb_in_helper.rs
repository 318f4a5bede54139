//! A helper that uses a verb that its bound does not name.
use kctl::prelude::*;

async fn remove_all<C: Creates<Pod>>(cx: &Context<C>) -> Result<()> {
    let pods = cx.owned::<Pod>();
    for pod in pods.iter() {
        pods.delete(&pod).await?;
    }
    Ok(())
}

fn main() {}
