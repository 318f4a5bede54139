//! A Grafana dashboard: problems at the top, resources of the process at the bottom.

use kctl_apimachinery::fnv::hash64a;
use serde_json::{Value, json};

use crate::manifest::{ManagerOptions, RbacOptions};

/// Dashboard format that Grafana 10 and later read without a migration.
const SCHEMA_VERSION: u32 = 39;
/// Panels per row; Grafana's grid is 24 wide.
const COLUMNS: usize = 2;
/// Height of a panel in grid units.
const HEIGHT: usize = 8;

struct Panel {
    title: &'static str,
    unit: &'static str,
    /// `PromQL` queries and their legends; `$` is replaced by the labels of the program.
    lines: &'static [(&'static str, &'static str)],
}

/// Panels of every program.
const ALWAYS: &[Panel] = &[
    Panel {
        title: "Failing keys",
        unit: "none",
        lines: &[("max by (controller) (kctl_failing_keys{$})", "{{controller}}")],
    },
    Panel {
        title: "Reconciles by result",
        unit: "ops",
        lines: &[(
            "sum by (controller, result) (rate(controller_runtime_reconcile_total{$}[5m])) > 0",
            "{{controller}} {{result}}",
        )],
    },
    Panel {
        title: "Duration of a reconcile",
        unit: "s",
        lines: &[
            (
                "histogram_quantile(0.5, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{$}[5m])))",
                "{{controller}} half",
            ),
            (
                "histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{$}[5m])))",
                "{{controller}} 99 of 100",
            ),
        ],
    },
    Panel {
        title: "Time in the queue",
        unit: "s",
        lines: &[
            (
                "histogram_quantile(0.99, sum by (controller, le) (rate(workqueue_queue_duration_seconds_bucket{$}[5m])))",
                "{{controller}} 99 of 100",
            ),
            ("max by (controller) (kctl_workqueue_oldest_waiting_seconds{$})", "{{controller}} oldest"),
        ],
    },
    Panel {
        title: "Waiting keys",
        unit: "none",
        lines: &[
            ("sum by (controller) (workqueue_depth{$})", "{{controller}} ready"),
            ("sum by (controller) (kctl_workqueue_delayed{$})", "{{controller}} delayed"),
        ],
    },
    Panel {
        title: "Busy workers",
        unit: "percentunit",
        lines: &[(
            "max by (controller) (controller_runtime_active_workers{$} / controller_runtime_max_concurrent_reconciles{$})",
            "{{controller}}",
        )],
    },
    Panel {
        title: "Objects in caches",
        unit: "none",
        lines: &[("max by (group, resource) (kctl_cache_objects{$})", "{{resource}} {{group}}")],
    },
    Panel {
        title: "Changes waiting for a cache",
        unit: "none",
        lines: &[("max by (group, resource) (informer_queued_items{$})", "{{resource}} {{group}}")],
    },
    Panel {
        title: "Requests to the API server",
        unit: "reqps",
        lines: &[("sum by (method, code) (rate(rest_client_requests_total{$}[5m]))", "{{method}} {{code}}")],
    },
    Panel {
        title: "Bounds",
        unit: "percentunit",
        lines: &[("max by (bound) (kctl_bound_used{$} / kctl_bound_limit{$})", "{{bound}}")],
    },
    Panel { title: "Memory", unit: "bytes", lines: &[("max by (pod) (process_resident_memory_bytes{$})", "{{pod}}")] },
    Panel {
        title: "Processor",
        unit: "none",
        lines: &[("sum by (pod) (rate(process_cpu_seconds_total{$}[5m]))", "{{pod}}")],
    },
];

/// Panels of programs with leader election.
const ELECTION_PANELS: &[Panel] = &[Panel {
    title: "Leader",
    unit: "none",
    lines: &[("max by (pod) (leader_election_master_status{$})", "{{pod}}")],
}];

/// Panels of programs whose replicas share the keys by slots.
const SHARD_PANELS: &[Panel] = &[
    Panel {
        title: "Slots",
        unit: "none",
        lines: &[
            ("max by (pod) (kctl_slots_owned{$})", "{{pod}}"),
            ("max(kctl_slots{$} unless kctl_slots_rejected{$} == 1) - sum(kctl_slots_owned{$})", "without an owner"),
        ],
    },
    Panel {
        title: "Slots gained per minute",
        unit: "none",
        lines: &[("sum by (pod) (rate(kctl_slots_gained_total{$}[5m])) * 60", "{{pod}}")],
    },
];

/// Returns the dashboard as JSON. Its uid is derived from the name, so that an update replaces it.
pub(super) fn dashboard(options: &RbacOptions, selector: &str, manager: ManagerOptions) -> Value {
    let election = if manager.leader_elect { ELECTION_PANELS } else { &[] };
    let shards = if manager.slots().is_some() { SHARD_PANELS } else { &[] };
    let panels: Vec<Value> = ALWAYS
        .iter()
        .chain(election)
        .chain(shards)
        .enumerate()
        .map(|(index, metric)| panel(index, metric, selector))
        .collect();
    json!({
        "title": options.name,
        // Derived from the name, so that Grafana replaces the dashboard of an older version.
        "uid": uid(&options.name),
        "tags": ["kctl"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": true,
        "refresh": "30s",
        "time": { "from": "now-1h", "to": "now" },
        "templating": { "list": [{ "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus" }] },
        "panels": panels,
    })
}

/// Maximum length of a uid (Grafana, `pkg/util/shortid_generator.go`, `MaxUIDLength`).
const UID_LEN_MAX: usize = 40;

/// Returns the uid of a program: its name, or the beginning of a long name with a hash of the whole.
///
/// Without the hash, two programs whose long names begin alike would overwrite each other's dashboard.
fn uid(name: &str) -> String {
    let whole = format!("kctl-{name}");
    if whole.len() <= UID_LEN_MAX {
        return whole;
    }
    // FNV-1a, because the hash must be the same in every build.
    let hash = format!("{:016x}", hash64a(name));
    let prefix: String = whole.chars().take(UID_LEN_MAX - 9).collect();
    format!("{prefix}-{}", &hash[8..])
}

fn panel(index: usize, panel: &Panel, selector: &str) -> Value {
    let width = 24 / COLUMNS;
    let source = json!({ "type": "prometheus", "uid": "${datasource}" });
    let targets: Vec<Value> = panel
        .lines
        .iter()
        .zip('A'..)
        .map(|((query, legend), name)| {
            let query = query.replace('$', selector);
            json!({ "refId": name, "datasource": source, "expr": query, "legendFormat": legend })
        })
        .collect();
    json!({
        "id": index + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": source,
        "gridPos": { "x": index % COLUMNS * width, "y": index / COLUMNS * HEIGHT, "w": width, "h": HEIGHT },
        "fieldConfig": { "defaults": { "unit": panel.unit, "min": 0 }, "overrides": [] },
        "options": { "legend": { "displayMode": "list", "placement": "bottom" }, "tooltip": { "mode": "multi" } },
        "targets": targets,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(name: &str) -> String {
        let options = RbacOptions { name: name.into(), ..RbacOptions::default() };
        dashboard(&options, "", ManagerOptions::default())["uid"].as_str().unwrap().to_owned()
    }

    #[test]
    fn uid_differs_for_long_names_with_one_beginning() {
        let prefix = "payments-reconciliation-controller-for-";
        let (blue, green) = (uid(&format!("{prefix}blue")), uid(&format!("{prefix}green")));
        assert_ne!(blue, green);
        assert_eq!(blue, uid(&format!("{prefix}blue")), "an update replaces the dashboard");
        for uid in [blue, green] {
            assert!(uid.len() <= UID_LEN_MAX && uid.starts_with("kctl-payments"), "{uid}");
        }
        assert_eq!(uid("web"), "kctl-web");
        assert_eq!(uid(&"x".repeat(35)), format!("kctl-{}", "x".repeat(35)), "40 characters are allowed");
    }
}
