//! The controllers of kube-controller-manager that a server runs, by the names of its `--controllers` flag.

use std::{collections::BTreeSet, str::FromStr, time::Duration};

/// A controller of kube-controller-manager that the embedded API server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Controller {
    /// `clusterrole-aggregation-controller`: fills in the rules of `ClusterRoles` with an `aggregationRule`.
    ClusterRoleAggregation,
    /// `garbage-collector-controller`: deletes objects whose owners no longer exist, and applies deletion propagation.
    GarbageCollector,
    /// `namespace-controller`: deletes the objects of a namespace that is being deleted, and then the namespace.
    Namespace,
    /// `resourcequota-controller`: counts the usage of each `ResourceQuota`.
    ResourceQuota,
    /// `root-ca-certificate-publisher-controller`: creates the `ConfigMap` `kube-root-ca.crt` in each namespace.
    RootCaCertificatePublisher,
    /// `serviceaccount-controller`: creates the `ServiceAccount` `default` in each namespace. It also enables the
    /// admission plugin `ServiceAccount`.
    ServiceAccount,
    /// `serviceaccount-token-controller`: fills in Secrets of type `kubernetes.io/service-account-token`.
    ServiceAccountToken,
}

impl Controller {
    /// All controllers, in the order of their names.
    pub const ALL: [Self; 7] = [
        Self::ClusterRoleAggregation,
        Self::GarbageCollector,
        Self::Namespace,
        Self::ResourceQuota,
        Self::RootCaCertificatePublisher,
        Self::ServiceAccount,
        Self::ServiceAccountToken,
    ];

    /// Returns the name that kube-controller-manager gives the controller.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClusterRoleAggregation => "clusterrole-aggregation-controller",
            Self::GarbageCollector => "garbage-collector-controller",
            Self::Namespace => "namespace-controller",
            Self::ResourceQuota => "resourcequota-controller",
            Self::RootCaCertificatePublisher => "root-ca-certificate-publisher-controller",
            Self::ServiceAccount => "serviceaccount-controller",
            Self::ServiceAccountToken => "serviceaccount-token-controller",
        }
    }
}

/// Selects the controllers that [`ApiServer::controllers_with`](crate::ApiServer::controllers_with) runs. The default
/// is all of them, without a delay.
///
/// ```
/// use kctl_apiserver::{Controller, ControllerOptions};
///
/// // As envtest's API server: no garbage collector, and namespaces that stay `Terminating`.
/// let bare = ControllerOptions::none();
/// assert!(!bare.runs(Controller::GarbageCollector));
///
/// // The values of kube-controller-manager's flag `--controllers`.
/// let some: ControllerOptions = "*,-namespace-controller".parse()?;
/// assert!(some.runs(Controller::GarbageCollector) && !some.runs(Controller::Namespace));
/// # Ok::<(), kctl_apiserver::UnknownControllerError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerOptions {
    /// The selected controllers.
    enabled: BTreeSet<Controller>,
    /// The time between a change and the reaction to it.
    pub(crate) delay: Duration,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        Self { enabled: Controller::ALL.into(), delay: Duration::ZERO }
    }
}

impl ControllerOptions {
    /// Selects no controller. CRDs are still established and deleted: the API server itself does that.
    pub fn none() -> Self {
        Self { enabled: BTreeSet::new(), delay: Duration::ZERO }
    }

    /// Runs this controller too, in addition to the selected ones.
    #[must_use]
    pub fn with(mut self, controller: Controller) -> Self {
        self.enabled.insert(controller);
        self
    }

    /// Leaves out this controller: its work is not done, unless the test does it.
    #[must_use]
    pub fn without(mut self, controller: Controller) -> Self {
        self.enabled.remove(&controller);
        self
    }

    /// Leaves out the controllers that create objects in each namespace (`default`, `kube-root-ca.crt`), and the one
    /// that fills token Secrets. This also disables the admission plugin `ServiceAccount`.
    #[must_use]
    pub fn without_service_accounts(self) -> Self {
        self.without(Controller::ServiceAccount)
            .without(Controller::ServiceAccountToken)
            .without(Controller::RootCaCertificatePublisher)
    }

    /// Delays the controllers' reaction to each change, as a watch does in a cluster.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Returns `true` if the controller is selected.
    pub fn runs(&self, controller: Controller) -> bool {
        self.enabled.contains(&controller)
    }
}

/// A name that no controller of the embedded API server has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown controller {name:?}; known are {}", Controller::ALL.map(Controller::name).join(", "))]
pub struct UnknownControllerError {
    name: String,
}

/// Parses the list of kube-controller-manager's `--controllers` (`IsControllerEnabled` of `k8s.io/controller-manager`).
/// `*` selects all controllers, `foo` adds and `-foo` removes one. The first entry that names a controller decides.
/// Without `*`, only the named controllers run.
impl FromStr for ControllerOptions {
    type Err = UnknownControllerError;

    /// Selects the controllers of a list. An empty list selects none of them.
    ///
    /// # Errors
    /// Fails with the first unknown name, even if a dash precedes it.
    fn from_str(list: &str) -> Result<Self, Self::Err> {
        let names: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        let is_known = |name: &str| Controller::ALL.iter().any(|candidate| candidate.name() == name);
        for name in &names {
            let bare = name.strip_prefix('-').unwrap_or(name);
            if bare != "*" && !is_known(bare) {
                return Err(UnknownControllerError { name: (*name).to_owned() });
            }
        }
        let is_enabled = |controller: &Controller| {
            let decided = names.iter().find(|name| name.trim_start_matches('-') == controller.name());
            decided.map_or_else(|| names.contains(&"*"), |name| !name.starts_with('-'))
        };
        Ok(Self { enabled: Controller::ALL.into_iter().filter(is_enabled).collect(), delay: Duration::ZERO })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_flag_is_parsed_as_upstream() {
        use Controller::{GarbageCollector, Namespace};
        for (list, garbage_collector, namespace) in [
            ("*", true, true),
            ("*,-namespace-controller", true, false),
            ("-namespace-controller,*", true, false),
            ("namespace-controller", false, true),
            ("-namespace-controller", false, false),
            ("namespace-controller,-namespace-controller,*", true, true),
            ("-*", false, false),
            ("", false, false),
        ] {
            let options: ControllerOptions = list.parse().unwrap();
            assert_eq!(
                (options.runs(GarbageCollector), options.runs(Namespace)),
                (garbage_collector, namespace),
                "{list}"
            );
        }
        let unknown = "*,-gc".parse::<ControllerOptions>().unwrap_err().to_string();
        assert!(
            unknown.starts_with("unknown controller \"-gc\"; known are clusterrole-aggregation-controller, "),
            "{unknown}"
        );
    }
}
