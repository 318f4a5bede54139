//! Tests that the generated role contains exactly the permissions with which the program creates its webhook
//! certificate.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};

use kctl::{
    Json,
    apiserver::{ApiServer, ServeOptions},
    kube::{
        Api, Client,
        api::{ApiResource, DynamicObject, PostParams},
        core::GroupVersionKind,
    },
};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    task::JoinSet,
};

/// Longest wait for a line or a state.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The Secret with the certificate: group, resource, namespace and name. [`TRUSTING`] lists the objects that trust it.
const SECRET: [&str; 4] = ["", "secrets", "default", "website-webhook-tls"];
const TRUSTING: [[&str; 4]; 3] = [
    ["admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "website"],
    ["admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "website"],
    ["apiextensions.k8s.io", "customresourcedefinitions", "", "websites.example.com"],
];

fn website(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_website"));
    command.args(arguments).env_remove("KUBECONFIG").env_remove("RUST_LOG");
    command
}

fn generated(what: &str) -> Vec<Json> {
    let output = website(&[what]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_saphyr::from_multiple(&String::from_utf8(output.stdout).unwrap()).unwrap()
}

/// A part of a rule: a verb, and a resource as group, resource, namespace and name.
type Part = (&'static str, [&'static str; 4]);

/// Removes one verb on one resource from the roles. Returns the number of rules that contained it.
fn take_out((verb, [group, resource, _, name]): Part, objects: &mut [Json]) -> usize {
    let mut n_taken = 0;
    for role in objects.iter_mut().filter(|object| object["rules"].is_array()) {
        let mut rules = Vec::new();
        for rule in role["rules"].as_array().unwrap() {
            let has =
                |field: &str, text: &str| rule[field].as_array().is_some_and(|all| all.iter().any(|one| one == text));
            if !(has("apiGroups", group)
                && has("resources", resource)
                && has("resourceNames", name)
                && has("verbs", verb))
            {
                rules.push(rule.clone());
                continue;
            }
            n_taken += 1;
            // Keep the rule for its other resources, and for the other verbs on this resource.
            for (field, text) in [("resources", resource), ("verbs", verb)] {
                let mut rest = rule.clone();
                rest[field].as_array_mut().unwrap().retain(|one| one != text);
                if field == "verbs" {
                    rest["resources"] = kctl::json!([resource]);
                }
                if rest[field] != kctl::json!([]) {
                    rules.push(rest);
                }
            }
        }
        role["rules"] = rules.into();
    }
    n_taken
}

async fn create(client: &Client, object: &Json) {
    let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// The program, which runs as its service account, and its output.
struct Running {
    child: Child,
    lines: UnboundedReceiver<String>,
    seen: Vec<String>,
}

impl Running {
    fn start(kubeconfig: &str) -> Self {
        let mut child = website(&["run", "--kubeconfig", kubeconfig, "--as", "system:serviceaccount:default:website"])
            .args(["--webhook-secret=website-webhook-tls", "--webhook-service=website"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = unbounded_channel();
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines, seen: Vec::new() }
    }

    /// Waits for a line that contains all these strings. It also searches the lines that earlier calls have read.
    async fn says(&mut self, texts: &[&str]) {
        let has = |line: &String| texts.iter().all(|text| line.contains(text));
        while !self.seen.iter().any(has) {
            match tokio::time::timeout(TIMEOUT, self.lines.recv()).await {
                Ok(Some(line)) => self.seen.push(line),
                _ => panic!("nothing printed {texts:?}: {:#?}", self.seen),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

fn is_trusted(server: &ApiServer) -> bool {
    let [group, resource, namespace, name] = SECRET;
    let is_made = server.object(group, resource, namespace, name).is_some_and(|secret| secret["data"].is_object());
    let all = TRUSTING.iter().all(|[group, resource, namespace, name]| {
        let object = server.object(group, resource, namespace, name).unwrap();
        object.to_string().contains("\"caBundle\":\"")
    });
    is_made && all
}

/// Runs the program on a separate server, without this part of its role. `None` removes nothing.
async fn without(taken: Option<Part>, mut objects: Vec<Json>, id: usize) {
    let n_taken = taken.map_or(0, |part| take_out(part, &mut objects));
    assert_eq!(n_taken, usize::from(taken.is_some()), "{taken:?} is printed once");
    let server = ApiServer::on_system_time();
    let client = Client::new(server.service(), "default");
    for object in &objects {
        create(&client, object).await;
    }
    let listening = server.listen(ServeOptions::default()).await.unwrap();
    let kubeconfig = std::env::temp_dir().join(format!("kctl-website-{}-{id}", std::process::id()));
    listening.write_kubeconfig(&kubeconfig).unwrap();
    let _serving = tokio::spawn(async move { listening.serve().await.unwrap() });
    let mut program = Running::start(kubeconfig.to_str().unwrap());
    match taken {
        None => {
            let trusted = async {
                while !is_trusted(&server) {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            };
            tokio::time::timeout(TIMEOUT, trusted).await.expect("the certificate is made and trusted");
            program.lines.close();
            while let Some(line) = program.lines.recv().await {
                assert!(!line.contains("may not"), "{line}");
            }
        }
        Some((verb, [group, resource, _, name])) => {
            let dot = if group.is_empty() { "" } else { "." };
            let rejection = format!("may not {verb} {resource}{dot}{group} {name} in");
            program.says(&[&rejection, "which `kctl: the certificate of webhooks` needs"]).await;
            program.says(&["help: ", "generate-rbac --name website --namespace default"]).await;
            let rejected = format!("cannot {verb} resource \"{resource}\"");
            program.says(&["failed to maintain the webhook certificate: ", &rejected]).await;
            assert!(!is_trusted(&server));
        }
    }
    std::fs::remove_file(kubeconfig).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_role_is_minimal_for_webhook_certificates() {
    // Objects that are applied in addition to the roles.
    let kinds = ["CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
    let started = generated("generate-manifests").into_iter().filter(|o| kinds.iter().any(|kind| o["kind"] == **kind));
    let objects: Vec<Json> = started.chain(generated("generate-rbac")).collect();
    let secret_permissions = ["create", "get", "patch"].map(|verb| (verb, SECRET)).into_iter();
    let parts = secret_permissions.chain(TRUSTING.iter().flat_map(|on| ["get", "patch"].map(|verb| (verb, *on))));
    let mut runs = JoinSet::new();
    for (id, part) in parts.map(Some).chain([None]).enumerate() {
        runs.spawn(without(part, objects.clone(), id));
    }
    runs.join_all().await;
}

#[test]
fn rbac_with_cert_manager_omits_secrets() {
    let output = website(&["generate-rbac", "--with", "cert-manager"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("kind: ClusterRole") && !text.contains("secrets"), "{text}");
}
