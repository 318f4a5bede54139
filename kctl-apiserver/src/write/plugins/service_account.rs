//! `ServiceAccount`: a new Pod gets an existing account, and a volume with its token.
//!
//! Upstream: `Plugin.Admit` in `plugin/pkg/admission/serviceaccount/admission.go`.

use std::{collections::BTreeSet, sync::Arc};

use kctl_apimachinery::strconv;
use serde_json::{Value, json};

use super::{Mutation, forbidden};
use crate::{
    controllers::{
        Controller,
        service_accounts::{DEFAULT_ACCOUNT, ROOT_CA},
    },
    field_errors::text,
    json_path::push,
    kinds::core::service_account,
    request::RequestInfo,
    state::State,
    status::StatusError,
    store::Store,
};

/// The prefix of the names of token volumes. Five random characters follow.
const VOLUME: &str = "kube-api-access-";
/// The directory of the token in containers (`DefaultAPITokenMountPath`). Client libraries look here for their
/// credentials.
const MOUNTED_AT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The lifetime of a token in a volume, in seconds (`WarnOnlyBoundTokenExpirationSeconds`). An hour and seven seconds:
/// the odd number lets the server recognize requests of kubelet for such volumes.
const SECONDS_OF_MOUNTED: i64 = 3_607;
/// The annotation of mirror Pods. A mirror Pod runs from a file on the node, and its object only shows it.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// The annotation of accounts whose Pods may use only the Secrets of the account. Deprecated upstream, and still
/// evaluated.
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

/// Completes a new Pod. The plugin is off if its controller is off, because then no account exists.
pub(super) fn admit(state: &mut State, mutation: &mut Mutation<'_>) -> Result<(), StatusError> {
    if mutation.creates() && state.core.controllers.runs(Controller::ServiceAccount) {
        return complete_pod(&mut state.store, mutation.info, mutation.object);
    }
    Ok(())
}

/// Returns a list field. A value of another type counts as an empty list.
fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object[field].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the account of a Pod. The error is `Forbidden`, also in a new namespace whose account `default` the
/// controller has not created yet. Fails if it does not exist.
fn find_account(store: &Store, info: &RequestInfo, pod: &Value) -> Result<Arc<Value>, StatusError> {
    let (namespace, name) = (&info.namespace, text(&pod["spec"]["serviceAccountName"]));
    let found = store.object(&service_account::KIND, namespace, name);
    found.ok_or_else(|| forbidden(info, pod, &format!("there is no service account {name:?} in {namespace:?}")))
}

/// Sets the account of a Pod, the volume with its token, and its pull secrets. `automountServiceAccountToken` of the
/// Pod overrides the account's; the default is true. Pull secrets are copied if the Pod has none. Fails if the account
/// does not exist, or if the Pod uses Secrets that the account does not allow.
fn complete_pod(store: &mut Store, info: &RequestInfo, pod: &mut Value) -> Result<(), StatusError> {
    if pod["metadata"]["annotations"][MIRROR].is_string() {
        return check_mirror(info, pod);
    }
    if text(&pod["spec"]["serviceAccountName"]).is_empty() {
        pod["spec"]["serviceAccountName"] = DEFAULT_ACCOUNT.into();
    }
    // `serviceAccount` is the deprecated alias that old clients read (`Convert_core_PodSpec_To_v1_PodSpec`).
    pod["spec"]["serviceAccount"] = pod["spec"]["serviceAccountName"].clone();
    let account = find_account(store, info, pod)?;
    let automount = |object: &Value| object["automountServiceAccountToken"].as_bool();
    if automount(&pod["spec"]).or_else(|| automount(&account)).unwrap_or(true) {
        mount_token(store, &mut pod["spec"]);
    }
    if list(&pod["spec"], "imagePullSecrets").is_empty() {
        let secrets: Vec<Value> =
            list(&account, "imagePullSecrets").iter().map(|secret| json!({ "name": text(&secret["name"]) })).collect();
        if !secrets.is_empty() {
            pod["spec"]["imagePullSecrets"] = secrets.into();
        }
    }
    let is_enforced = account["metadata"]["annotations"][ENFORCE].as_str().and_then(strconv::parse_bool) == Some(true);
    if is_enforced { check_secrets(info, pod, &account) } else { Ok(()) }
}

/// Checks that a mirror Pod uses no objects of the API server. `ConfigMap`s are allowed by this plugin.
fn check_mirror(info: &RequestInfo, pod: &Value) -> Result<(), StatusError> {
    let spec = &pod["spec"];
    let has_source = |volume: &Value, kind: &str| {
        list(&volume["projected"], "sources").iter().any(|source| source[kind].is_object())
    };
    let uses_server = !text(&spec["serviceAccountName"]).is_empty()
        || CONTAINERS.iter().flat_map(|field| list(spec, field)).flat_map(secrets_of).next().is_some()
        || !list(spec, "imagePullSecrets").is_empty()
        || list(spec, "volumes").iter().any(|volume| {
            volume["secret"].is_object() || has_source(volume, "secret") || has_source(volume, "serviceAccountToken")
        });
    if uses_server {
        return Err(forbidden(info, pod, "a mirror pod must not use service accounts, Secrets or tokens"));
    }
    Ok(())
}

/// The lists of containers that may use Secrets. Ephemeral containers get no token upstream, either.
const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

/// Returns the Secrets that a container takes variables from.
fn secrets_of(container: &Value) -> impl Iterator<Item = &str> {
    let variables =
        list(container, "env").iter().filter_map(|variable| variable["valueFrom"]["secretKeyRef"]["name"].as_str());
    variables.chain(list(container, "envFrom").iter().filter_map(|from| from["secretRef"]["name"].as_str()))
}

/// Checks that a pod uses only the Secrets that its account lists (`limitSecretReferences`). The first missing Secret
/// is reported.
fn check_secrets(info: &RequestInfo, pod: &Value, account: &Value) -> Result<(), StatusError> {
    let names = |field: &str| -> BTreeSet<&str> {
        list(account, field).iter().map(|reference| text(&reference["name"])).collect()
    };
    let (mountable, pullable) = (names("secrets"), names("imagePullSecrets"));
    let spec = &pod["spec"];
    let of_volumes = list(spec, "volumes").iter().filter_map(|volume| volume["secret"]["secretName"].as_str());
    let of_containers = CONTAINERS.iter().flat_map(|field| list(spec, field)).flat_map(secrets_of);
    let pulled = list(spec, "imagePullSecrets").iter().map(|secret| text(&secret["name"]));
    let used = of_volumes.chain(of_containers).filter(|name| !mountable.contains(name));
    match used.chain(pulled.filter(|name| !pullable.contains(name))).next() {
        None => Ok(()),
        Some(secret) => {
            let by = text(&account["metadata"]["name"]);
            Err(forbidden(info, pod, &format!("service account {by} must list the Secret {secret:?} of the pod")))
        }
    }
}

/// Mounts the token volume in each container that mounts nothing at its directory (`mountServiceAccountToken`). An
/// existing volume with the prefix is reused, which makes the function idempotent.
fn mount_token(store: &mut Store, spec: &mut Value) {
    let needs_mount =
        |container: &Value| list(container, "volumeMounts").iter().all(|mount| mount["mountPath"] != MOUNTED_AT);
    if !CONTAINERS.iter().any(|field| list(spec, field).iter().any(needs_mount)) {
        return;
    }
    let existing =
        list(spec, "volumes").iter().map(|volume| text(&volume["name"])).find(|name| name.starts_with(VOLUME));
    let existing = existing.map(str::to_owned);
    let name = existing.clone().unwrap_or_else(|| format!("{VOLUME}{}", store.rng.suffix()));
    for field in CONTAINERS {
        let containers = spec.get_mut(field).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter(|container| needs_mount(container)) {
            push(&mut container["volumeMounts"], json!({ "name": name, "readOnly": true, "mountPath": MOUNTED_AT }));
        }
    }
    if existing.is_none() {
        push(&mut spec["volumes"], json!({ "name": name, "projected": token_volume_source() }));
    }
}

/// Returns the projected volume of `TokenVolumeSource`. Token, CA certificate and namespace: the three files that an
/// in-cluster client reads.
fn token_volume_source() -> Value {
    json!({
        "defaultMode": 0o644,
        "sources": [
            { "serviceAccountToken": { "expirationSeconds": SECONDS_OF_MOUNTED, "path": "token" } },
            { "configMap": { "name": ROOT_CA, "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
            { "downwardAPI": { "items": [
                { "path": "namespace", "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" } },
            ] } },
        ],
    })
}
