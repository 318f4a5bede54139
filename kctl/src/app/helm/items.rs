//! The values of a chart, with their comments and defaults.

use kctl_runtime::{manifest::Resources, shard::SLOTS_MAX};
use serde_json::{Value, json};

use super::{
    ChartOptions, Parts,
    values::{Item, Switch, list, map, section, string, switch, switch_of_option, value},
};

/// Returns the values of the chart with their defaults.
///
/// Values for webhooks and CRDs are left out if the app has none of these, so that every value has an effect. An app without
/// controllers keeps `leaderElection` and `shards`: the leader or the owner of slot 0 renews the certificate that the program makes.
pub(super) fn items(options: &ChartOptions, parts: &Parts) -> Vec<Item> {
    let slots = options.manager.shards.unwrap_or(0);
    let elects = elects(options);
    let webhooks_alone = options.manager.webhooks_alone;
    let replicas = if elects || slots > 0 || webhooks_alone { 2 } else { 1 };
    let replica_count = if webhooks_alone {
        "Number of replicas, which all serve the webhooks."
    } else {
        "Number of replicas. More than one needs leaderElection.enabled or shards."
    };
    let mut items = vec![
        value("replicaCount", replica_count, json!(replicas), json!({ "type": "integer", "minimum": 0 })),
        leader_election(options),
        value(
            "shards",
            "Number of slots that the replicas share; 0 for none. It takes the place of leaderElection.\n\
             Replicas with different numbers, or with other watchNamespaces, don't work side by side, so change them with `--set strategy.type=Recreate`.",
            json!(slots),
            json!({ "type": "integer", "minimum": 0, "maximum": SLOTS_MAX }),
        )
        .mark_given(Switch::from_flag(options.manager.shards.is_some())),
        map("strategy", "Strategy of the Deployment; empty for one that fits leaderElection and shards.", json!({})),
        value(
            "revisionHistoryLimit",
            "Number of old ReplicaSets that are kept for a rollback; empty for the default of Kubernetes, 10.",
            "".into(),
            json!({ "type": ["integer", "string"], "minimum": 0, "maxLength": 0 }),
        ),
        image(options),
        list("imagePullSecrets", "Secrets for a private registry, for example `- name: registry`."),
        string("nameOverride", "Takes the place of the chart's name in names and labels.", ""),
        string("fullnameOverride", "Takes the place of the names of all objects.", ""),
        map("resources", "CPU and memory of the container.", options.resources.object())
            .mark_given(Switch::from_flag(options.resources != Resources::default())),
        list("extraArgs", "More arguments of `run`, for example `- --log-format=json`."),
        list("extraEnv", "Environment variables of the container."),
        list("extraEnvFrom", "ConfigMaps and Secrets with environment variables."),
        list("extraVolumes", "More volumes of the Pods."),
        list("extraVolumeMounts", "More volume mounts of the container."),
        list("initContainers", "Containers that run before the program."),
        list("extraContainers", "More containers of the Pods, after the one of the program."),
    ];
    if parts.has_controllers {
        items.push(watch_namespaces(options));
    }
    items.extend(pods(parts));
    items.extend(objects(parts, options));
    items
}

/// Returns `true` if the options turn leader election on. Shards take its place.
fn elects(options: &ChartOptions) -> bool {
    options.manager.leader_elect && options.manager.shards.unwrap_or(0) == 0
}

/// Returns the section of leader election. Replicas that only serve webhooks need no leader to do so.
fn leader_election(options: &ChartOptions) -> Item {
    let (section_doc, doc) = if options.manager.webhooks_alone {
        (
            "All replicas serve the webhooks, and one of them renews the certificate that the program makes.",
            "Elect a leader by a Lease with the release's name. It has no effect on a certificate from another source, such as cert-manager.",
        )
    } else {
        (
            "One replica works, and the others take over when it stops.",
            "Elect a leader by a Lease with the release's name.",
        )
    };
    section("leaderElection", section_doc, vec![switch_of_option("enabled", doc, Switch::from_flag(elects(options)))])
}

/// Returns the value with the namespaces of `run --namespace`. The API server rejects a namespace that has two Roles of one
/// name, so each may be listed once.
fn watch_namespaces(options: &ChartOptions) -> Item {
    value(
        "watchNamespaces",
        "Namespaces whose objects the program works on; empty for those that the controllers declare, or all.\n\
         The roles are limited to them. They must exist.",
        json!(options.namespaces),
        json!({ "type": "array", "items": { "type": ["string", "integer"] }, "uniqueItems": true }),
    )
    .mark_given(Switch::from_flag(!options.namespaces.is_empty()))
}

/// Returns the section for the image. Without `--image`, the repository is the name of the chart.
fn image(options: &ChartOptions) -> Item {
    let is_given = Switch::from_flag(options.image.is_some());
    let (repository, tag, digest) = options.image.as_deref().map_or((options.name.as_str(), "", ""), image_parts);
    section(
        "image",
        "The image of the program.",
        vec![
            string("repository", "Repository of the image, with the registry.", repository).mark_given(is_given),
            string("tag", "Tag of the image; empty for the appVersion of the chart, with `_` for `+`.", tag)
                .mark_given(is_given),
            string("digest", "Digest of the image, for example `sha256:…`, which takes the place of the tag.", digest)
                .mark_given(is_given),
            value(
                "pullPolicy",
                "Pull policy of the kubelet.",
                "IfNotPresent".into(),
                json!({ "type": "string", "enum": ["Always", "IfNotPresent", "Never"] }),
            ),
        ],
    )
}

/// Splits an image reference into repository, tag and digest.
///
/// A colon before a slash belongs to the port of a registry: `localhost:5000/web` has no tag.
fn image_parts(image: &str) -> (&str, &str, &str) {
    let (image, digest) = image.split_once('@').unwrap_or((image, ""));
    match image.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')) {
        Some((repository, tag)) => (repository, tag, digest),
        None => (image, "", digest),
    }
}

/// Returns the values of the Pods.
///
/// Security contexts and the grace period have the defaults of the generated Deployment, so that both installs agree.
fn pods(parts: &Parts) -> Vec<Item> {
    let pod = &parts.pod;
    vec![
        map("deploymentAnnotations", "Annotations of the Deployment.", json!({})),
        map("podAnnotations", "Annotations of the Pods.", json!({})),
        map("podLabels", "More labels of the Pods.", json!({})),
        map("podSecurityContext", "Security settings of the Pods.", pod["securityContext"].clone()),
        map("securityContext", "Security settings of the container.", pod["containers"][0]["securityContext"].clone()),
        probe(
            "livenessProbe",
            "Times of the liveness probe. Its path and port follow from the program.",
            &parts.own.liveness,
        ),
        probe("readinessProbe", "Times of the readiness probe.", &parts.own.readiness),
        value(
            "terminationGracePeriodSeconds",
            "Seconds from SIGTERM to SIGKILL. Set it to at least 15 more than --graceful-shutdown-timeout, which is 30 s.",
            pod["terminationGracePeriodSeconds"].clone(),
            json!({ "type": "integer", "minimum": 1 }),
        ),
        switch(
            "hostNetwork",
            "Run the Pods in the network of their node, for example where the API server reaches no Pods. The ports must be free there.",
            Switch::Off,
        ),
        value(
            "dnsPolicy",
            "DNS policy of the Pods; empty for ClusterFirst, or ClusterFirstWithHostNet with hostNetwork.",
            "".into(),
            json!({ "type": "string", "enum": ["", "ClusterFirst", "ClusterFirstWithHostNet", "Default"] }),
        ),
        map("nodeSelector", "Labels of the nodes on which the Pods may run.", json!({})),
        map("affinity", "Affinity of the Pods.", json!({})),
        list("tolerations", "Taints of nodes that the Pods tolerate."),
        list("topologySpreadConstraints", "Rules for the spread of the Pods over zones and nodes."),
        string("priorityClassName", "PriorityClass of the Pods, for example `system-cluster-critical`.", ""),
    ]
}

/// Returns the value with the times of a probe. Other fields are rejected, because the template has what the probe asks.
fn probe(key: &'static str, doc: &str, generated: &Value) -> Item {
    let times = generated.as_object().into_iter().flatten().filter(|(field, _)| *field != "httpGet");
    let default: Value = times.map(|(field, time)| (field.clone(), time.clone())).collect();
    let fields = ["failureThreshold", "initialDelaySeconds", "periodSeconds", "successThreshold", "timeoutSeconds"];
    let integers: Value = fields.map(|field| (field, json!({ "type": "integer", "minimum": 0 }))).into_iter().collect();
    value(key, doc, default, json!({ "type": "object", "properties": integers, "additionalProperties": false }))
}

/// Returns the values of all objects except the Deployment.
fn objects(parts: &Parts, options: &ChartOptions) -> Vec<Item> {
    let mut items = Vec::new();
    if !parts.definitions.is_empty() {
        items.push(section(
            "crds",
            "CustomResourceDefinitions of the program's kinds.",
            vec![
                switch("enabled", "Install and upgrade the CRDs with the chart.", Switch::On),
                switch("keep", "Keep the CRDs and their objects when the release is uninstalled.", Switch::On),
            ],
        ));
    }
    items.push(section(
        "serviceAccount",
        "The service account of the Pods.",
        vec![
            switch("create", "Create the service account.", Switch::On),
            string(
                "name",
                "Name of the service account; empty for the name of the other objects. Needed if `create` is false.",
                "",
            ),
            map(
                "annotations",
                "Annotations of the service account, for example for the identity in a cloud.",
                json!({}),
            ),
        ],
    ));
    let mut roles = vec![switch("create", "Create the roles and bindings.", Switch::On)];
    if !parts.definitions.is_empty() {
        let comment =
            "Create roles that let people who may view or edit built-in kinds do the same with the program's.";
        roles.push(switch("userRoles", comment, Switch::Off));
    }
    items.push(section("rbac", "Roles and bindings, which follow from the declarations of the controllers.", roles));
    items.push(metrics(options));
    let is_configuration = |kind: &str| kind.ends_with("WebhookConfiguration");
    if parts.webhooks.iter().any(|webhook| webhook.object["kind"].as_str().is_some_and(is_configuration)) {
        items.push(webhooks());
    }
    if !parts.webhooks.is_empty() {
        items.push(cert_manager(parts, options));
    }
    items.extend([network_policy(parts), disruption_budget()]);
    items
}

/// Returns the section of cert-manager.
fn cert_manager(parts: &Parts, options: &ChartOptions) -> Item {
    let otherwise = if parts.needs_secret() {
        "Otherwise the Pods start when you have created the Secret `NAME-webhook-tls` with tls.crt and tls.key."
    } else {
        "Otherwise the program creates and renews it in a Secret."
    };
    section(
        "certManager",
        "cert-manager, for the certificate of the webhooks.",
        vec![
            switch_of_option(
                "enabled",
                format!("Let cert-manager issue the certificate. {otherwise}"),
                Switch::from_flag(options.cert_manager),
            ),
            map(
                "issuerRef",
                "The issuer, with `kind` and `name`; empty for a self-signed Issuer of the release.",
                json!({}),
            ),
        ],
    )
}

/// Returns the section of the admission webhooks.
fn webhooks() -> Item {
    section(
        "webhooks",
        "The admission webhooks of the program.",
        vec![
            value(
                "failurePolicy",
                "Failure policy of all webhooks; empty for the policy that each of them declares.",
                "".into(),
                json!({ "type": "string", "enum": ["", "Fail", "Ignore"] }),
            ),
            map(
                "namespaceSelector",
                "Selects namespaces for webhooks that declare no selector; empty for all.",
                json!({}),
            ),
        ],
    )
}

/// Returns the section of the `NetworkPolicy`, which is off by default: a cluster's own rules are unknown here.
fn network_policy(parts: &Parts) -> Item {
    let mut policy = vec![
        switch("enabled", "Create a NetworkPolicy: only probes, metrics and webhooks can be reached.", Switch::Off),
        list("metricsFrom", "Peers that may read the metrics; empty for all."),
    ];
    if !parts.webhooks.is_empty() {
        policy.push(list("webhookFrom", "Peers that may call the webhooks; empty for all."));
    }
    policy.push(list("egress", "Egress rules. Include the API server and DNS; empty for no restriction."));
    section("networkPolicy", "A NetworkPolicy of the Pods.", policy)
}

/// Returns the section of the `PodDisruptionBudget`. Its numbers may be integers or percentages, as in `policy/v1`.
fn disruption_budget() -> Item {
    let number = json!({ "type": ["integer", "string"], "minimum": 0, "pattern": "^([0-9]+%?)?$" });
    section(
        "podDisruptionBudget",
        "Number of Pods that a drain of nodes may evict at a time.",
        vec![
            switch("enabled", "Create a PodDisruptionBudget.", Switch::On),
            value("maxUnavailable", "Number or percentage of Pods that may be unavailable.", json!(1), number.clone()),
            value(
                "minAvailable",
                "Number or percentage of Pods that remain available, instead of maxUnavailable.",
                "".into(),
                number,
            ),
            value(
                "unhealthyPodEvictionPolicy",
                "The policy for running Pods that are not ready; empty for IfHealthyBudget.",
                "".into(),
                json!({ "type": "string", "enum": ["", "AlwaysAllow", "IfHealthyBudget"] }),
            ),
        ],
    )
}

/// Returns the section of metrics with the objects that read them: `ServiceMonitor`, `PrometheusRule` and dashboard.
fn metrics(options: &ChartOptions) -> Item {
    let monitoring = || Switch::from_flag(options.monitoring);
    section(
        "metrics",
        "The metrics of the program.",
        vec![
            switch_of_option(
                "enabled",
                "Serve `/metrics` over TLS, to clients that the ClusterRole `NAME-metrics-reader` is bound to.",
                Switch::from_flag(options.manager.metrics),
            ),
            section(
                "serviceMonitor",
                "Needs the Prometheus Operator.",
                vec![
                    switch_of_option("enabled", "Create a ServiceMonitor.", monitoring()),
                    string("interval", "Scrape interval, for example `30s`; empty for the default of Prometheus.", ""),
                    string(
                        "scrapeTimeout",
                        "Scrape timeout, for example `10s`; empty for the default of Prometheus.",
                        "",
                    ),
                    map(
                        "authorization",
                        "Credentials of Prometheus, with `credentials`; empty for the token file of its service account.\n\
                         Needed where the Prometheus Operator denies files (arbitraryFSAccessThroughSMs).",
                        json!({}),
                    ),
                    map(
                        "tlsConfig",
                        "TLS settings of Prometheus. Each replica signs its own certificate, unless extraArgs have --metrics-cert-path.",
                        json!({ "insecureSkipVerify": true }),
                    ),
                    list("relabelings", "Rules for the labels of targets."),
                    list("metricRelabelings", "Rules for the labels of samples."),
                    map("labels", "More labels, for the selector of Prometheus.", json!({})),
                ],
            ),
            section(
                "prometheusRule",
                "Needs the Prometheus Operator.",
                vec![
                    switch_of_option("enabled", "Create a PrometheusRule with alerts.", monitoring()),
                    map("labels", "More labels, for the selector of Prometheus.", json!({})),
                ],
            ),
            section(
                "dashboard",
                "Needs the sidecar of Grafana's chart.",
                vec![
                    switch_of_option("enabled", "Create a ConfigMap with a dashboard.", monitoring()),
                    map("labels", "Labels that the sidecar selects.", json!({ "grafana_dashboard": "1" })),
                ],
            ),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_is_split_into_repository_tag_and_digest() {
        for (image, parts) in [
            ("web", ("web", "", "")),
            ("example.com/web:1", ("example.com/web", "1", "")),
            ("localhost:5000/web", ("localhost:5000/web", "", "")),
            ("localhost:5000/web:1", ("localhost:5000/web", "1", "")),
            ("example.com/web@sha256:0", ("example.com/web", "", "sha256:0")),
            ("example.com/web:1@sha256:0", ("example.com/web", "1", "sha256:0")),
        ] {
            assert_eq!(image_parts(image), parts, "{image}");
        }
    }
}
