//! The usage of `ResourceQuotas` (`pkg/controller/resourcequota`): computed again when an object is deleted or shrinks,
//! and for a new quota. The admission plugin charges creates and updates.
//!
//! The admission plugin only adds to `status.used`. Everything that lowers the usage is found by counting again:
//!
//! - an object was deleted,
//! - an update has freed something (`Quota::frees_usage` of the kind), such as a Pod that has ended,
//! - `spec.hard` of a quota is new or has changed.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::{
    kinds,
    lifecycle::Writer,
    quota::{Counter, recount_status},
    registry::kind::{FreesUsage, Quota, Subresource},
    status::GroupResource,
    store::{Event, Key, Store},
};

/// Writes the status of quotas as kube-controller-manager.
const WRITER: Writer = Writer::for_manager(Subresource::Status);

/// Returns `true` if there are quotas. Most servers have none, and count nothing. The look-up does not create the table
/// of a resource that has no objects.
pub(super) fn has_any(store: &Store) -> bool {
    let resource = kinds::core::resource_quota::KIND.group_resource();
    store.known_table(&resource).is_some_and(|table| !table.is_empty())
}

/// Returns the namespace whose quotas a change may free, or whose quota is not counted yet (`DefaultUpdateFilter`).
/// Cluster-scoped objects, and kinds that quotas ignore, never affect a quota.
pub(super) fn affected_namespace(resource: &GroupResource, event: &Event, now: jiff::Timestamp) -> Option<String> {
    let quota = kinds::find(resource).map_or(&Quota::DEFAULT, |kind| &kind.quota);
    if event.key.0.is_empty() || !quota.is_counted {
        return None;
    }
    let frees = |frees: FreesUsage| {
        let before = event.before.as_ref().map(|before| before.value());
        frees(before.as_deref(), &event.object.value(), now)
    };
    let is_touched = event.deleted || quota.frees_usage.is_some_and(frees);
    is_touched.then(|| event.key.0.clone())
}

/// Computes the usage of all quotas in a namespace. Only resources that a quota names in `spec.hard` are read. A quota
/// whose status is up to date is not written.
pub(super) fn recount(store: &mut Store, namespace: &str) {
    let group_resource = kinds::core::resource_quota::KIND.group_resource();
    let quotas: Vec<Arc<Value>> = store.objects(&group_resource, Some(namespace)).collect();
    for quota in quotas {
        let namespaced = store.registry.all().filter(|resource| resource.listed.namespaced);
        let resources: BTreeMap<&GroupResource, _> = namespaced.map(|resource| (&resource.id, resource)).collect();
        let counters: Vec<Counter> =
            resources.into_values().filter_map(|resource| Counter::for_resource(resource)).collect();
        let hard = quota["spec"]["hard"].as_object();
        let counted =
            counters.iter().filter(|counter| hard.is_some_and(|hard| hard.keys().any(|name| counter.counts(name))));
        let objects = counted.map(|counter| {
            let objects: Vec<Arc<Value>> = store.objects(counter.resource(), Some(namespace)).collect();
            (counter, objects)
        });
        let Some(status) = recount_status(&quota, objects, store.clock.now()) else { continue };
        let mut new = Value::clone(&quota);
        new["status"] = status;
        let key: Key = (namespace.to_owned(), quota["metadata"]["name"].as_str().unwrap_or_default().to_owned());
        WRITER.write(store, &group_resource, &key, &quota, new);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{ApiServer, ControllerOptions};

    const QUOTA: &str = "/api/v1/namespaces/default/resourcequotas/q";

    /// Returns the status of the quota once everything is counted.
    async fn status(server: &ApiServer) -> Value {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        server.succeed("GET", QUOTA, &Value::Null).await["status"].clone()
    }

    #[tokio::test(start_paused = true)]
    async fn deleted_objects_free_quota() {
        let server = ApiServer::new();
        // The ConfigMap `kube-root-ca.crt` of the namespace would be counted, too.
        tokio::spawn(server.controllers_with(&ControllerOptions::default().without_service_accounts()));
        let configs = "/api/v1/namespaces/default/configmaps";
        server.succeed("POST", configs, &json!({ "metadata": { "name": "before" } })).await;
        let hard = json!({ "configmaps": "2", "count/widgets.example.com": "3", "pods": "1" });
        let quota = json!({ "metadata": { "name": "q" }, "spec": { "hard": hard } });
        server.succeed("POST", QUOTA.trim_end_matches("/q"), &quota).await;
        // As kube-apiserver and its controller: no evaluator counts widgets.
        assert_eq!(status(&server).await, json!({ "hard": hard, "used": { "configmaps": "1", "pods": "0" } }));
        server.succeed("POST", configs, &json!({ "metadata": { "name": "a" } })).await;
        let (code, rejected) = server.send_json("POST", configs, &json!({ "metadata": { "name": "b" } })).await;
        let message = rejected["message"].as_str().unwrap();
        assert!(code == 403 && message.contains("exceeded quota \"q\": configmaps"), "{rejected}");
        server.succeed("DELETE", &format!("{configs}/before"), &json!({})).await;
        assert_eq!(status(&server).await["used"]["configmaps"], "1");
        server.succeed("POST", configs, &json!({ "metadata": { "name": "b" } })).await;
    }

    #[tokio::test(start_paused = true)]
    async fn ended_pod_is_not_charged() {
        let server = ApiServer::new();
        tokio::spawn(server.controllers());
        let quota = json!({ "metadata": { "name": "q" }, "spec": { "hard": { "pods": "1", "count/pods": "2" } } });
        server.succeed("POST", QUOTA.trim_end_matches("/q"), &quota).await;
        assert_eq!(status(&server).await["used"], json!({ "count/pods": "0", "pods": "0" }));
        let pod = json!({ "metadata": { "name": "a" }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
        let pods = "/api/v1/namespaces/default/pods";
        let mut pod = server.succeed("POST", pods, &pod).await;
        assert_eq!(status(&server).await["used"], json!({ "count/pods": "1", "pods": "1" }));
        pod["status"]["phase"] = "Succeeded".into();
        server.succeed("PUT", &format!("{pods}/a/status"), &pod).await;
        assert_eq!(status(&server).await["used"], json!({ "count/pods": "1", "pods": "0" }));
    }
}
