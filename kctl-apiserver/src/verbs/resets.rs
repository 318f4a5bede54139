//! What is reset of an object that is written: all that the resource, or the subresource, is not for.

use crate::{apply::Resets, kinds::Resource};

const STATUS: Resets = Resets(&[&["status"]]);
const SPEC: Resets = Resets(&[&["spec"]]);
const ALL_BUT_STATUS: Resets = Resets(&[&["metadata"], &["spec"]]);

/// Kinds that reset something else (`GetResetFields` of their strategies): group, resource, subresource.
const OTHERS: &[(&str, &str, &str, Resets)] = &[
    ("", "namespaces", "finalize", STATUS),
    ("", "pods", "status", Resets(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", "status", ALL_BUT_STATUS),
    ("apiregistration.k8s.io", "apiservices", "status", ALL_BUT_STATUS),
    ("apps", "deployments", "status", Resets(&[&["spec"], &["metadata", "labels"]])),
    ("certificates.k8s.io", "certificatesigningrequests", "", Resets(&[&["spec"], &["status"]])),
    ("certificates.k8s.io", "certificatesigningrequests", "approval", Resets(&[&["spec"], &["status", "certificate"]])),
    ("certificates.k8s.io", "certificatesigningrequests", "status", Resets(&[&["spec"], &["status", "conditions"]])),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", "status", ALL_BUT_STATUS),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", "status", ALL_BUT_STATUS),
    ("networking.k8s.io", "servicecidrs", "status", ALL_BUT_STATUS),
    ("resource.k8s.io", "resourceclaims", "status", ALL_BUT_STATUS),
    ("storage.k8s.io", "volumeattachments", "status", ALL_BUT_STATUS),
];

/// What is reset where something is written.
pub(super) fn of(resource: &Resource, subresource: &str) -> Resets {
    let (group, name) = (resource.of.group.as_str(), resource.of.resource.as_str());
    let other = OTHERS.iter().find(|(of, resource, sub, _)| (*of, *resource, *sub) == (group, name, subresource));
    match (other, subresource) {
        (Some((.., resets)), _) => *resets,
        (None, "status") if resource.custom.is_some() => ALL_BUT_STATUS,
        (None, "status") => SPEC,
        (None, "") if resource.has_status() => STATUS,
        (None, _) => Resets::NOTHING,
    }
}
