//! The resource interpreters of an app, and the chains that it keeps current.

#[cfg(feature = "karmada-chain")]
use std::sync::Arc;

use super::App;
#[cfg(feature = "karmada-chain")]
use super::chain;

impl App {
    /// Returns the interpreters in the order of their registration.
    ///
    /// ```
    /// use kctl::{karmada::prelude::*, prelude::*};
    ///
    /// #[interpreter(op = InterpretHealth)]
    /// fn health(deployment: &Deployment) -> bool {
    ///     deployment.spec.replicas == Some(0)
    /// }
    ///
    /// let app = App::new("interpreter").interpreter::<health>();
    /// assert_eq!(app.interpreters()[0].kind().kind, "Deployment");
    /// ```
    #[cfg(feature = "karmada")]
    pub fn interpreters(&self) -> &[kctl_interpreter::function::Rule] {
        &self.interpreters
    }

    /// Keeps a chain of interpreters current with the cluster that the app is started against.
    ///
    /// Its `ResourceInterpreterCustomization`s and `ResourceInterpreterWebhookConfiguration`s are
    /// watched, and each change replaces the layer as a whole. Until both kinds were listed, the
    /// chain answers that it is not ready. A control plane without these kinds counts as one
    /// without customizations after twelve seconds of 404 responses. The metrics of the chain are added to the app's
    /// metrics, and `list` and `watch` on these kinds and on Services to its role.
    ///
    /// The control plane decides about `LayerKind::Configurable` and `LayerKind::Webhook`: the app does not
    /// start if the chain has a layer of yours at one of them. Put your functions at
    /// `LayerKind::ThirdParty`, behind what users of the control plane install.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use kctl::{karmada::{chain::Chain, operation::{InterpretHealth, Object}, registry::Registry}, prelude::*};
    ///
    /// /// Reports if a Deployment is healthy, by the rule that the cluster has for Deployments.
    /// #[controller(of = Deployment)]
    /// struct Health { chain: Arc<Registry> }
    ///
    /// impl Reconcile for Health {
    ///     async fn reconcile(&self, deployment: Arc<Deployment>, _cx: Context<Self>) -> Result<Action> {
    ///         let healthy = self.chain.interpret::<InterpretHealth>(Object(kctl::json!(*deployment))).await?;
    ///         println!("healthy: {healthy}");
    ///         Ok(Action::await_change())
    ///     }
    /// }
    ///
    /// let chain = Arc::new(Registry::new(Chain::native()));
    /// let app = App::new("health").interpreter_chain(&chain).controller_with(move |_env| {
    ///     let chain = chain.clone();
    ///     async { Ok(Health { chain }) }
    /// });
    /// ```
    #[cfg(feature = "karmada-chain")]
    #[must_use]
    pub fn interpreter_chain(mut self, chain: &Arc<kctl_interpreter::registry::Registry>) -> Self {
        // Set here and not when the app runs: before its rules are read, the chain can't know which layer answers.
        chain.wait_for(chain::FOLLOWED_LAYERS);
        self.chains.push(chain.clone());
        let registry = chain.clone();
        self.metrics(move |metrics| registry.register(metrics))
    }

    /// Makes `generate-crds` and `generate-manifests` print the CRDs of the kinds that [`App::interpreter_chain`]
    /// follows.
    ///
    /// Use it for a control plane without Karmada, because Karmada installs its CRDs itself. `dev` installs them
    /// in any case.
    #[cfg(feature = "karmada-chain")]
    #[must_use]
    pub fn interpreter_kinds(mut self) -> Self {
        self.has_interpreter_kinds = true;
        self
    }
}
