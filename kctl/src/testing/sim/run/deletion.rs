//! The last phase of a run: deletes everything that users created, and checks what is left and what it cost.

use http::Request;
use kctl_runtime::{
    reconcile::{Result, ResultExt},
    spec::ControllerSpec,
};
use serde_json::Value;

use crate::{
    app,
    testing::sim::{
        checks::Violation,
        snapshot::{Id, uid},
        world::World,
    },
};

/// Deletes the applied objects, those that the steps created, and each primary of a custom resource, with background
/// propagation like `kubectl delete`.
///
/// A primary of a built-in kind that the app created has to go by itself: it may be a leaked object of another controller.
pub(super) async fn delete_all(world: &World) -> Result<()> {
    world.shared.log("user", "deletes what was applied, what the steps created, and all primaries");
    let mut paths: Vec<(String, String)> = Vec::new();
    for file in &world.objects {
        let name = file.object["metadata"]["name"].as_str().unwrap_or_default();
        let path = app::path(&world.client, &file.object).await.context(&file.origin)?;
        paths.push((String::new(), format!("{path}/{name}")));
    }
    let specs = (world.shared.scenario.app)().specs();
    let snapshot = world.shared.checks.lock().comparable_state();
    for (id, object) in &snapshot.objects {
        let is_custom_primary = specs.iter().filter(|spec| spec.crd.is_some()).any(|spec| id.is_of(&spec.primary));
        if is_custom_primary || snapshot.by_users.contains(uid(object)) {
            paths.push((id.cluster.clone(), path_of(id, object)));
        }
    }
    paths.sort();
    paths.dedup();
    for (cluster, path) in paths {
        let client = world.client_of(&cluster);
        match client
            .request::<Value>(Request::delete(format!("{path}?propagationPolicy=Background")).body(Vec::new())?)
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            other => drop(other.context(&path)?),
        }
    }
    Ok(())
}

fn path_of(id: &Id, object: &Value) -> String {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let namespace = if id.namespace.is_empty() { String::new() } else { format!("/namespaces/{}", id.namespace) };
    format!("{root}/{version}{namespace}/{}/{}", id.resource, id.name)
}

/// Checks that nothing is left of what the app created, and no primary of what users created.
pub(super) fn check_leaks(world: &World) -> Result<(), Violation> {
    let checks = world.shared.checks.lock();
    let specs = (world.shared.scenario.app)().specs();
    let leaked = checks.find_leaks(&world.shared.scenario.kept, |id, object| {
        let mut specs_of_kind = specs.iter().filter(|spec| id.is_of(&spec.primary));
        // Others may hold an object of a built-in kind: `kubernetes.io/pvc-protection` is not removed here, without its
        // controller.
        let has_finalizer_of = |spec: &ControllerSpec| {
            let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
            let mut finalizers = finalizers.filter_map(Value::as_str);
            finalizers.any(|finalizer| Some(finalizer) == spec.finalizer.as_deref())
        };
        specs_of_kind.any(|spec| {
            spec.crd.is_some() || (checks.snapshot.by_users.contains(uid(object)) && has_finalizer_of(spec))
        })
    });
    if leaked.is_empty() {
        return Ok(());
    }
    let what = format!("still there after everything that users created was deleted: {}", leaked.join(", "));
    Err(Violation::new("no leaked objects", what))
}

/// Checks the number of requests per change.
pub(super) fn check_requests(world: &World) -> Result<(), Violation> {
    let checks = world.shared.checks.lock();
    let Some(surplus) = checks.surplus_requests() else { return Ok(()) };
    let what = format!("{surplus}; {}", checks.authors.most_frequent_request());
    Err(Violation::new("bounded requests per change", what))
}
