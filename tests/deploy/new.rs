//! Deploys a project from `kctl new` with the commands of its README.

use std::{iter, path::Path, process::Command};

use kctl::{
    apiserver::{ApiServer, ServeOptions},
    json,
};

use crate::{
    build::{self, cargo, programs, run, shell},
    cluster::{Cluster, until},
    files::{Folder, kustomization_objects},
    program::{DeployOptions, Program},
};

/// Name of the project whose commands run. No example has a kind of this name.
const NAME: &str = "tea-room";
/// Name of the project that is deployed. Both tests may run at the same time, and share a folder of programs.
const DEPLOYED_NAME: &str = "tea-garden";
/// Commit that the image's build is given.
const COMMIT: &str = "abc1234";

/// Creates and builds the project with the dependency versions and profiles of this repository. With the table
/// of `cargo xtask`, it has the same features of third-party crates too, so none of them is compiled again.
fn project(folder: &Folder, name: &str) -> std::path::PathBuf {
    run(Command::new(programs().join("kctl")).args(["new", name]).current_dir(&**folder));
    let project = folder.join(name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::fs::copy(root.join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    std::fs::create_dir(folder.join(".cargo")).unwrap();
    std::fs::copy(root.join(".cargo/config.toml"), folder.join(".cargo/config.toml")).unwrap();
    if let Ok(table) = std::env::var("KCTL_THIRD_PARTY") {
        let manifest = project.join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).unwrap();
        std::fs::write(manifest, text + &table).unwrap();
    }
    // With `--tests`, Cargo selects the same features as for `cargo test` in the project.
    run(cargo("build").args(["--bins", "--tests"]).env("COMMIT", COMMIT).current_dir(&project));
    project
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs KUBECONFIG and kubectl: cargo xtask deployed"]
async fn new_project_is_deployed_on_a_real_server() {
    let cluster = Cluster::from_env("KUBECONFIG").await;
    let folder = Folder::new();
    let project = project(&folder, DEPLOYED_NAME);
    let program = build::target().join("debug").join(DEPLOYED_NAME);
    let version = run(Command::new(&program).arg("--version"));
    let starts =
        format!("{DEPLOYED_NAME} 0.1.0, commit {COMMIT}\nkctl {}, debug build for ", env!("CARGO_PKG_VERSION"));
    assert!(version.starts_with(&starts), "{version}");
    let image = format!("registry.example.com/{DEPLOYED_NAME}:1");
    let generate = ["generate-manifests", "--leader-elect", "--metrics", "--image", &image, "--out", "deploy"];
    run(Command::new(&program).args(generate).current_dir(&project));
    for dry_run in [&["--dry-run=server"][..], &[]] {
        let mut kubectl = Command::new("kubectl");
        run(kubectl.args(["apply", "-k", "deploy"]).args(dry_run).current_dir(&project));
    }
    let manifests = kustomization_objects(&project.join("deploy"));
    let options = DeployOptions::default();
    let running = Program::start_applied(&cluster, &program, "default", manifests, Folder::new(), options).await;
    let mut kubectl = Command::new("kubectl");
    run(kubectl.args(["apply", "-n", "default", "-f", "sample.yaml"]).current_dir(&project));
    let sample = crate::files::objects(&std::fs::read_to_string(project.join("sample.yaml")).unwrap()).remove(0);
    let config = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": sample["metadata"]["name"] } });
    let message = || async { Some(cluster.get(&config, "default").await?["data"]["message"].take()) };
    until("the config map says the message", || async { message().await.as_ref() == Some(&sample["spec"]["message"]) })
        .await;
    cluster.delete(&sample, "default").await;
    until("the config map goes", || async { cluster.get(&config, "default").await.is_none() }).await;
    running.assert_never_forbidden().await;
}

/// Returns the commands in a file of the project: the rest of each line that starts with `begin`.
fn commands(project: &Path, file: &str, begin: &str) -> Vec<String> {
    let text = std::fs::read_to_string(project.join(file)).unwrap();
    text.lines().filter_map(|line| line.strip_prefix(begin)).map(str::to_owned).collect()
}

/// Returns the commands in the `run: |` blocks of the workflow.
fn block_commands(project: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(project.join(".github/workflows/ci.yml")).unwrap();
    let blocks = text.split("        run: |\n").skip(1);
    let lines = blocks.flat_map(|block| block.lines().map_while(|line| line.strip_prefix("          ")));
    lines.map(str::to_owned).collect()
}

/// Returns a command of the project. With `KCTL_LINTS_TARGET`, clippy and `cargo check` use that target folder, where
/// `cargo xtask` has checked the dependencies for them.
fn command(line: &str) -> Command {
    let mut command = shell(line);
    let is_lint = ["cargo clippy ", "cargo check "].iter().any(|begin| line.starts_with(begin));
    if let Some(folder) = std::env::var_os("KCTL_LINTS_TARGET").filter(|_| is_lint) {
        command.env("CARGO_TARGET_DIR", folder);
    }
    command
}

/// Runs the commands of README and workflow in order, except image builds, which `cargo xtask image` runs, and `run`, which
/// never ends. kubectl talks to an embedded API server. `cargo xtask` names the tools that this machine lacks: without kubectl or
/// Helm, their commands are skipped.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask new-project"]
async fn every_command_of_a_new_project_works() {
    let folder = Folder::new();
    let kubeconfig = folder.join("kubeconfig");
    let server = ApiServer::on_system_time();
    let listening = server.listen(ServeOptions::default()).await.unwrap();
    listening.write_kubeconfig(&kubeconfig).unwrap();
    tokio::spawn(server.controllers());
    tokio::spawn(listening.serve());
    let project = project(&folder, NAME);
    let (readme, workflow) =
        (commands(&project, "README.md", "    "), commands(&project, ".github/workflows/ci.yml", "      - run: "));
    let chart = block_commands(&project);
    assert_eq!((readme.len(), workflow.len(), chart.len()), (10, 5, 3), "{readme:?} {workflow:?} {chart:?}");
    // Before the README's command writes the folder: `kctl new` made it without the program.
    let check = workflow.iter().find(|line| line.ends_with("--out deploy --check")).unwrap();
    run(command(check).current_dir(&project));
    let has_kubectl = Command::new("kubectl").args(["version", "--client"]).output().is_ok();
    let has_helm = Command::new("helm").arg("version").output().is_ok();
    for line in readme.iter().chain(&workflow).chain(&chart) {
        let needs_docker = line.starts_with("docker ");
        let lacks_tool = (!has_kubectl && line.contains("kubectl")) || (!has_helm && line.starts_with("helm "));
        if needs_docker || lacks_tool || line.ends_with("-- run") {
            eprintln!("skipped: {line}");
        } else {
            eprintln!("{line}");
            let mut command = command(line);
            if line.contains("kubectl") {
                command.env("KUBECONFIG", &kubeconfig);
            }
            run(command.current_dir(&project));
        }
    }
    if has_kubectl {
        let names: Vec<_> =
            server.objects("apps", "deployments").iter().map(|object| object["metadata"]["name"].clone()).collect();
        assert_eq!(names, [NAME], "kubectl has applied `deploy`");
    }
    let generate = readme.iter().find(|line| line.ends_with("--out deploy")).unwrap();
    add_everything(&project, generate, &[workflow, chart].concat());
}

/// Runs each kind of `kctl add`, writes the manifests again, and then runs the commands of the workflow.
///
/// The command that writes the manifests must not have `--locked`: the feature that `kctl add webhook` enables changes
/// `Cargo.lock`.
fn add_everything(project: &Path, generate: &str, checks: &[String]) {
    let kctl = |line: &str| {
        let mut kctl = Command::new(programs().join("kctl"));
        run(kctl.arg("add").args(line.split(' ')).current_dir(project));
    };
    kctl("controller tea-house --kind Inn");
    name_more(&project.join("src/tea_house.rs"));
    for line in [
        "webhook TeaRoom",
        "version v1 --kind Inn",
        // These have to find the stored version in `tea_house.rs`, which comes after `inn_v1.rs`.
        "version v1beta1 --kind Inn",
        "webhook Inn",
    ] {
        kctl(line);
    }
    let has_helm = Command::new("helm").arg("version").output().is_ok();
    for line in iter::once(generate).chain(checks.iter().map(String::as_str)) {
        if !has_helm && line.starts_with("helm ") {
            continue;
        }
        eprintln!("{line}");
        run(command(line).env("KUBECONFIG", "/dev/null").current_dir(project));
    }
}

/// Adds fields to a spec whose types and defaults are outside of it: an import, and a private function.
fn name_more(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    let fields = "    pub message: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default = \"default_port\")]
    pub port: u16,
";
    let text = text.replacen("use kctl", "use std::collections::BTreeMap;\n\nuse kctl", 1);
    let text = text.replacen("    pub message: String,\n", fields, 1);
    let value = "message: \"hello\".into()";
    assert!(text.contains(fields) && text.contains(value), "{text}");
    let text = text.replace(value, &format!("{value}, labels: BTreeMap::new(), port: 80"));
    let function = "\nfn default_port() -> u16 {\n    80\n}\n";
    let (code, tests) = text.split_once("\n#[cfg(test)]").unwrap();
    std::fs::write(file, format!("{code}{function}\n#[cfg(test)]{tests}")).unwrap();
    run(Command::new("rustfmt").args(["--edition", "2024"]).arg(file));
}
