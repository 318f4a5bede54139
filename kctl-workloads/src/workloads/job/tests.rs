//! Jobs of one embedded server with a simulated kubelet.

use kctl_apiserver::ApiServer;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::*;
use crate::Kubelet;

struct JobWorld {
    jobs: Api<Job>,
    pods: Api<Pod>,
    server: ApiServer,
    workloads: Workloads,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl JobWorld {
    fn new() -> Self {
        let server = ApiServer::new();
        let client = kube::Client::new(server.service(), "default");
        let workloads = Workloads::for_server(&server);
        Self {
            jobs: Api::default_namespaced(client.clone()),
            pods: Api::default_namespaced(client),
            tasks: vec![
                tokio::spawn(server.controllers()),
                tokio::spawn(Kubelet::for_server(&server).run()),
                tokio::spawn(workloads.clone().run()),
            ],
            server,
            workloads,
        }
    }

    /// Creates a Job `work` with these fields in its spec. The stage decides the behaviour of its Pods.
    async fn create(&self, spec: Value, stage: &str) {
        let mut job = json!({
            "metadata": { "name": "work" },
            "spec": { "template": {
                "metadata": { "labels": { "kubelet.kctl.dev/stage": stage } },
                "spec": { "restartPolicy": "Never", "containers": [{ "name": "work", "image": "busybox" }] },
            } },
        });
        if stage.is_empty() {
            job["spec"]["template"]["metadata"] = Value::Null;
        }
        for (name, value) in spec.as_object().unwrap() {
            job["spec"][name] = value.clone();
        }
        self.jobs.create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.unwrap();
    }

    async fn patch(&self, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.jobs.patch("work", &PatchParams::default(), &patch).await.unwrap();
    }

    /// Returns the status of the Job once nothing changes any more, without its times.
    async fn wait_until_settled(&self) -> Value {
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(self.workloads.observed_revision() >= self.server.revision_of("", "pods"));
        let revision = self.server.revision();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(self.server.revision(), revision, "nothing is written any more");
        let job = self.jobs.get("work").await.unwrap();
        let mut status = serde_json::to_value(job.status.unwrap()).unwrap();
        status["conditions"] = format_conditions(&status["conditions"]);
        status
    }

    async fn pods(&self) -> Vec<Pod> {
        self.pods.list(&ListParams::default()).await.unwrap().items
    }
}

impl Drop for JobWorld {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// Formats conditions, such as `Complete CompletionsReached`. False conditions get a `!`.
fn format_conditions(conditions: &Value) -> Value {
    let one = |condition: &Value| {
        let mark = if condition["status"] == "True" { "" } else { "!" };
        format!("{mark}{} {}", condition["type"].as_str().unwrap(), condition["reason"].as_str().unwrap())
    };
    conditions.as_array().into_iter().flatten().map(one).collect()
}

const COMPLETE: [&str; 2] = ["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"];

#[tokio::test(start_paused = true)]
async fn job_completes_after_enough_successes() {
    let world = JobWorld::new();
    world.create(json!({ "completions": 5, "parallelism": 2 }), "").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(world.pods().await.len(), 2, "at a time");
    let status = world.wait_until_settled().await;
    assert_eq!((&status["succeeded"], &status["active"], &status["failed"]), (&json!(5), &Value::Null, &Value::Null));
    assert_eq!(status["conditions"], json!(COMPLETE));
    assert!(status["startTime"].as_str().unwrap() < status["completionTime"].as_str().unwrap(), "{status}");
    assert_eq!(status["uncountedTerminatedPods"], json!({}));
    let pods = world.pods().await;
    assert_eq!(pods.len(), 5);
    assert!(pods.iter().all(|pod| pod.finalizers().is_empty()), "all are let go");
}

#[tokio::test(start_paused = true)]
async fn job_without_completions_ends_after_one_success() {
    let world = JobWorld::new();
    world.create(json!({ "parallelism": 3 }), "").await;
    world.patch(json!({ "completions": null })).await;
    let status = world.wait_until_settled().await;
    assert_eq!((&status["succeeded"], &status["conditions"]), (&json!(3), &json!(COMPLETE)));
}

#[tokio::test(start_paused = true)]
async fn job_fails_beyond_its_backoff_limit() {
    let world = JobWorld::new();
    world.create(json!({ "backoffLimit": 2 }), "failing").await;
    let status = world.wait_until_settled().await;
    assert_eq!((&status["failed"], &status["succeeded"]), (&json!(3), &Value::Null));
    assert_eq!(status["conditions"], json!(["FailureTarget BackoffLimitExceeded", "Failed BackoffLimitExceeded"]));
}

#[tokio::test(start_paused = true)]
async fn deleted_pod_fails_and_succeeded_pod_remains_counted() {
    let world = JobWorld::new();
    world.create(json!({ "completions": 2 }), "slow").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let first = world.pods().await.remove(0).name_any();
    world.pods.delete(&first, &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let job = world.jobs.get("work").await.unwrap().status.unwrap();
    assert_eq!((job.failed, job.active), (Some(1), Some(1)));
    for pod in world.pods().await {
        let succeeded = Patch::Merge(json!({ "status": { "phase": "Succeeded" } }));
        world.pods.patch_status(&pod.name_any(), &PatchParams::default(), &succeeded).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.pods.delete(&pod.name_any(), &DeleteParams::default()).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let job = world.jobs.get("work").await.unwrap().status.unwrap();
    assert_eq!((job.succeeded, job.active, job.failed), (Some(1), Some(1), Some(1)));
}

#[tokio::test(start_paused = true)]
async fn terminating_pod_is_replaced_after_its_end() {
    let rules = json!([{ "action": "Ignore", "onExitCodes": { "operator": "In", "values": [1] } }]);
    for (policy, mode) in [
        (json!({ "podReplacementPolicy": "Failed" }), "NonIndexed"),
        (json!({ "podReplacementPolicy": "Failed" }), "Indexed"),
        (json!({ "podFailurePolicy": { "rules": rules } }), "NonIndexed"),
    ] {
        let world = JobWorld::new();
        let mut spec = policy.clone();
        (spec["completions"], spec["completionMode"]) = (json!(1), json!(mode));
        world.create(spec, "running").await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let first = world.pods().await.remove(0).name_any();
        world.pods.delete(&first, &DeleteParams::default()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let status = world.jobs.get("work").await.unwrap().status.unwrap();
        assert_eq!(
            (status.active, status.terminating, world.pods().await.len()),
            (None, Some(1), 1),
            "{policy} {mode}"
        );
        tokio::time::sleep(Duration::from_secs(5)).await;
        let status = world.jobs.get("work").await.unwrap().status.unwrap();
        assert_eq!((status.active, status.failed, world.pods().await.len()), (Some(1), Some(1), 1), "{policy} {mode}");
    }
}

#[tokio::test(start_paused = true)]
async fn suspended_job_has_no_pods_until_resumed() {
    let world = JobWorld::new();
    world.create(json!({ "completions": 3, "parallelism": 3 }), "slow").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(world.pods().await.len(), 3);
    world.patch(json!({ "suspend": true })).await;
    let status = world.wait_until_settled().await;
    assert_eq!(status["conditions"], json!(["Suspended JobSuspended"]));
    assert_eq!((&status["startTime"], &status["failed"]), (&Value::Null, &Value::Null));
    assert!(world.pods().await.is_empty());
    world.patch(json!({ "suspend": false })).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let status = world.jobs.get("work").await.unwrap().status.unwrap();
    assert_eq!(format_conditions(&json!(status.conditions)), json!(["!Suspended JobResumed"]));
    assert!(status.start_time.is_some() && status.active == Some(3), "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn each_index_has_one_pod_that_succeeds() {
    let world = JobWorld::new();
    world.create(json!({ "completions": 4, "parallelism": 2, "completionMode": "Indexed" }), "").await;
    let status = world.wait_until_settled().await;
    assert_eq!((&status["completedIndexes"], &status["succeeded"]), (&json!("0-3"), &json!(4)));
    assert_eq!(status["conditions"], json!(COMPLETE));
    let pods = world.pods().await;
    let mut hosts: Vec<_> = pods.iter().map(|pod| pod.spec.clone().unwrap().hostname.unwrap()).collect();
    hosts.sort();
    assert_eq!(hosts, ["work-0", "work-1", "work-2", "work-3"]);
    let env = &pods[0].spec.as_ref().unwrap().containers[0].env.as_ref().unwrap()[0];
    assert_eq!(env.name, "JOB_COMPLETION_INDEX");
}

#[tokio::test(start_paused = true)]
async fn shrunk_indexed_job_keeps_its_first_indexes() {
    let world = JobWorld::new();
    let ends = json!({ "kubelet.kctl.dev/stage": "succeeding", "kubelet.kctl.dev/delay": "10s" });
    let template = json!({
        "metadata": { "annotations": ends },
        "spec": { "restartPolicy": "Never", "containers": [{ "name": "work", "image": "busybox" }] },
    });
    let spec = json!({ "completions": 12, "parallelism": 12, "completionMode": "Indexed", "template": template });
    world.create(spec, "").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(world.pods().await.len(), 12);
    world.patch(json!({ "completions": 3, "parallelism": 3 })).await;
    let status = world.wait_until_settled().await;
    assert_eq!((&status["completedIndexes"], &status["succeeded"]), (&json!("0-2"), &json!(3)));
    assert_eq!(status["conditions"], json!(COMPLETE));
}

#[tokio::test(start_paused = true)]
async fn job_exceeding_deadline_fails_and_ttl_deletes_it() {
    let world = JobWorld::new();
    world.create(json!({ "activeDeadlineSeconds": 20, "ttlSecondsAfterFinished": 300 }), "unpullable").await;
    let status = world.wait_until_settled().await;
    assert_eq!(status["conditions"], json!(["FailureTarget DeadlineExceeded", "Failed DeadlineExceeded"]));
    assert_eq!(status["failed"], 1, "a pod that ran has failed with its job");
    assert!(world.pods().await.is_empty(), "its pod was deleted");
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(world.jobs.get_opt("work").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_deleted_job_are_released() {
    for how in [PropagationPolicy::Background, PropagationPolicy::Foreground] {
        let world = JobWorld::new();
        world.create(json!({ "parallelism": 2, "completions": 2 }), "slow").await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(world.pods().await.len(), 2);
        let whole = DeleteParams { propagation_policy: Some(how), ..DeleteParams::default() };
        world.jobs.delete("work", &whole).await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(world.pods().await.is_empty() && world.jobs.get_opt("work").await.unwrap().is_none(), "{whole:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn index_fails_at_its_own_backoff_limit() {
    let world = JobWorld::new();
    let spec = json!({ "completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 1 });
    world.create(spec, "failing").await;
    let status = world.wait_until_settled().await;
    assert_eq!((&status["failedIndexes"], &status["failed"]), (&json!("0,1"), &json!(4)));
    assert_eq!(status["conditions"], json!(["FailureTarget FailedIndexes", "Failed FailedIndexes"]));
    let mut counts: Vec<_> = world.pods().await.iter().map(|pod| indexes::Failures::before(pod).counted).collect();
    counts.sort_unstable();
    assert_eq!(counts, [0, 0, 1, 1], "each pod says how many of its index have failed before");
}

#[tokio::test(start_paused = true)]
async fn too_many_failed_indexes_end_a_job() {
    let world = JobWorld::new();
    let spec = json!({
        "completions": 4, "parallelism": 1, "completionMode": "Indexed", "backoffLimitPerIndex": 0, "maxFailedIndexes": 1,
    });
    world.create(spec, "failing").await;
    let status = world.wait_until_settled().await;
    assert_eq!(status["failedIndexes"], "0,1");
    let expected = json!(["FailureTarget MaxFailedIndexesExceeded", "Failed MaxFailedIndexesExceeded"]);
    assert_eq!(status["conditions"], expected);
}

#[tokio::test(start_paused = true)]
async fn pod_failure_policy_decides_about_failed_pod() {
    let rule = |action: &str, operator: &str| {
        let codes = json!({ "operator": operator, "values": [1] });
        json!({ "podFailurePolicy": { "rules": [{ "action": action, "onExitCodes": codes }] } })
    };
    let world = JobWorld::new();
    world.create(rule("FailJob", "In"), "failing").await;
    let status = world.wait_until_settled().await;
    assert_eq!(status["conditions"], json!(["FailureTarget PodFailurePolicy", "Failed PodFailurePolicy"]));
    let pod = world.pods().await.remove(0).name_any();
    let job = world.jobs.get("work").await.unwrap().status.unwrap();
    let expected =
        format!("Container work for pod default/{pod} failed with exit code 1 matching FailJob rule at index 0");
    assert_eq!(job.conditions.unwrap()[0].message.as_deref(), Some(expected.as_str()));

    // No rule matches, so the failure counts.
    let world = JobWorld::new();
    world.create(rule("FailJob", "NotIn"), "failing").await;
    assert_eq!(world.wait_until_settled().await["failed"], 7);

    let world = JobWorld::new();
    let mut ignored = rule("Ignore", "In");
    ignored["backoffLimit"] = json!(0);
    ignored["activeDeadlineSeconds"] = json!(20);
    world.create(ignored, "failing").await;
    let status = world.wait_until_settled().await;
    assert_eq!(status["conditions"], json!(["FailureTarget DeadlineExceeded", "Failed DeadlineExceeded"]));
    assert!(world.pods().await.len() > 2, "those that failed were replaced, and did not count");
}

#[tokio::test(start_paused = true)]
async fn success_policy_completes_a_job_early() {
    for (rule, done) in [
        (json!({ "succeededIndexes": "0-1" }), "0,1"),
        (json!({ "succeededCount": 1 }), "0"),
        (json!({ "succeededIndexes": "1-2", "succeededCount": 1 }), "0,1"),
    ] {
        let world = JobWorld::new();
        let spec = json!({
            "completions": 4, "parallelism": 1, "completionMode": "Indexed", "successPolicy": { "rules": [rule] },
        });
        world.create(spec, "").await;
        let status = world.wait_until_settled().await;
        assert_eq!(status["completedIndexes"], done);
        assert_eq!(status["conditions"], json!(["SuccessCriteriaMet SuccessPolicy", "Complete SuccessPolicy"]));
    }
}
