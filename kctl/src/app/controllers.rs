//! The controllers and kinds of an app.

use std::sync::{Arc, LazyLock};

use kctl_runtime::{manager::Manager, manifest::KindSpec, reconcile::Result, spec::ControllerSpec, watches::Watches};
use kube::CustomResourceExt;

use super::{App, Boxed};

/// The environment of a controller: passed to the closure of [`App::controller_with`] at each
/// start.
///
/// ```
/// use kctl::{app::Env, prelude::*};
///
/// /// Prints the name of the program that it runs in.
/// #[controller(of = ConfigMap)]
/// struct Named {
///     app: String,
/// }
///
/// impl Reconcile for Named {
///     async fn reconcile(&self, config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
///         println!("{} sees {}", self.app, config.name_any());
///         Ok(Action::await_change())
///     }
/// }
///
/// let app = App::new("named").controller_with(|env: Env| async move { Ok(Named { app: env.app }) });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Env {
    /// The name of the app, as given to [`App::new`].
    pub app: String,
    /// Opens watches while the app runs, for kinds that are known only then.
    ///
    /// The role of this controller has to allow them: kinds that it declares, and those in its
    /// `rbac(…)`.
    pub watches: Watches,
}

pub(super) struct Registration {
    /// Created once: deriving the CRD takes noticeable time where a kind contains a pod template.
    pub(super) spec: LazyLock<ControllerSpec>,
    pub(super) start: Arc<dyn Fn(Env) -> Boxed<'static, Result<Add>> + Send + Sync>,
}

/// Adds a controller to a manager.
pub(super) type Add = Box<dyn FnOnce(&mut Manager) + Send>;

impl App {
    /// Adds the CRD of a kind that no controller reconciles, or of another version of one.
    ///
    /// Kinds of the same group and name are versions of one CRD, and exactly one of them is the storage version. Write
    /// `storage = false` in the others. Kinds that controllers reconcile are known without this method.
    ///
    /// ```
    /// use kctl::prelude::*;
    ///
    /// #[resource(group = "example.com", version = "v2", kind = "Web", namespaced)]
    /// pub struct WebSpec {
    ///     pub hosts: Vec<String>,
    /// }
    ///
    /// mod v1 {
    ///     use kctl::prelude::*;
    ///
    ///     #[resource(group = "example.com", version = "v1", kind = "Web", namespaced, storage = false, deprecated = "use v2")]
    ///     pub struct WebSpec {
    ///         pub hosts: Vec<String>,
    ///     }
    /// }
    ///
    /// let app = App::new("webs").kind::<Web>().kind::<v1::Web>();
    /// let crds = kctl::manifest::definitions(&app.kinds(), kctl::manifest::Descriptions::Own).unwrap();
    /// assert_eq!(crds[0].spec.versions.len(), 2);
    /// ```
    #[must_use]
    pub fn kind<K: CustomResourceExt + schemars::JsonSchema>(mut self) -> Self {
        self.kinds.push(KindSpec::of::<K>());
        self
    }
}
