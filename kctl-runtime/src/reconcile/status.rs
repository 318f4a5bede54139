//! The kinds whose status a controller can write, and the types of these statuses.

use k8s_openapi::{
    api::{
        apps::v1::{
            DaemonSet, DaemonSetStatus, Deployment, DeploymentStatus, ReplicaSet, ReplicaSetStatus, StatefulSet,
            StatefulSetStatus,
        },
        autoscaling::v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus},
        batch::v1::{CronJob, CronJobStatus, Job, JobStatus},
        certificates::v1::{CertificateSigningRequest, CertificateSigningRequestStatus},
        core::v1::{
            Namespace, NamespaceStatus, Node, NodeStatus, PersistentVolume, PersistentVolumeClaim,
            PersistentVolumeClaimStatus, PersistentVolumeStatus, Pod, PodStatus, ReplicationController,
            ReplicationControllerStatus, ResourceQuota, ResourceQuotaStatus, Service, ServiceStatus,
        },
        networking::v1::{Ingress, IngressStatus},
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus},
        storage::v1::{VolumeAttachment, VolumeAttachmentStatus},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, CustomResourceDefinitionStatus},
};
use serde::Serialize;

use super::seal::Seal;

/// A kind with a status that can be written: a custom resource with `#[resource(…, status = "…")]`, or a built-in kind.
///
/// `From` is [`Derived`] or [`BuiltIn`] and is always inferred. It only keeps the two groups of implementations apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no status",
    label = "no status is declared",
    note = "help: write `#[resource(…, status = \"…\")]` on its spec; in a helper function of a controller, name the kind: `Controller<Primary = Kind> + WritesStatus`",
    note = "code: K0032"
)]
pub trait HasStatus<From> {
    /// The type of `.status`.
    type Status: Serialize + Send + 'static;
    #[doc(hidden)]
    const SEAL: Seal;
}

/// Marks kinds that kube's derive or `#[resource]` generated.
#[derive(Debug)]
pub struct Derived;
/// Marks kinds of `k8s-openapi`.
#[derive(Debug)]
pub struct BuiltIn;

#[diagnostic::do_not_recommend]
impl<K: kube::core::object::HasStatus<Status: Serialize + Send + 'static>> HasStatus<Derived> for K {
    type Status = K::Status;
    const SEAL: Seal = Seal;
}

macro_rules! built_in {
    ($($kind:ty: $status:ty),* $(,)?) => {$(
        #[diagnostic::do_not_recommend]
        impl HasStatus<BuiltIn> for $kind {
            type Status = $status;
            const SEAL: Seal = Seal;
        }
    )*};
}

built_in! {
    CertificateSigningRequest: CertificateSigningRequestStatus,
    CronJob: CronJobStatus,
    CustomResourceDefinition: CustomResourceDefinitionStatus,
    DaemonSet: DaemonSetStatus,
    Deployment: DeploymentStatus,
    HorizontalPodAutoscaler: HorizontalPodAutoscalerStatus,
    Ingress: IngressStatus,
    Job: JobStatus,
    Namespace: NamespaceStatus,
    Node: NodeStatus,
    PersistentVolume: PersistentVolumeStatus,
    PersistentVolumeClaim: PersistentVolumeClaimStatus,
    Pod: PodStatus,
    PodDisruptionBudget: PodDisruptionBudgetStatus,
    ReplicaSet: ReplicaSetStatus,
    ReplicationController: ReplicationControllerStatus,
    ResourceQuota: ResourceQuotaStatus,
    Service: ServiceStatus,
    StatefulSet: StatefulSetStatus,
    VolumeAttachment: VolumeAttachmentStatus,
}
