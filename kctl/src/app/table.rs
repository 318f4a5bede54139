//! The table of `dev --until-idle`: one line for each object, as `kubectl get` shows them.

use std::fmt::Write as _;

use k8s_openapi::jiff::Timestamp;
use kctl_apimachinery::duration;
use serde_json::Value;

/// Placeholder for a missing value.
const NOTHING: &str = "-";
/// Maximum length of a status in characters; a longer one ends with `…`.
const STATUS_LEN_MAX: usize = 48;

/// One object.
pub(super) struct Row<'a> {
    pub(super) object: &'a Value,
    /// Set if the object came from a file and was not created by a controller.
    pub(super) applied: bool,
    /// Name of the other cluster that it is on; empty for the main one.
    pub(super) cluster: &'a str,
}

/// Returns the table with a header line. `now` is the time that ages refer to.
pub(super) fn table(rows: &[Row<'_>], now: Timestamp) -> String {
    let has_clusters = rows.iter().any(|row| !row.cluster.is_empty());
    let mut lines = vec![["KIND", "NAME", "READY", "STATUS", "AGE", "SOURCE", "CLUSTER"].map(str::to_owned)];
    lines.extend(rows.iter().map(|row| line(row, now)));
    let n_columns = if has_clusters { 7 } else { 6 };
    let mut widths = [0; 7];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for line in &lines {
        let mut row = String::new();
        for (cell, width) in line.iter().zip(widths).take(n_columns) {
            let _infallible = write!(row, "{cell:width$}   ");
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

fn line(row: &Row<'_>, now: Timestamp) -> [String; 7] {
    let object = row.object;
    let name = text(object, "/metadata/name").unwrap_or(NOTHING);
    let name = match text(object, "/metadata/namespace") {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    };
    let (ready, status) = state(object);
    let source = if row.applied { "applied".to_owned() } else { owner(object).unwrap_or_else(|| NOTHING.to_owned()) };
    let cluster = if row.cluster.is_empty() { NOTHING } else { row.cluster };
    [
        text(object, "/kind").unwrap_or(NOTHING).to_owned(),
        name,
        ready.unwrap_or_else(|| NOTHING.to_owned()),
        status.map_or_else(|| NOTHING.to_owned(), |status| shorten(&status)),
        age(object, now).unwrap_or_else(|| NOTHING.to_owned()),
        source,
        cluster.to_owned(),
    ]
}

fn text<'a>(object: &'a Value, path: &str) -> Option<&'a str> {
    object.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn number(object: &Value, path: &str) -> Option<i64> {
    object.pointer(path).and_then(Value::as_i64)
}

/// Returns the controller of an object, or else its first owner: `Site/web`.
fn owner(object: &Value) -> Option<String> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true).or(owners.first())?;
    Some(format!("{}/{}", text(owner, "/kind")?, text(owner, "/name")?))
}

/// Returns the columns READY and STATUS.
fn state(object: &Value) -> (Option<String>, Option<String>) {
    let (ready, status) = match (text(object, "/apiVersion"), text(object, "/kind")) {
        (Some("v1"), Some("Pod")) => pod(object),
        (Some("batch/v1"), Some("Job")) => job(object),
        _ => other(object),
    };
    let is_deleted = object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null());
    (ready, if is_deleted { Some("Terminating".into()) } else { status })
}

/// Returns the ready containers of a Pod, and its phase or the reason why a container waits or has ended.
fn pod(object: &Value) -> (Option<String>, Option<String>) {
    let statuses = object.pointer("/status/containerStatuses").and_then(Value::as_array);
    let statuses = statuses.map_or(&[][..], Vec::as_slice);
    let n_ready = statuses.iter().filter(|status| status["ready"] == true).count();
    let n = object.pointer("/spec/containers").and_then(Value::as_array).map_or(0, Vec::len);
    let reason = |path: &str| statuses.iter().find_map(|status| text(status, path));
    let reason = reason("/state/waiting/reason").or_else(|| reason("/state/terminated/reason"));
    let status = reason.or_else(|| text(object, "/status/reason")).or_else(|| text(object, "/status/phase"));
    (Some(format!("{n_ready}/{n}")), status.map(ToOwned::to_owned))
}

/// Conditions of a Job in the order in which kubectl shows them (`printJob` of `pkg/printers/internalversion/printers.go`).
const JOB_CONDITIONS: [&str; 5] = ["Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"];

/// Returns the succeeded Pods of a Job, and its first condition that is true.
fn job(object: &Value) -> (Option<String>, Option<String>) {
    let completions = number(object, "/spec/completions").unwrap_or(1);
    let succeeded = number(object, "/status/succeeded").unwrap_or(0);
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let is_true = |kind: &&str| {
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|condition| condition["type"] == **kind && condition["status"] == "True")
    };
    let status = JOB_CONDITIONS.into_iter().find(is_true).unwrap_or("Running");
    (Some(format!("{succeeded}/{completions}")), Some(status.into()))
}

/// Returns the ready replicas, or the status of the condition `Ready`, or 0 replicas of those that are wanted.
fn other(object: &Value) -> (Option<String>, Option<String>) {
    let (ready, status) = conditions(object);
    let replicas = number(object, "/status/readyReplicas").zip(number(object, "/spec/replicas"));
    // Go omits a `readyReplicas` of 0 from the status. A kind with a condition `Ready` may never count them.
    let none_yet =
        number(object, "/status/replicas").and_then(|_some| number(object, "/spec/replicas")).map(|n| (0, n));
    let shown = |(ready, desired): (i64, i64)| format!("{ready}/{desired}");
    let phase = text(object, "/status/phase").map(ToOwned::to_owned);
    (replicas.map(shown).or(ready).or(none_yet.map(shown)), status.or(phase))
}

/// Returns the status of the condition `Ready`, and a description: why the object is not ready, or
/// the condition that is true.
fn conditions(object: &Value) -> (Option<String>, Option<String>) {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let conditions = conditions.map_or(&[][..], Vec::as_slice);
    let find_condition = |kind: &str| conditions.iter().find(|condition| condition["type"] == kind);
    let Some(ready) = find_condition("Ready") else {
        let is_true = |condition: &&Value| condition["status"] == "True";
        let shown = conditions.iter().filter(is_true).find_map(|condition| text(condition, "/type"));
        return (None, shown.map(ToOwned::to_owned));
    };
    let status = text(ready, "/status").map(ToOwned::to_owned);
    if ready["status"] == "True" {
        return (status, Some("Ready".into()));
    }
    let words = [text(ready, "/reason"), text(ready, "/message")];
    let words: Vec<_> = words.into_iter().flatten().collect();
    (status, (!words.is_empty()).then(|| words.join(": ")))
}

fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= STATUS_LEN_MAX {
        return line.to_owned();
    }
    line.chars().take(STATUS_LEN_MAX - 1).chain(['…']).collect()
}

/// Returns the age of an object in the format of kubectl (`HumanDuration` of apimachinery).
fn age(object: &Value, now: Timestamp) -> Option<String> {
    let created: Timestamp = text(object, "/metadata/creationTimestamp")?.parse().ok()?;
    duration::human(now.duration_since(created).as_secs().max(0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-01-01T00:01:30Z";

    fn row(object: &Value) -> Vec<String> {
        line(&Row { object, applied: false, cluster: "" }, NOW.parse().unwrap())[2..5].to_vec()
    }

    fn check(object: &Value, ready: &str, status: &str) {
        assert_eq!(row(object)[..2], [ready, status], "{object}");
    }

    #[test]
    fn pods_show_their_ready_containers() {
        let pod = |n_containers: usize, status: &Value| {
            let spec = json!({ "containers": vec![json!({}); n_containers] });
            json!({ "apiVersion": "v1", "kind": "Pod", "spec": spec, "status": status })
        };
        check(&pod(2, &json!({ "phase": "Pending" })), "0/2", "Pending");
        let crash = json!({ "ready": false, "state": { "waiting": { "reason": "CrashLoopBackOff" } } });
        check(&pod(2, &json!({ "phase": "Running", "containerStatuses": [crash] })), "0/2", "CrashLoopBackOff");
        let end = json!({ "ready": false, "state": { "terminated": { "reason": "Completed" } } });
        check(&pod(1, &json!({ "phase": "Succeeded", "containerStatuses": [end] })), "0/1", "Completed");
    }

    #[test]
    fn workloads_show_their_ready_replicas() {
        let deployment = |status: &Value| json!({ "kind": "Deployment", "spec": { "replicas": 3 }, "status": status });
        check(&deployment(&json!({ "replicas": 3, "readyReplicas": 2 })), "2/3", "-");
        check(&deployment(&json!({ "replicas": 3 })), "0/3", "-");
        let job = |n_completions: u32, status: &Value| json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": { "completions": n_completions }, "status": status });
        check(&job(2, &json!({ "succeeded": 1 })), "1/2", "Running");
        let complete = json!([
            { "type": "SuccessCriteriaMet", "status": "True" }, { "type": "Complete", "status": "True" },
        ]);
        let mut once = job(1, &json!({ "succeeded": 1, "conditions": complete }));
        check(&once, "1/1", "Complete");
        once["spec"].take();
        check(&once, "1/1", "Complete");
    }

    #[test]
    fn other_kinds_show_conditions_and_phases() {
        let site = |status: &Value| json!({ "kind": "Site", "spec": { "replicas": 3 }, "status": status });
        let ready = json!([{ "type": "Ready", "status": "True" }]);
        let not_ready = json!([{ "type": "Ready", "status": "False", "reason": "Pods", "message": "1 of 3" }]);
        check(&json!({ "kind": "Site", "status": { "conditions": ready } }), "True", "Ready");
        check(&site(&json!({ "replicas": 3, "conditions": ready })), "True", "Ready");
        check(&site(&json!({ "readyReplicas": 2, "conditions": not_ready })), "2/3", "Pods: 1 of 3");
        check(&json!({ "kind": "Site", "status": { "conditions": not_ready } }), "False", "Pods: 1 of 3");
        check(&json!({ "kind": "Claim", "status": { "phase": "Bound" } }), "-", "Bound");
        check(&json!({ "apiVersion": "v1", "kind": "ConfigMap" }), "-", "-");
        check(&json!({ "kind": "Site", "metadata": { "deletionTimestamp": NOW } }), "-", "Terminating");
    }

    #[test]
    fn ages_are_written_as_kubectl_writes_them() {
        for (created, expected) in [
            ("2026-01-01T00:01:30Z", "0s"),
            ("2026-01-01T00:01:31Z", "0s"),
            ("2025-12-31T23:59:31Z", "119s"),
            ("2025-12-31T23:59:30Z", "2m"),
            ("2025-12-31T23:58:00Z", "3m30s"),
            ("2025-12-31T23:51:30Z", "10m"),
            ("2025-12-31T20:00:00Z", "4h1m"),
            ("2025-12-30T23:00:00Z", "25h"),
            ("2025-12-29T22:00:00Z", "2d2h"),
            ("2025-12-01T00:00:00Z", "31d"),
        ] {
            let object = json!({ "metadata": { "creationTimestamp": created } });
            assert_eq!(row(&object)[2], expected, "{created}");
        }
    }

    #[test]
    fn columns_align_and_long_status_is_truncated() {
        let site = json!({ "kind": "Site", "metadata": { "name": "web", "namespace": "default" },
            "status": { "conditions": [{ "type": "Ready", "status": "False", "message": "x".repeat(100) }] } });
        let owner = json!([{ "kind": "Site", "name": "web", "controller": true }]);
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web-1", "namespace": "default", "ownerReferences": owner } });
        let rows =
            [Row { object: &site, applied: true, cluster: "" }, Row { object: &pod, applied: false, cluster: "" }];
        let text = table(&rows, NOW.parse().unwrap());
        let status = format!("{}…", "x".repeat(STATUS_LEN_MAX - 1));
        let expected = [
            format!("KIND   NAME            READY   STATUS{}   AGE   SOURCE", " ".repeat(STATUS_LEN_MAX - 6)),
            format!("Site   default/web     False   {status}   -     applied"),
            format!("Pod    default/web-1   0/0     -{}   -     Site/web", " ".repeat(STATUS_LEN_MAX - 1)),
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        let there = [Row { object: &pod, applied: false, cluster: "edge" }];
        assert!(table(&there, NOW.parse().unwrap()).contains("CLUSTER\n"));
    }
}
