//! The subresource that a request addresses, and for which a kind has rules.

/// A subresource of the served resources, or the object itself. Discovery defines which resource has which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subresource {
    /// The object itself, without a subresource.
    Main,
    /// Approves or denies a `CertificateSigningRequest`.
    Approval,
    /// Connects to the running process of a container.
    Attach,
    /// Assigns a Pod to a Node.
    Binding,
    /// Adds ephemeral containers to a Pod.
    EphemeralContainers,
    /// Deletes a Pod if its `PodDisruptionBudget` allows it.
    Eviction,
    /// Runs a command in a container.
    Exec,
    /// The finalizers in the `spec` of a Namespace.
    Finalize,
    /// Reads the log of a container.
    Log,
    /// Connects to ports of a Pod.
    PortForward,
    /// Forwards HTTP requests to a Pod, a Service or a Node.
    Proxy,
    /// The resources of a Pod's containers.
    Resize,
    /// The replicas, as a `Scale`.
    Scale,
    /// The `status` of the object.
    Status,
    /// Creates a token for a `ServiceAccount`.
    Token,
}

impl Subresource {
    /// The object itself and all subresources.
    const ALL: [Self; 15] = [
        Self::Main,
        Self::Approval,
        Self::Attach,
        Self::Binding,
        Self::EphemeralContainers,
        Self::Eviction,
        Self::Exec,
        Self::Finalize,
        Self::Log,
        Self::PortForward,
        Self::Proxy,
        Self::Resize,
        Self::Scale,
        Self::Status,
        Self::Token,
    ];

    /// Returns the subresource with this name in a path; the empty name is the object itself. `None` if no served
    /// resource has the subresource.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subresource| subresource.as_str() == name)
    }

    /// Returns the name in paths, roles and `managedFields`; empty for the object itself.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Approval => "approval",
            Self::Attach => "attach",
            Self::Binding => "binding",
            Self::EphemeralContainers => "ephemeralcontainers",
            Self::Eviction => "eviction",
            Self::Exec => "exec",
            Self::Finalize => "finalize",
            Self::Log => "log",
            Self::PortForward => "portforward",
            Self::Proxy => "proxy",
            Self::Resize => "resize",
            Self::Scale => "scale",
            Self::Status => "status",
            Self::Token => "token",
        }
    }

    /// Returns `true` for the object itself.
    pub(crate) fn is_main(self) -> bool {
        self == Self::Main
    }

    /// Returns `true` for `status`.
    pub(crate) fn is_status(self) -> bool {
        self == Self::Status
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn every_subresource_in_discovery_is_known() {
        let registry = Registry::from_kinds(&[]);
        for listed in registry.all().flat_map(|resource| &resource.subresources) {
            let (_, name) = listed.name.split_once('/').unwrap();
            let known = Subresource::from_name(name).map(Subresource::as_str);
            assert_eq!(known, Some(name), "{}", listed.name);
        }
    }
}
