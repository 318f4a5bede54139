//! `crate = path`: kctl under another name, and both forms.
use kctl::prelude::*;

pub(crate) mod renamed {
    pub(crate) use kctl as other;
}

#[controller(owns = Pod, crate = self::renamed::other)]
pub(crate) async fn reconcile(_config: Arc<ConfigMap>, cx: Context<reconcile>) -> Result<Action> {
    let _pods = cx.owned::<Pod>();
    Ok(Action::await_change())
}

#[controller(of = Secret, crate = renamed::other)]
pub(crate) struct Secrets;

impl Reconcile for Secrets {
    async fn reconcile(&self, _secret: Arc<Secret>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

pub(crate) fn app() -> App {
    App::new("renamed").controller::<reconcile>().controller_with(|_env| async { Ok(Secrets) })
}
