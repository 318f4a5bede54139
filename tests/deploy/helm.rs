//! Charts of `generate-manifests --helm`, rendered, installed, upgraded and uninstalled by Helm.

mod values;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use kctl::{Json, json};

use crate::{
    build::{programs, run},
    cluster::{Cluster, until},
    examples::of_namespace,
    files::{Folder, objects},
    program::{DeployOptions, Program},
};

/// Release name of the tests. Names of all objects begin with the release and the chart.
const RELEASE: &str = "web";
const PODSET: &str = include_str!("../../examples/podset/web.yaml");

/// Runs Helm with its files in a temporary folder.
struct Helm {
    files: Folder,
    namespace: String,
}

impl Helm {
    fn new(namespace: &str) -> Self {
        Self { files: Folder::new(), namespace: namespace.into() }
    }

    /// Returns Helm with the administrator's kubeconfig.
    fn at(cluster: &Cluster, namespace: &str) -> Self {
        let helm = Self::new(namespace);
        std::fs::write(helm.files.join("kubeconfig"), cluster.kubeconfig_at(namespace)).unwrap();
        helm
    }

    fn command(&self, line: &str) -> Command {
        let mut helm = Command::new("helm");
        for folder in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            helm.env(folder, self.files.join(folder));
        }
        helm.env("KUBECONFIG", self.files.join("kubeconfig")).args(["--namespace", &self.namespace]);
        helm.args(line.split_whitespace());
        helm
    }

    /// Runs Helm on another thread, because the embedded server may run on this one.
    async fn run(&self, line: &str) -> String {
        let mut command = self.command(line);
        tokio::task::spawn_blocking(move || run(&mut command)).await.unwrap()
    }

    /// Generates the chart of a program.
    fn chart(&self, program: &str, options: &str) -> PathBuf {
        let chart = self.files.join(program);
        let image = format!("example.com/{program}:1");
        let mut generate = Command::new(programs().join(program));
        generate.args(["generate-manifests", "--image", &image, "--helm"]).arg(&chart);
        run(generate.args(options.split_whitespace()));
        chart
    }
}

/// Returns objects by kind, namespace and name, without parts that only a chart has, such as its labels and the policy
/// to keep CRDs.
fn comparable(all: Vec<Json>) -> BTreeMap<String, Json> {
    let mut by_name = BTreeMap::new();
    for mut object in all.into_iter().filter(|object| !object.is_null()) {
        let text = |at: &str| object.pointer(at).and_then(Json::as_str).unwrap_or_default().to_owned();
        let key = format!("{} {}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.remove("labels");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Json::as_object_mut) {
            annotations.remove("helm.sh/resource-policy");
        }
        let is_empty = |annotations: &Json| annotations.as_object().is_none_or(serde_json::Map::is_empty);
        if metadata.get("annotations").is_some_and(is_empty) {
            metadata.remove("annotations");
        }
        if let Some(labels) = object.pointer_mut("/spec/template/metadata/labels") {
            labels.take();
        }
        if let Some(container) = object.pointer_mut("/spec/template/spec/containers/0") {
            container.as_object_mut().unwrap().remove("imagePullPolicy");
        }
        for selector in ["/spec/selector", "/spec/selector/matchLabels"] {
            let select = object.pointer_mut(selector).filter(|labels| labels.get("app.kubernetes.io/name").is_some());
            if let Some(labels) = select {
                labels.take();
            }
        }
        assert!(by_name.insert(key.clone(), object).is_none(), "{key} is there twice");
    }
    by_name
}

/// Checks that a chart with these values renders the same objects as `generate-manifests` with these options.
async fn check_rendered(program: &str, of_chart: &str, values: &str, options: &str) {
    let helm = Helm::new("shop");
    let chart = helm.chart(program, of_chart);
    helm.run(&format!("lint --strict {} {values}", chart.display())).await;
    let rendered = helm.run(&format!("template {RELEASE} {} {values}", chart.display())).await;
    let image = format!("example.com/{program}:1");
    let head = std::fs::read_to_string(chart.join("Chart.yaml")).unwrap();
    let app = head.lines().find_map(|line| line.strip_prefix("name: ")).unwrap();
    let mut generate = Command::new(programs().join(program));
    generate.args(["generate-manifests", "--namespace", "shop", "--name", &format!("{RELEASE}-{app}")]);
    let printed = run(generate.args(["--image", &image]).args(options.split_whitespace()));
    let mut expected = objects(&printed);
    // Karmada's objects belong to another API server, so the chart does not contain them.
    expected.retain(|object| !object["apiVersion"].as_str().unwrap().contains(".karmada.io/"));
    // The Secret is in the chart alone, so that an uninstall deletes it.
    let mut rendered = objects(&rendered);
    rendered.retain(|object| object["kind"] != "Secret");
    let (actual, expected) = (comparable(rendered), comparable(expected));
    let keys = |all: &BTreeMap<String, Json>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&actual), keys(&expected), "{program} {values}");
    for (key, object) in &expected {
        assert_eq!(&actual[key], object, "{program} {values}: {key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Helm: cargo xtask helm"]
async fn charts_render_what_generate_manifests_prints() {
    // The last program defines no kinds.
    for program in ["config-restarter", "multicluster", "quickstart", "workload-interpreter", "examples/deploy-replica"]
    {
        check_rendered(program, "", "", "").await;
        check_rendered(program, "--leader-elect --metrics", "", "--leader-elect --metrics").await;
    }
    let chart = "--leader-elect --metrics";
    check_rendered("podset", chart, "", chart).await;
    check_rendered("podset", chart, "--set shards=4", "--metrics --shards 4").await;
    check_rendered("podset", "--shards 4", "", "--shards 4").await;
    check_rendered("podset", chart, "--set replicaCount=1,leaderElection.enabled=false,metrics.enabled=false", "")
        .await;
    let monitoring =
        "--set metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true";
    check_rendered("podset", chart, monitoring, "--leader-elect --with monitoring").await;
    check_rendered("podset", "--leader-elect --with monitoring", "", "--leader-elect --with monitoring").await;
    let within = "--objects-in blog --objects-in shop";
    check_rendered("podset", chart, "--set watchNamespaces={blog,shop}", &format!("{chart} {within}")).await;
    check_rendered("podset", within, "", within).await;
    // It has cluster-scoped kinds, and their events are in the namespace `default`.
    for namespaces in ["blog,shop", "default,shop"] {
        let options = namespaces.replace(',', " --objects-in ");
        check_rendered(
            "multicluster",
            "",
            &format!("--set watchNamespaces={{{namespaces}}}"),
            &format!("--objects-in {options}"),
        )
        .await;
    }
    let limits = "--requests cpu=1 --limits cpu=2,memory=0";
    check_rendered("podset", limits, "", limits).await;
    check_rendered("website", chart, "", chart).await;
    check_rendered("website", chart, "--set certManager.enabled=true", "--leader-elect --metrics --with cert-manager")
        .await;
    check_rendered("website", "--with cert-manager", "--set certManager.enabled=false", "").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Helm: cargo xtask helm"]
async fn wrong_values_are_rejected_with_a_reason() {
    let helm = Helm::new("shop");
    let chart = helm.chart("podset", "");
    for (values, part) in [
        ("replicaCount=2", "set leaderElection.enabled or shards too"),
        ("replicaCounts=2", "additional properties 'replicaCounts' not allowed"),
        ("metrics.serviceMonitor.enable=true", "additional properties 'enable' not allowed"),
        ("serviceAccount.create=false", "serviceAccount.name is needed"),
        ("shards=257", "shards"),
        ("revisionHistoryLimit=-1", "revisionHistoryLimit"),
        ("revisionHistoryLimit=ten", "revisionHistoryLimit"),
        ("podDisruptionBudget.maxUnavailable=-1", "maxUnavailable"),
        ("podDisruptionBudget.minAvailable=half", "minAvailable"),
        (
            "podDisruptionBudget.maxUnavailable=",
            "podDisruptionBudget.maxUnavailable and podDisruptionBudget.minAvailable are empty",
        ),
        ("podDisruptionBudget.maxUnavailable=null", "are empty, which blocks all evictions"),
        ("livenessProbe.httpGet.path=/", "additional properties 'httpGet' not allowed"),
        ("watchNamespaces={a,a}", "watchNamespaces"),
    ] {
        let line = format!("template {RELEASE} {} --set {values}", chart.display());
        let output = helm.command(&line).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains(part), "{values}: {stderr}");
    }
}

/// Values that are numbers in YAML. Helm reads numbers of a file as floats, and numbers of `--set` as integers.
const NUMBERS: &str = "
fullnameOverride: 20241105
image: { tag: 20241106 }
priorityClassName: 20241107
serviceAccount: { name: 20241108 }
extraArgs: [20241109, 0.5]
podDisruptionBudget: { minAvailable: 0 }
revisionHistoryLimit: 0
";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Helm: cargo xtask helm"]
async fn numbers_in_values_are_rendered_as_written() {
    let helm = Helm::new("shop");
    let chart = helm.chart("podset", "--leader-elect");
    let file = helm.files.join("numbers.yaml");
    std::fs::write(&file, NUMBERS).unwrap();
    let set = "fullnameOverride=20241105,image.tag=20241106,priorityClassName=20241107,serviceAccount.name=20241108,\
               extraArgs={20241109,0.5},podDisruptionBudget.minAvailable=0,revisionHistoryLimit=0";
    for values in [format!("--values {}", file.display()), format!("--set {set}")] {
        let line = format!("template 7 {} {values} --namespace 1234", chart.display());
        let rendered = objects(&helm.run(&line).await);
        let find = |kind: &str| rendered.iter().find(|object| object["kind"] == kind).unwrap();
        let (deployment, budget) = (find("Deployment"), find("PodDisruptionBudget"));
        assert_eq!(deployment["metadata"]["name"], "20241105", "{values}");
        assert_eq!(deployment["metadata"]["namespace"], "1234", "{values}");
        assert_eq!(deployment["spec"]["revisionHistoryLimit"], 0, "{values}");
        let pod = &deployment["spec"]["template"]["spec"];
        assert_eq!(pod["containers"][0]["image"], "example.com/podset:20241106", "{values}");
        let args = pod["containers"][0]["args"].as_array().unwrap();
        assert!(args.ends_with(&[json!("20241109"), json!("0.5")]), "{values}: {args:?}");
        assert_eq!((&pod["priorityClassName"], &pod["serviceAccountName"]), (&json!("20241107"), &json!("20241108")));
        let rules = rendered.iter().flat_map(|object| object["rules"].as_array().into_iter().flatten());
        let names = rules.flat_map(|rule| rule["resourceNames"].as_array().into_iter().flatten());
        assert_eq!(names.collect::<Vec<_>>(), ["20241105"], "{values}: the Lease of leader election");
        assert_eq!((&budget["spec"]["minAvailable"], &budget["spec"]["maxUnavailable"]), (&json!(0), &json!(null)));
    }
}

/// Values for particular clusters: a network without routes to Pods, slow nodes, containers of a mesh, an operator that denies files,
/// and exempt namespaces.
const PARTICULAR: &str = "
hostNetwork: true
livenessProbe: { timeoutSeconds: 5 }
readinessProbe: { periodSeconds: 30 }
initContainers: [{ name: routes, image: example.com/routes:1 }]
extraContainers: [{ name: proxy, image: example.com/proxy:1 }]
metrics:
  enabled: true
  serviceMonitor:
    enabled: true
    scrapeTimeout: 5s
    authorization: { credentials: { name: prometheus, key: token } }
    tlsConfig: { insecureSkipVerify: false, serverName: website }
    relabelings: [{ action: labeldrop, regex: pod }]
    metricRelabelings: [{ action: labeldrop, regex: le }]
crds: { keep: false }
webhooks:
  failurePolicy: Ignore
  namespaceSelector: { matchLabels: { team: shop } }
";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Helm: cargo xtask helm"]
async fn values_for_particular_clusters_are_rendered() {
    let helm = Helm::new("shop");
    let chart = helm.chart("website", "");
    let file = helm.files.join("particular.yaml");
    std::fs::write(&file, PARTICULAR).unwrap();
    let rendered =
        objects(&helm.run(&format!("template {RELEASE} {} --values {}", chart.display(), file.display())).await);
    let find = |kind: &str| rendered.iter().find(|object| object["kind"] == kind).unwrap();
    let pod = &find("Deployment")["spec"]["template"]["spec"];
    assert_eq!((&pod["hostNetwork"], &pod["dnsPolicy"]), (&json!(true), &json!("ClusterFirstWithHostNet")));
    let probe_field = |path: &str| pod["containers"][0].pointer(path).unwrap();
    assert_eq!(
        (probe_field("/livenessProbe/timeoutSeconds"), probe_field("/livenessProbe/periodSeconds")),
        (&json!(5), &json!(20))
    );
    assert_eq!(probe_field("/readinessProbe/periodSeconds"), &json!(30));
    assert_eq!(pod["initContainers"], json!([{ "name": "routes", "image": "example.com/routes:1" }]));
    assert_eq!(pod["containers"][1], json!({ "name": "proxy", "image": "example.com/proxy:1" }));
    let endpoint = json!({
        "authorization": { "credentials": { "name": "prometheus", "key": "token" } },
        "metricRelabelings": [{ "action": "labeldrop", "regex": "le" }],
        "path": "/metrics",
        "port": "https",
        "relabelings": [{ "action": "labeldrop", "regex": "pod" }],
        "scheme": "https",
        "scrapeTimeout": "5s",
        "tlsConfig": { "insecureSkipVerify": false, "serverName": "website" },
    });
    assert_eq!(find("ServiceMonitor")["spec"]["endpoints"], json!([endpoint]));
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let webhook = &find(kind)["webhooks"][0];
        assert_eq!(webhook["failurePolicy"], "Ignore", "{kind}");
        assert_eq!(webhook["namespaceSelector"], json!({ "matchLabels": { "team": "shop" } }), "{kind}");
    }
    for kind in ["CustomResourceDefinition", "ValidatingWebhookConfiguration"] {
        let metadata = find(kind)["metadata"].as_object().unwrap();
        assert!(!metadata.contains_key("annotations"), "{kind}: {metadata:?}");
    }
}

/// Values that users commonly set. The API server validates the resulting fields.
const VALUES: &str = "
replicaCount: 3
resources: { requests: { cpu: 20m }, limits: { memory: 512Mi } }
extraArgs: [--log-format=json]
extraEnv: [{ name: RUST_LOG, value: debug }]
extraVolumes: [{ name: scratch, emptyDir: {} }]
extraVolumeMounts: [{ name: scratch, mountPath: /scratch }]
deploymentAnnotations: { example.com/owner: me }
podAnnotations: { example.com/owner: me }
dnsPolicy: Default
podLabels: { example.com/team: ours }
nodeSelector: { kubernetes.io/os: linux }
tolerations: [{ key: example.com/controllers, operator: Exists }]
topologySpreadConstraints:
  - { maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: { matchLabels: { example.com/team: ours } } }
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - { weight: 1, podAffinityTerm: { topologyKey: kubernetes.io/hostname, labelSelector: { matchLabels: { example.com/team: ours } } } }
imagePullSecrets: [{ name: registry }]
serviceAccount: { annotations: { example.com/identity: controller } }
rbac: { userRoles: true }
metrics: { dashboard: { enabled: true } }
networkPolicy:
  enabled: true
  metricsFrom: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: monitoring } } }]
  egress: [{ ports: [{ port: 443, protocol: TCP }] }]
podDisruptionBudget: { minAvailable: 50%, unhealthyPodEvictionPolicy: AlwaysAllow }
";

/// Installs, upgrades and uninstalls a chart, and runs the program with the arguments of its Deployment.
async fn check_chart_install(mut cluster: Cluster) {
    cluster.run_workloads();
    let cluster = &cluster;
    let namespace = format!("helm-podset-{}", std::process::id());
    let helm = Helm::at(cluster, &namespace);
    let chart = helm.chart("podset", "--leader-elect --metrics");
    let chart = chart.display();
    helm.run(&format!("install {RELEASE} {chart} --create-namespace")).await;
    let manifests = objects(&helm.run(&format!("get manifest {RELEASE}")).await);
    let find = |kind: &str| manifests.iter().find(|object| object["kind"] == kind).unwrap().clone();
    wait_for_pods(cluster, &namespace, 2).await;
    // The last upgrade below turns leader election off, and its notes have no command for a Lease.
    let notes = helm.run(&format!("get notes {RELEASE}")).await;

    let program = start_podset(cluster, &namespace, &manifests).await;
    let set = of_namespace(PODSET, &namespace).remove(0);
    cluster.apply_soon(&set, &namespace).await;
    let ready = || async { cluster.get(&set, &namespace).await.unwrap()["status"]["readyReplicas"] == json!(3) };
    until("three pods are ready", ready).await;

    let values = helm.files.join("values.yaml");
    std::fs::write(&values, VALUES).unwrap();
    helm.run(&format!("upgrade {RELEASE} {chart} --values {}", values.display())).await;
    let deployment = cluster.get(&find("Deployment"), &namespace).await.unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(deployment["spec"]["replicas"], 3);
    assert_eq!(pod["containers"][0]["resources"]["limits"], json!({ "memory": "512Mi" }));
    assert_eq!(pod["volumes"][0]["name"], "scratch");
    wait_for_pods(cluster, &namespace, 3).await;
    let upgraded = objects(&helm.run(&format!("get manifest {RELEASE}")).await);
    let user_roles = upgraded.iter().filter(|object| object["kind"] == "ClusterRole").count();
    assert!(user_roles > manifests.iter().filter(|object| object["kind"] == "ClusterRole").count());
    assert!(cluster.get(&set, &namespace).await.is_some(), "an upgrade keeps the objects");
    program.stop().await;
    // Switch from `RollingUpdate` to `Recreate`, which does not allow the `rollingUpdate` field.
    helm.run(&format!("upgrade {RELEASE} {chart} --set replicaCount=1,leaderElection.enabled=false,image.tag=7")).await;
    let deployment = cluster.get(&find("Deployment"), &namespace).await.unwrap();
    assert_eq!(deployment["spec"]["strategy"], json!({ "type": "Recreate" }));
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "example.com/podset:7");

    helm.run(&format!("uninstall {RELEASE} --wait")).await;
    let crd = find("CustomResourceDefinition");
    wait_until_gone(cluster, &upgraded, &namespace).await;
    assert!(cluster.get(&crd, "").await.is_some() && cluster.get(&set, &namespace).await.is_some(), "CRDs are kept");
    let lease = assert_lease_is_left(cluster, &namespace).await;
    let command = format!("kubectl --namespace {namespace} delete lease {lease}");
    assert!(notes.lines().any(|line| line.trim() == command), "the notes of the install: {notes}");

    // The next install adopts the kept CRD. With `crds.keep=false`, uninstall deletes it.
    helm.run(&format!("install {RELEASE} {chart} --set crds.keep=false")).await;
    let manifests = objects(&helm.run(&format!("get manifest {RELEASE}")).await);
    let program = start_podset(cluster, &namespace, &manifests).await;
    until("the program leads", || async { leases(cluster, &namespace).await == [&*lease] }).await;
    program.stop().await;
    helm.run(&format!("uninstall {RELEASE} --wait")).await;
    until("the CRD is gone", || async { cluster.get(&crd, "").await.is_none() }).await;
    wait_until_gone(cluster, &upgraded, &namespace).await;
    assert_lease_is_left(cluster, &namespace).await;
    let space = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    cluster.delete(&space, "").await;
}

/// Runs the program of a release with a token of its `ServiceAccount`. `start_applied` checks that its permissions match the
/// roles.
async fn start_podset<'a>(cluster: &'a Cluster, namespace: &str, manifests: &[Json]) -> Program<'a> {
    let (program, options) = (programs().join("podset"), DeployOptions::default());
    Program::start_applied(cluster, &program, namespace, manifests.to_vec(), Folder::new(), options).await
}

/// Checks that an uninstall left the Lease alone, deletes it as the notes say, and returns its name.
///
/// The program created it, and the next install waits for Pods that still hold it.
async fn assert_lease_is_left(cluster: &Cluster, namespace: &str) -> String {
    let name = format!("{RELEASE}-podset");
    assert_eq!(leases(cluster, namespace).await, [&*name]);
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": name } });
    cluster.delete(&lease, namespace).await;
    assert_eq!(leases(cluster, namespace).await, [] as [&str; 0], "no other Lease");
    name
}

/// Waits until this many Pods of the release run with its `ServiceAccount`.
async fn wait_for_pods(cluster: &Cluster, namespace: &str, n_pods: usize) {
    let name = format!("{RELEASE}-podset");
    let run = || async {
        let pods = cluster.list("v1", "Pod", namespace).await;
        let running = pods.iter().filter(|pod| {
            pod["metadata"]["labels"]["app.kubernetes.io/instance"] == RELEASE
                && pod["metadata"]["deletionTimestamp"].is_null()
                && pod["status"]["phase"] == "Running"
                && pod["spec"]["serviceAccountName"] == *name
        });
        running.count() == n_pods
    };
    until(&format!("{n_pods} pods of the release run"), run).await;
}

/// Waits until the objects of an uninstalled release are gone, except for CRDs. Fails if Helm still has the release.
async fn wait_until_gone(cluster: &Cluster, objects: &[Json], namespace: &str) {
    for object in objects.iter().filter(|object| object["kind"] != "CustomResourceDefinition") {
        let is_gone = || async { cluster.get(object, namespace).await.is_none() };
        until(&format!("{} is gone", object["kind"]), is_gone).await;
    }
    assert_eq!(releases(cluster, namespace).await, 0);
}

/// Returns the number of releases that Helm has recorded in a namespace.
async fn releases(cluster: &Cluster, namespace: &str) -> usize {
    let secrets = cluster.list("v1", "Secret", namespace).await;
    secrets.iter().filter(|secret| secret["type"] == "helm.sh/release.v1").count()
}

/// Returns the names of the Leases in a namespace.
async fn leases(cluster: &Cluster, namespace: &str) -> Vec<String> {
    let leases = cluster.list("coordination.k8s.io/v1", "Lease", namespace).await;
    leases.iter().map(|lease| lease["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Uninstalling a chart with a conversion webhook leaves the CRD, the objects and the Lease, and its notes have the commands that
/// make the objects readable again. The next install takes over.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Helm: cargo xtask helm"]
async fn notes_say_how_to_turn_conversion_off() {
    let cluster = &Cluster::embedded().await;
    let namespace = "helm-website";
    let helm = Helm::at(cluster, namespace);
    let chart = helm.chart("website", "--leader-elect");
    let chart = chart.display();
    let install = format!("install {RELEASE} {chart} --create-namespace");
    helm.run(&install).await;
    let notes = helm.run(&format!("get notes {RELEASE}")).await;
    let patch =
        notes.lines().find_map(|line| line.trim().strip_prefix("kubectl patch crd websites.example.com ")).unwrap();
    let patch = patch.strip_prefix("--type merge --patch '").unwrap().strip_suffix('\'').unwrap();
    let lease = format!("kubectl --namespace {namespace} delete lease {RELEASE}-website");
    assert!(notes.lines().any(|line| line.trim() == lease), "{notes}");
    let manifests = objects(&helm.run(&format!("get manifest {RELEASE}")).await);
    let find = |kind: &str| manifests.iter().find(|object| object["kind"] == kind).unwrap();
    let secret = find("Secret");
    assert!(cluster.get(secret, namespace).await.is_some());

    helm.run(&format!("uninstall {RELEASE} --wait")).await;
    until("the private key is gone", || async { cluster.get(secret, namespace).await.is_none() }).await;
    let crd = find("CustomResourceDefinition");
    cluster.merge(crd, "", &serde_json::from_str(patch).unwrap()).await;
    assert_eq!(cluster.get(crd, "").await.unwrap()["spec"]["conversion"], json!({ "strategy": "None" }));
    helm.run(&format!("{install} --force-conflicts")).await;
    assert_eq!(cluster.get(crd, "").await.unwrap()["spec"]["conversion"]["strategy"], "Webhook");
}

/// cert-manager leaves its Secret behind when its Certificate is deleted.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Helm: cargo xtask helm"]
async fn program_replaces_cert_manager_in_an_upgrade() {
    let cluster = &Cluster::embedded().await;
    for definition in objects(include_str!("../golden/cert-manager.yaml")) {
        cluster.apply(&definition, "").await;
    }
    let namespace = "helm-issuer";
    let helm = Helm::at(cluster, namespace);
    let chart = helm.chart("website", "--with cert-manager");
    let chart = chart.display();
    let install = format!("upgrade --install {RELEASE} {chart} --create-namespace");
    helm.run(&install).await;
    let manifests = objects(&helm.run(&format!("get manifest {RELEASE}")).await);
    let certificate = manifests.iter().find(|object| object["kind"] == "Certificate").unwrap();
    let secret = |name: &Json| {
        let data = json!({ "tls.crt": "", "tls.key": "" });
        json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": { "name": name }, "data": data })
    };
    let issued_secret = secret(&certificate["spec"]["secretName"]);
    cluster.apply_soon(&issued_secret, namespace).await;

    helm.run(&format!("upgrade {RELEASE} {chart} --set certManager.enabled=false")).await;
    let manifests = objects(&helm.run(&format!("get manifest {RELEASE}")).await);
    let own = manifests.iter().find(|object| object["kind"] == "Secret").unwrap();
    assert!(cluster.get(own, namespace).await.unwrap()["data"].is_null(), "the program writes its certificate there");
    assert!(cluster.get(&issued_secret, namespace).await.is_some());

    helm.run(&format!("{install} --reset-values")).await;
    until("the key of the program is gone", || async { cluster.get(own, namespace).await.is_none() }).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Helm: cargo xtask helm"]
async fn chart_installs_upgrades_and_uninstalls_on_embedded_server() {
    check_chart_install(Cluster::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Helm and KUBECONFIG: cargo xtask real-server"]
async fn chart_lifecycle_on_a_real_server() {
    check_chart_install(Cluster::from_env("KUBECONFIG").await).await;
}

/// Generating the chart again keeps a file that a user has changed.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Helm: cargo xtask helm"]
async fn hand_edits_of_values_survive_and_are_rendered() {
    let helm = Helm::new("shop");
    let chart = helm.chart("podset", "--leader-elect");
    let values = chart.join("values.yaml");
    let edited = std::fs::read_to_string(&values).unwrap().replace("replicaCount: 2", "replicaCount: 5 # five");
    let edited = edited.replace("strategy: {}", "strategy: { type: Recreate }");
    std::fs::write(&values, format!("{edited}\n# for our own template\nteam: shop\n")).unwrap();
    std::fs::write(chart.join("templates/own.yaml"), OWN).unwrap();
    std::fs::write(chart.join("templates/crds/own.yaml"), OWN_CRD).unwrap();
    helm.chart("podset", "--leader-elect");
    helm.chart("podset", "--leader-elect --check");
    assert!(std::fs::read_to_string(&values).unwrap().contains("replicaCount: 5 # five\n"));
    let rendered = render_chart(&helm, &chart).await;
    let find = |kind: &str| rendered.iter().find(|object| object["kind"] == kind).unwrap();
    assert_eq!(find("Deployment")["spec"]["replicas"], 5);
    assert_eq!(find("Deployment")["spec"]["strategy"], json!({ "type": "Recreate" }));
    assert_eq!(find("ConfigMap")["data"]["team"], "shop");
    depends_on_itself_as_a_package(&helm, &chart).await;
}

/// Renders a chart with a dependency in `charts/`, to which it passes values, and which its condition turns off.
async fn depends_on_itself_as_a_package(helm: &Helm, dependency: &Path) {
    let chart = helm.chart("website", "");
    helm.run(&format!("package {} --destination {}", dependency.display(), chart.join("charts").display())).await;
    let head = std::fs::read_to_string(chart.join("Chart.yaml")).unwrap();
    let listed = "dependencies: [{ name: podset, version: 0.1.0, condition: podset.enabled }]\n";
    // An appVersion may have a `+`, which neither labels nor tags allow.
    std::fs::write(chart.join("Chart.yaml"), format!("{head}appVersion: 1.2.3+k8s1.33\n{listed}")).unwrap();
    helm.chart("website", "");
    let values = "--set image.tag=,podset.enabled";
    for (is_enabled, n_deployments) in [(true, 2), (false, 1)] {
        let line = format!("template {RELEASE} {} {values}={is_enabled},podset.replicaCount=3", chart.display());
        let rendered = objects(&helm.run(&line).await);
        let deployments: Vec<_> = rendered.iter().filter(|object| object["kind"] == "Deployment").collect();
        assert_eq!(deployments.len(), n_deployments);
        let deployment = deployments.iter().find(|object| object["metadata"]["name"] == "web-website").unwrap();
        assert_eq!(deployment["metadata"]["labels"]["app.kubernetes.io/version"], "1.2.3_k8s1.33");
        assert_eq!(
            deployment["spec"]["template"]["spec"]["containers"][0]["image"],
            "example.com/website:1.2.3_k8s1.33"
        );
    }
}

const OWN_CRD: &str = "{{- if .Values.team }}
# An API server would reject it, and `helm template` does not ask one.
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: teams.shop.example.com }
{{- end }}
";

const OWN: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: own }\ndata: { team: {{ .Values.team }} }\n";

async fn render_chart(helm: &Helm, chart: &Path) -> Vec<Json> {
    helm.run(&format!("lint --strict {}", chart.display())).await;
    objects(&helm.run(&format!("template {RELEASE} {}", chart.display())).await)
}
