//! `crate = path`: kctl under another name, both forms, and a kind.
use kctl::prelude::*;

pub(crate) mod renamed {
    pub(crate) use kctl as other;
}

#[controller(owns = Pod, crate = self::renamed::other)]
pub(crate) async fn reconcile(_config: Arc<ConfigMap>, cx: Context<reconcile>) -> Result<Action> {
    let _pods = cx.owned::<Pod>();
    Ok(Action::await_change())
}

#[resource(
    group = "example.com",
    version = "v1",
    kind = "Renamed",
    status = "RenamedStatus",
    status_subresource = false,
    crate = self::renamed::other
)]
pub(crate) struct RenamedSpec {
    #[kctl(min_length = 1)]
    pub(crate) host: Option<String>,
    #[serde(flatten)]
    pub(crate) size: RenamedSize,
}

#[schema(crate = self::renamed::other)]
pub(crate) struct RenamedSize {
    pub(crate) replicas: u8,
}

#[schema(crate = renamed::other)]
pub(crate) struct RenamedStatus {
    pub(crate) ready: bool,
}

#[controller(of = Secret, crate = renamed::other)]
pub(crate) struct Secrets;

impl Reconcile for Secrets {
    async fn reconcile(&self, _secret: Arc<Secret>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

pub(crate) fn app() -> App {
    App::new("renamed").kind::<Renamed>().controller::<reconcile>().controller_with(|_env| async { Ok(Secrets) })
}
