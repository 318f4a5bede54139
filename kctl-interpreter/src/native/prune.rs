//! Removing what only the object's own cluster can know, before the object goes to others.

use serde_json::{Map, Value};

use super::{NativeError, Result, nested, secret, serviceaccount};
use crate::typed::Typed;

/// Fields of the metadata that the API server or a controller fills in.
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

/// Prunes an object of any kind. Kinds are told by their name alone, whatever their group.
pub(super) fn prune(mut object: Value) -> Result<Value> {
    for field in METADATA {
        nested::remove(&mut object, &["metadata", field]);
    }
    nested::remove(&mut object, &["status"]);
    match object.get("kind").and_then(Value::as_str).unwrap_or_default() {
        "Deployment" => deployment(&mut object),
        "Job" => job(&mut object)?,
        "Secret" => secret(&mut object)?,
        "ServiceAccount" => service_account(&mut object)?,
        "Service" => service(&mut object),
        "PersistentVolumeClaim" => claim(&mut object),
        _ => {}
    }
    Ok(object)
}

fn deployment(object: &mut Value) {
    for annotation in ["deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history"] {
        nested::remove(object, &["metadata", "annotations", annotation]);
    }
}

fn job(object: &mut Value) -> Result<()> {
    let job = Typed::from_object("Job", object).map_err(NativeError::object("Job"))?;
    if *job.at("/spec/manualSelector") != Value::Bool(true) {
        let uids = ["controller-uid", "batch.kubernetes.io/controller-uid"];
        let names = ["job-name", "batch.kubernetes.io/job-name"];
        without(object, &["spec", "selector", "matchLabels"], &uids)?;
        without(object, &["spec", "template", "metadata", "labels"], &[uids, names].concat())?;
    }
    nested::remove(object, &["spec", "ttlSecondsAfterFinished"]);
    Ok(())
}

/// Removes labels that the cluster's job controller made.
fn without(object: &mut Value, path: &[&str], labels: &[&str]) -> Result<()> {
    let Some(found) = nested::string_map(object, path)? else { return Ok(()) };
    let kept = found.iter().filter(|(name, _)| !labels.contains(&name.as_str()));
    let kept: Map<_, _> = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    nested::set(object, path, Value::Object(kept))
}

fn secret(object: &mut Value) -> Result<()> {
    if secret::is_token(object) {
        nested::remove(object, &["metadata", "annotations", "kubernetes.io/service-account.uid"]);
        nested::set(object, &["data"], Value::Null)?;
    }
    Ok(())
}

fn service_account(object: &mut Value) -> Result<()> {
    let Some(secrets) = nested::slice(object, &["secrets"]).ok().flatten() else { return Ok(()) };
    let prefix = format!("{}-token-", object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default());
    let mut kept = secrets.to_vec();
    let mut idx = 0;
    while idx < kept.len() {
        if serviceaccount::name("secrets", &kept[idx])?.starts_with(&prefix) {
            // Karmada moves on after a removal and so skips the next secret, which has moved up.
            kept.remove(idx);
        }
        idx += 1;
    }
    nested::set(object, &["secrets"], kept.into())
}

fn service(object: &mut Value) {
    // A headless service says so itself, and must stay one.
    if nested::string(object, &["spec", "clusterIP"]).ok().flatten().is_some_and(|ip| ip != "None") {
        nested::remove(object, &["spec", "clusterIP"]);
        nested::remove(object, &["spec", "clusterIPs"]);
    }
}

fn claim(object: &mut Value) {
    let path = ["metadata", "annotations", "volume.kubernetes.io/selected-node"];
    if nested::string(object, &path).ok().flatten().is_some_and(|node| !node.is_empty()) {
        nested::remove(object, &path);
    }
}
