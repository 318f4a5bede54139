//! Runs command lines: each case has a separate folder and namespace.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use kctl_apiserver::{ApiServer, ControllerOptions, ServeOptions};
use serde::{Deserialize, Serialize};

use crate::{
    case::{Case, Topic},
    normal,
};

/// Number of cases of a topic that run concurrently.
const AT_A_TIME_MAX: usize = 3;
/// Time limit for a command, which some cases reach because they wait for something that never happens.
const SECONDS_MAX: &str = "60";

/// Exit status and output of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) exit: i32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) out: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) err: String,
}

impl Step {
    /// Returns `true` if the output is equal apart from the wording of the server's messages. `describe` prints the
    /// data of a `ConfigMap` in Go's random map order, so its lines are sorted.
    pub(crate) fn has_same_meaning(&self, found: &Self, command: &str) -> bool {
        let lines = |text: &str| -> Vec<String> {
            let mut lines: Vec<_> = normal::meaning(text).lines().map(str::to_owned).collect();
            if command.contains("describe") {
                lines.sort();
            }
            lines
        };
        let meaning = |step: &Self| (step.exit, lines(&step.out), lines(&step.err));
        meaning(self) == meaning(found)
    }

    /// Returns the lines that only one of two outputs has.
    pub(crate) fn differing_lines(&self, found: &Self) -> String {
        let mut differences = String::new();
        if self.exit != found.exit {
            differences += &format!("    exit: expected {}, found {}\n", self.exit, found.exit);
        }
        for (what, expected, found) in [("out", &self.out, &found.out), ("err", &self.err, &found.err)] {
            for (sign, own, other) in [('-', expected, found), ('+', found, expected)] {
                let other: Vec<&str> = other.lines().collect();
                for line in own.lines().filter(|line| !other.contains(line)) {
                    differences += &format!("    {what} {sign} {line}\n");
                }
            }
            if expected != found && differences.is_empty() {
                differences =
                    format!("    {what}: the same lines in another order:\n{expected}\n    found:\n{found}\n");
            }
        }
        differences
    }
}

/// The cluster against which the commands run.
pub(crate) enum Cluster {
    /// The path of a kubeconfig.
    Real(PathBuf),
    Embedded,
}

/// Returns the version of kubectl; `None` if it is not installed.
pub(crate) fn version() -> Option<String> {
    let output = Command::new("kubectl").args(["version", "--client", "-o", "json"]).output().ok()?;
    let version: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    version["clientVersion"]["gitVersion"].as_str().map(str::to_owned)
}

/// Runs all cases of a topic and returns their output.
pub(crate) fn run_cases(topic: &Topic, cluster: &Cluster) -> BTreeMap<String, Vec<Step>> {
    let (next, responses) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME_MAX {
            scope.spawn(|| {
                while let Some(case) = topic.cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let steps = run_case(&topic.name, case, cluster);
                    responses.lock().unwrap().insert(case.name.clone(), steps);
                }
            });
        }
    });
    responses.into_inner().unwrap()
}

fn run_case(topic: &str, case: &Case, cluster: &Cluster) -> Vec<Step> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let namespace = format!("k{}n{number}", std::process::id());
    let place = std::env::temp_dir().join(format!("kctl-kubectl-{namespace}"));
    std::fs::create_dir_all(&place).unwrap();
    let kubeconfig = place.join("kubeconfig");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    match cluster {
        Cluster::Real(file) => drop(std::fs::copy(file, &kubeconfig).unwrap()),
        Cluster::Embedded => runtime.block_on(serve(&kubeconfig)),
    }
    for (name, text) in &case.files {
        std::fs::write(place.join(name), text.replace("$NS", &namespace)).unwrap();
    }
    let shell = |line: &str| shell(&place, &namespace, line);
    shell("kubectl config set-context --current --namespace=$NS");
    let made = shell("kubectl create namespace $NS");
    assert_eq!(made.exit, 0, "{topic}: {}", made.err);
    let steps = case.run.iter().map(|line| normal::normalize(&shell(line), &namespace, &place)).collect();
    shell("kubectl delete namespace $NS --wait=false");
    drop(runtime);
    std::fs::remove_dir_all(&place).unwrap();
    steps
}

/// Starts an embedded server with as few controllers as the real one has in these tests, which has no workload
/// controllers.
async fn serve(kubeconfig: &Path) {
    let server = ApiServer::on_system_time();
    let listening = server.listen(ServeOptions::default()).await.unwrap();
    listening.write_kubeconfig(kubeconfig).unwrap();
    tokio::spawn(server.controllers_with(&ControllerOptions::default().without_service_accounts()));
    tokio::spawn(listening.serve());
}

fn shell(place: &Path, namespace: &str, line: &str) -> Step {
    let output = Command::new("timeout")
        .args([SECONDS_MAX, "sh", "-c", line])
        .current_dir(place)
        .env("KUBECONFIG", place.join("kubeconfig"))
        .env("HOME", place)
        .env("KUBECACHEDIR", place.join("cache"))
        .env("NS", namespace)
        .env_remove("KUBE_EDITOR")
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Step { exit: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
}
