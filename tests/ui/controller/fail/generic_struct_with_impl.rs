//! A generic struct is reported once, also if it has a generic `impl Reconcile`.
use kctl::prelude::*;

pub trait Buckets: Send + Sync + 'static {
    fn create(&self, name: &str) -> std::result::Result<(), std::io::Error>;
}

#[controller(of = ConfigMap, owns = Pod, finalizer = "example.com/bucket")]
pub struct Configs<B: Buckets> {
    buckets: B,
}

impl<B: Buckets> Reconcile for Configs<B> {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        self.buckets.create(&config.name_any())?;
        for pod in cx.owned::<Pod>().iter() {
            cx.owned::<Pod>().delete(&pod).await?;
        }
        Ok(Action::await_change())
    }
}

impl<B: Buckets> Finalize for Configs<B> {
    async fn finalize(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<()> {
        Ok(())
    }
}

struct Disk;

impl Buckets for Disk {
    fn create(&self, _name: &str) -> std::result::Result<(), std::io::Error> {
        Ok(())
    }
}

fn main() {
    let _app = App::new("configs").controller_with(|_env| async { Ok(Configs { buckets: Disk }) });
}
