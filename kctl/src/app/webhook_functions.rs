//! The app's admission functions and conversions: added, checked, and registered with API servers.

mod address;

use std::sync::OnceLock;

use kctl_runtime::{
    manifest::{self, KindSpec, Manifest},
    reconcile::Result,
};
use kctl_webhook::{
    Definition, Metrics,
    admission::{self, Admits, ClientConfig, Configurations},
    conversion::{self, Conversions, Converts},
    server::Routes,
};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

pub(super) use self::address::{Address, check_service, hosts};
use self::address::{check_path, check_same, client_config};
use super::App;

#[derive(Default)]
pub(super) struct WebhookFunctions {
    pub(super) admission: Vec<admission::Webhook>,
    pub(super) conversion: Vec<conversion::Rule>,
    /// The CRDs of the kinds that are converted, cached at first use: deriving them takes
    /// noticeable time.
    converted: OnceLock<Vec<Value>>,
    /// The address and authority that the embedded API server uses to call the functions; `None` calls them within the
    /// process.
    #[cfg(feature = "testing")]
    pub(super) reached: Option<(ClientConfig, Option<String>)>,
}

impl WebhookFunctions {
    pub(super) fn is_empty(&self) -> bool {
        self.admission.is_empty() && self.conversion.is_empty()
    }

    /// Returns the kinds that only these functions know.
    pub(super) fn kinds(&self) -> Vec<KindSpec> {
        let spec = |location: String, kind: &GroupVersionKind, Definition { crd, schema }: Definition| {
            Some(KindSpec::new(location, kind.clone(), crd?).with_schema(schema))
        };
        let admitted = self
            .admission
            .iter()
            .filter_map(|rule| spec(rule.function_info().location(), rule.kind(), rule.definition()));
        let converted = self.conversion.iter().flat_map(|rule| {
            let both_versions = [rule.from(), rule.to()].into_iter().zip(rule.definitions());
            both_versions.filter_map(|(kind, definition)| spec(rule.function_info().location(), kind, definition))
        });
        admitted.chain(converted).collect()
    }
}

impl App {
    /// Adds admission functions: one with `#[admission(validate)]` or `#[admission(mutate)]`, or a
    /// tuple of such.
    ///
    /// An API server calls them before it stores an object; `dev`, tests and `run` serve them. A
    /// kind has at most one function of each type.
    ///
    /// ```
    /// use kctl::prelude::*;
    ///
    /// #[admission(validate)]
    /// fn has_an_owner(config: &ConfigMap) -> Result<()> {
    ///     match config.labels().get("owner") {
    ///         Some(_) => Ok(()),
    ///         None => Err(Denial::because("write the label `owner`, so that people know whom to ask").into()),
    ///     }
    /// }
    ///
    /// let app = App::new("owners").admission::<has_an_owner>();
    /// ```
    #[must_use]
    pub fn admission<A: Admits>(mut self) -> Self {
        self.webhook_functions.admission.extend(A::webhooks());
        self
    }

    /// Adds functions between versions of a kind: one with `#[conversion]`, or a tuple of such.
    ///
    /// From each version of the kind there must be a path to each other one, directly or through
    /// others. The versions come from [`App::kind`], from controllers, and from the functions themselves.
    ///
    /// ```
    /// use kctl::prelude::*;
    /// # mod v1alpha1 {
    /// #     use kctl::prelude::*;
    /// #     #[resource(group = "example.com", version = "v1alpha1", kind = "Web", namespaced, storage = false)]
    /// #     pub struct WebSpec { pub host: String }
    /// # }
    /// # #[resource(group = "example.com", version = "v1", kind = "Web", namespaced)]
    /// # pub struct WebSpec { pub hosts: Vec<String> }
    /// #[conversion]
    /// fn up(old: v1alpha1::Web) -> Web {
    ///     Web { metadata: old.metadata, spec: WebSpec { hosts: vec![old.spec.host] } }
    /// }
    ///
    /// #[conversion]
    /// fn down(new: Web) -> v1alpha1::Web {
    ///     v1alpha1::Web { metadata: new.metadata, spec: v1alpha1::WebSpec { host: new.spec.hosts.join(" ") } }
    /// }
    ///
    /// let app = App::new("web").conversion::<(up, down)>();
    /// ```
    #[must_use]
    pub fn conversion<C: Converts>(mut self) -> Self {
        self.webhook_functions.conversion.extend(C::rules());
        self
    }

    /// Returns the admission functions in the order of their registration, with their paths and
    /// options.
    ///
    /// ```
    /// use kctl::prelude::*;
    ///
    /// #[admission(validate, timeout = 5)]
    /// fn any(_config: &ConfigMap) {}
    ///
    /// let app = App::new("any").admission::<any>();
    /// assert_eq!(app.admissions()[0].path(), "/validate--v1-configmap");
    /// ```
    pub fn admissions(&self) -> &[admission::Webhook] {
        &self.webhook_functions.admission
    }

    /// Returns the conversions in the order of their registration.
    pub fn conversions(&self) -> &[conversion::Rule] {
        &self.webhook_functions.conversion
    }

    /// Returns the HTTP routes of admission functions and conversions, for a server of your own.
    ///
    /// [`App::main`] serves them itself. `metrics` counts their calls. The types are
    /// [`admission::Metrics`](crate::admission::Metrics) and [`admission::Routes`](crate::admission::Routes).
    ///
    /// ```
    /// use kctl::prelude::*;
    ///
    /// #[admission(validate)]
    /// fn any(_config: &ConfigMap) {}
    ///
    /// let app = App::new("any").admission::<any>();
    /// let routes = app.webhook_routes(&kctl::admission::Metrics::default())?;
    /// # let _ = routes;
    /// # Ok::<(), kctl::Error>(())
    /// ```
    ///
    /// # Errors
    /// Two functions have the same path, or no functions lead from one version of a kind to
    /// another.
    pub fn webhook_routes(&self, metrics: &Metrics) -> Result<Routes> {
        Ok(kctl_webhook::routes(&self.webhook_functions.admission, self.conversion_paths()?, metrics)?)
    }

    /// Returns the conversions with the shortest path between each pair of versions.
    fn conversion_paths(&self) -> Result<Conversions> {
        if self.webhook_functions.conversion.is_empty() {
            return Ok(Conversions::default());
        }
        // Includes the versions of all kinds, so that a version without a conversion is reported.
        let versions: Vec<_> = self.kinds().into_iter().map(|KindSpec { kind, .. }| kind).collect();
        Ok(Conversions::new(self.webhook_functions.conversion.clone(), &versions)?)
    }

    /// Finds mistakes that are visible before anything runs.
    pub(super) fn check_hooks(&self) -> Result<()> {
        self.webhook_routes(&Metrics::default()).map(drop)
    }

    /// Finds contradictions between `conversion(…)` in `#[resource]` and `App::conversion`. It
    /// derives CRDs, so [`App::main`] calls it once.
    pub(super) fn check_addresses(&self) -> Result<()> {
        self.converted_definitions()?.iter().try_for_each(check_path)
    }

    /// Returns `true` if the app has conversions for the kind of a CRD.
    pub(super) fn converts(&self, definition: &Value) -> bool {
        let spec = &definition["spec"];
        let of =
            |rule: &conversion::Rule| rule.from().group == spec["group"] && rule.from().kind == spec["names"]["kind"];
        self.webhook_functions.conversion.iter().any(of)
    }

    /// Registers this program as the converter of a CRD if it has conversions for the kind.
    ///
    /// That replaces the address of `conversion(…)` in `#[resource]`, which is meant for a cluster.
    /// Here the API server is in this process or on this machine.
    pub(super) fn convert_by(&self, definition: &mut Value, client: &ClientConfig, authority: Option<&str>) {
        if !self.converts(definition) {
            return;
        }
        definition["spec"]["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": client.config(conversion::PATH, authority),
                "conversionReviewVersions": ["v1"],
            },
        });
    }

    /// Registers this program as the converter in manifests for a cluster, where `conversion(…)` in
    /// `#[resource]` may name a second address.
    ///
    /// # Errors
    /// The two addresses differ and both were written by the user.
    pub(super) fn convert_manifests(
        &self,
        manifests: &mut [Manifest],
        address: &Address<'_>,
        authority: Option<&str>,
    ) -> Result<()> {
        for manifest in manifests.iter_mut().filter(|manifest| manifest.object["kind"] == "CustomResourceDefinition") {
            let mut object = manifest.object.clone();
            match (self.converts(&object).then(|| client_config(&object)).flatten(), address) {
                (Some(_), Address::Default(_)) => continue,
                (Some(written), Address::Given { client, origin }) => check_same(&object, &written, client, origin)?,
                (None, _) => {}
            }
            self.convert_by(&mut object, address.client(), authority);
            if object != manifest.object {
                *manifest = Manifest::new(std::mem::take(&mut manifest.file), object)?;
            }
        }
        Ok(())
    }

    pub(super) fn converted_definitions(&self) -> Result<Vec<Value>> {
        if self.webhook_functions.conversion.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(cached) = self.webhook_functions.converted.get() {
            return Ok(cached.clone());
        }
        let manifests = manifest::crd_manifests(&self.kinds(), manifest::Descriptions::Own)?;
        let objects = manifests.into_iter().map(|manifest| manifest.object);
        let converted: Vec<Value> = objects.filter(|object| self.converts(object)).collect();
        Ok(self.webhook_functions.converted.get_or_init(|| converted).clone())
    }

    pub(super) fn admission_configurations(
        &self,
        name: &str,
        client: &ClientConfig,
        authority: Option<&str>,
    ) -> Vec<Value> {
        Configurations { name, client, authority }.objects(&self.webhook_functions.admission)
    }
}

#[cfg(feature = "testing")]
mod embedded {
    use axum::body::Body;
    use http_body_util::BodyExt;
    use kctl_apiserver::ApiServer;
    use kctl_runtime::manifest::{Permission, RbacOptions};
    use kctl_webhook::admission::ClientConfig;
    use tower::ServiceExt;

    use super::{App, Metrics, Result};
    use crate::app::files::{self, FromFile};

    /// The host that API servers in this process use to call the functions.
    const HOST: &str = "webhooks.kctl.internal";

    impl App {
        /// Installs the CRDs, the role and, on the cluster that the app is started against, the
        /// admission functions.
        pub(crate) async fn install_on(
            &self,
            server: &ApiServer,
            permissions: &[Permission],
            names: &RbacOptions,
            cluster: &str,
        ) -> Result<()> {
            let admin = kube::Client::new(server.service(), "default");
            let in_process = || (ClientConfig::Url(format!("https://{HOST}")), None);
            let (client, authority) = self.webhook_functions.reached.clone().unwrap_or_else(in_process);
            if !self.webhook_functions.is_empty() && self.webhook_functions.reached.is_none() {
                let router = self.webhook_routes(&Metrics::default())?.router;
                server.serve_webhook(HOST, move |request| {
                    let router = router.clone();
                    async move {
                        let answered = router.oneshot(request.map(Body::from)).await;
                        let (head, body) = answered.unwrap_or_else(|never| match never {}).into_parts();
                        let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
                        http::Response::from_parts(head, body)
                    }
                });
            }
            let mut definitions = Vec::new();
            for definition in self.definitions()? {
                let mut definition = serde_json::to_value(definition)?;
                if self.converts(&definition) {
                    super::check_path(&definition)?;
                }
                self.convert_by(&mut definition, &client, authority.as_deref());
                definitions.push(serde_json::from_value(definition)?);
            }
            files::install(&admin, &definitions, permissions, names).await?;
            if cluster.is_empty() {
                let origin = || "the admission functions".to_owned();
                let objects = self.admission_configurations(&self.name, &client, authority.as_deref());
                let objects = objects.into_iter().map(|object| FromFile { object, origin: origin() });
                files::apply(&admin, &objects.collect::<Vec<_>>()).await?;
            }
            Ok(())
        }
    }
}
