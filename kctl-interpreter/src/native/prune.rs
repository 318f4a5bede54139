//! `Prune`: removes fields that belong to one cluster, before the object is copied to others.
//!
//! The source is `RemoveIrrelevantFields` in Karmada's
//! `pkg/resourceinterpreter/default/native/prune/prune.go`. Every kind loses the metadata of
//! [`METADATA`] and its status. Six kinds lose more: see the functions of this file.

use serde_json::{Map, Value};

use super::{NativeError, Result, nested, secret, serviceaccount};
use crate::typed::Typed;

/// Fields of `metadata` that an API server or a controller sets in its own cluster.
const METADATA: [&str; 10] = [
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
    "ownerReferences",
    "finalizers",
];

/// Prunes an object of any kind.
///
/// Kinds are compared by `kind` alone, whatever their group, as in Karmada: a custom resource named
/// `Service` is treated as a Service.
///
/// # Errors
/// A field that a rule reads has another JSON type than Kubernetes gives it.
pub(super) fn prune(mut object: Value) -> Result<Value> {
    for field in METADATA {
        nested::remove(&mut object, &["metadata", field]);
    }
    nested::remove(&mut object, &["status"]);
    match object.get("kind").and_then(Value::as_str).unwrap_or_default() {
        "Deployment" => prune_deployment(&mut object),
        "Job" => prune_job(&mut object)?,
        "Secret" => prune_secret(&mut object)?,
        "ServiceAccount" => prune_service_account(&mut object)?,
        "Service" => prune_service(&mut object),
        "PersistentVolumeClaim" => prune_claim(&mut object),
        _ => {}
    }
    Ok(object)
}

/// Removes the revision annotations that the Deployment controller maintains.
fn prune_deployment(object: &mut Value) {
    for annotation in ["deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history"] {
        nested::remove(object, &["metadata", "annotations", annotation]);
    }
}

/// Removes the labels that the API server generated, unless `spec.manualSelector` is true, and
/// `spec.ttlSecondsAfterFinished`.
///
/// With a TTL the Job of a member cluster would be deleted, and the control plane would create it
/// again.
fn prune_job(object: &mut Value) -> Result<()> {
    let job = Typed::from_object("Job", object).map_err(NativeError::object("Job"))?;
    if *job.at("/spec/manualSelector") != Value::Bool(true) {
        let uids = ["controller-uid", "batch.kubernetes.io/controller-uid"];
        let names = ["job-name", "batch.kubernetes.io/job-name"];
        remove_labels(object, &["spec", "selector", "matchLabels"], &uids)?;
        remove_labels(object, &["spec", "template", "metadata", "labels"], &[uids, names].concat())?;
    }
    nested::remove(object, &["spec", "ttlSecondsAfterFinished"]);
    Ok(())
}

fn remove_labels(object: &mut Value, path: &[&str], labels: &[&str]) -> Result<()> {
    let Some(found) = nested::string_map(object, path)? else { return Ok(()) };
    let remaining = found.iter().filter(|(name, _)| !labels.contains(&name.as_str()));
    let remaining: Map<_, _> = remaining.map(|(name, value)| (name.clone(), value.clone())).collect();
    nested::set(object, path, Value::Object(remaining))
}

/// Removes the token and the uid annotation of a Secret of the type
/// `kubernetes.io/service-account-token`: each cluster issues its own.
fn prune_secret(object: &mut Value) -> Result<()> {
    if secret::is_token(object) {
        nested::remove(object, &["metadata", "annotations", "kubernetes.io/service-account.uid"]);
        nested::set(object, &["data"], Value::Null)?;
    }
    Ok(())
}

/// Removes references to generated token Secrets from `secrets`: those that begin with the
/// account's name and `-token-`.
fn prune_service_account(object: &mut Value) -> Result<()> {
    let Some(secrets) = nested::slice(object, &["secrets"]).ok().flatten() else { return Ok(()) };
    let prefix = format!("{}-token-", object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default());
    let mut remaining = secrets.to_vec();
    let mut idx = 0;
    while idx < remaining.len() {
        if serviceaccount::name("secrets", &remaining[idx])?.starts_with(&prefix) {
            // As in Karmada, the index advances after a removal too, which skips the next secret.
            remaining.remove(idx);
        }
        idx += 1;
    }
    nested::set(object, &["secrets"], remaining.into())
}

/// Removes `spec.clusterIP` and `spec.clusterIPs`, which each cluster allocates. A headless Service
/// keeps its `None`.
fn prune_service(object: &mut Value) {
    // A headless Service has the `clusterIP` `None`, and must remain headless.
    if nested::string(object, &["spec", "clusterIP"]).ok().flatten().is_some_and(|ip| ip != "None") {
        nested::remove(object, &["spec", "clusterIP"]);
        nested::remove(object, &["spec", "clusterIPs"]);
    }
}

/// Removes the annotation that the scheduler of a cluster set to select a node for the volume.
fn prune_claim(object: &mut Value) {
    let path = ["metadata", "annotations", "volume.kubernetes.io/selected-node"];
    if nested::string(object, &path).ok().flatten().is_some_and(|node| !node.is_empty()) {
        nested::remove(object, &path);
    }
}
