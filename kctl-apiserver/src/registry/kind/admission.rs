//! The admission plugins that handle writes of a kind.
//!
//! Upstream: `AllOrderedPlugins` in `pkg/kubeapiserver/options/plugins.go`.

/// A built-in admission plugin of kube-apiserver, as it handles the objects of one kind. A plugin that treats its kinds
/// differently has a variant for each of them. The variants are in the order of `AllOrderedPlugins`, in which they run.
///
/// A kind only names its plugins, because their functions read other objects. `write/plugins.rs` calls the functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Plugin {
    /// `LimitRanger` for Pods: default requests and limits, and the bounds of a `LimitRange`.
    LimitRangerForPods,
    /// `LimitRanger` for claims: the bounds of a `LimitRange` for their size.
    LimitRangerForClaims,
    /// `ServiceAccount`: the account of a Pod, and a volume with its token.
    ServiceAccount,
    /// `TaintNodesByCondition`: the taint of a new Node.
    TaintNodesByCondition,
    /// `PodSecurity` for Pods: rejects those that violate the standard of their namespace.
    PodSecurityForPods,
    /// `PodSecurity` for Namespaces: the labels that name a standard.
    PodSecurityForNamespaces,
    /// `PodSecurity` for workloads: warns about the Pod template, which is at this JSON pointer.
    PodSecurityForTemplates(&'static str),
    /// `Priority` for Pods: the priority of their class.
    PriorityForPods,
    /// `Priority` for classes: at most one is the global default.
    PriorityForClasses,
    /// `DefaultStorageClass`: the class of a new claim.
    DefaultStorageClass,
    /// `StorageObjectInUseProtection`: adds this finalizer. A controller removes it when the object is no longer in
    /// use.
    StorageObjectInUseProtection(&'static str),
    /// `PersistentVolumeClaimResize`: the claims that may grow.
    PersistentVolumeClaimResize,
    /// `RuntimeClass`: overhead, node selector and tolerations of a new Pod.
    RuntimeClass,
    /// `CertificateApproval`: the permission to approve requests for a signer.
    CertificateApproval,
    /// `CertificateSigning`: the permission to sign for a signer.
    CertificateSigning,
    /// `ClusterTrustBundleAttest`: the permission to attest for a signer.
    ClusterTrustBundleAttest,
    /// `CertificateSubjectRestriction`: rejects requests for certificates of administrators.
    CertificateSubjectRestriction,
    /// `DefaultIngressClass`: the class of a new Ingress.
    DefaultIngressClass,
    /// `PodTopologyLabels`: region and zone of the Node of a new Pod.
    PodTopologyLabels,
    /// `PodResizeValidator`: the resizes for which the Node has room.
    PodResizeValidator,
}
