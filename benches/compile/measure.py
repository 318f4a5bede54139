#!/usr/bin/env python3
"""Measures the time to compile an operator: the same ten controllers on kctl and on kube alone, as a debug build with built dependencies.

    benches/compile/measure.py [RUNS] [CONTROLLERS]

Writes both programs into target/compile, and builds their dependencies once. Then compiles them RUNS times in turn, and measures only
the CPU time (user + system) of rustc and of its linker. Prints each run, the medians and their ratio.
"""

import os, pathlib, shutil, statistics, subprocess, sys

from versions import dependency, newest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = ROOT / "target" / "compile"
RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
CONTROLLERS = int(sys.argv[2]) if len(sys.argv) > 2 else 10

WORKSPACE = f"""[workspace]
resolver = "3"
members = ["on-kctl", "on-kube"]

[workspace.dependencies]
kctl = {{ path = "{ROOT}/kctl", default-features = false, features = ["{newest(ROOT)}"] }}
kube = {{ version = "{dependency(ROOT, "kube")}", default-features = false, features = ["client", "derive", "jsonpatch", "rustls-tls", "ring", "runtime"] }}
k8s-openapi = {{ version = "{dependency(ROOT, "k8s-openapi")}", features = ["schemars", "{newest(ROOT)}"] }}
schemars = "{dependency(ROOT, "schemars")}"
serde = {{ version = "1", features = ["derive"] }}
serde_json = "1"
futures = "0.3"
thiserror = "2"
tokio = {{ version = "1", features = ["rt-multi-thread", "macros", "signal"] }}

[profile.dev]
debug = "line-tables-only"
"""

DEPENDENCIES = {
    "on-kctl": ["kctl", "tokio"],
    "on-kube": ["kube", "k8s-openapi", "schemars", "serde", "serde_json", "futures", "thiserror", "tokio"],
}

KCTL_KIND = """//! Kind {n}: a ConfigMap for each, and a status.
use std::collections::BTreeMap;

use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Site{n}", namespaced, status = "Site{n}Status")]
pub struct Site{n}Spec {{
    pub host: String,
    pub paths: Vec<String>,
    pub limits: Option<Limits{n}>,
}}

#[schema]
pub struct Limits{n} {{
    pub requests: i32,
    pub bytes: Option<i64>,
}}

#[schema]
#[derive(Default)]
pub struct Site{n}Status {{
    pub ready: bool,
    pub observed_generation: i64,
}}

#[controller(owns = ConfigMap)]
pub async fn site{n}(site: Arc<Site{n}>, cx: Context<site{n}>) -> Result<Action> {{
    let mut data = BTreeMap::new();
    data.insert("host".to_owned(), site.spec.host.clone());
    data.insert("paths".to_owned(), site.spec.paths.join(","));
    if let Some(limits) = &site.spec.limits {{
        data.insert("requests".to_owned(), limits.requests.to_string());
    }}
    let config = ConfigMap {{
        metadata: ObjectMeta {{ name: Some(site.name_any()), ..ObjectMeta::default() }},
        data: Some(data),
        ..ConfigMap::default()
    }};
    cx.owned::<ConfigMap>().apply(config).await?;
    let observed_generation = site.metadata.generation.unwrap_or_default();
    cx.patch_status(Site{n}Status {{ ready: true, observed_generation }}).await?;
    Ok(Action::await_change())
}}
"""

KUBE_KIND = """//! Kind {n}: a ConfigMap for each, and a status.
use std::{{collections::BTreeMap, sync::Arc, time::Duration}};

use futures::StreamExt;
use k8s_openapi::{{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta}};
use kube::{{
    Api, Client, CustomResource, Resource, ResourceExt,
    api::{{Patch, PatchParams}},
    runtime::{{controller::{{Action, Controller}}, watcher}},
}};
use schemars::JsonSchema;
use serde::{{Deserialize, Serialize}};

#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Site{n}", namespaced, status = "Site{n}Status")]
#[serde(rename_all = "camelCase")]
pub struct Site{n}Spec {{
    pub host: String,
    pub paths: Vec<String>,
    pub limits: Option<Limits{n}>,
}}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits{n} {{
    pub requests: i32,
    pub bytes: Option<i64>,
}}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Site{n}Status {{
    pub ready: bool,
    pub observed_generation: i64,
}}

#[derive(Debug, thiserror::Error)]
pub enum Error {{
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error("no owner reference")]
    Owner,
}}

struct State {{
    client: Client,
}}

async fn reconcile(site: Arc<Site{n}>, state: Arc<State>) -> Result<Action, Error> {{
    let namespace = site.namespace().unwrap_or_default();
    let mut data = BTreeMap::new();
    data.insert("host".to_owned(), site.spec.host.clone());
    data.insert("paths".to_owned(), site.spec.paths.join(","));
    if let Some(limits) = &site.spec.limits {{
        data.insert("requests".to_owned(), limits.requests.to_string());
    }}
    let owner = site.controller_owner_ref(&()).ok_or(Error::Owner)?;
    let config = ConfigMap {{
        metadata: ObjectMeta {{
            name: Some(site.name_any()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        }},
        data: Some(data),
        ..ConfigMap::default()
    }};
    let params = PatchParams::apply("sites").force();
    let configs = Api::<ConfigMap>::namespaced(state.client.clone(), &namespace);
    configs.patch(&site.name_any(), &params, &Patch::Apply(&config)).await?;
    let observed_generation = site.meta().generation.unwrap_or_default();
    let status = Site{n}Status {{ ready: true, observed_generation }};
    let sites = Api::<Site{n}>::namespaced(state.client.clone(), &namespace);
    let patch = serde_json::json!({{ "status": status }});
    sites.patch_status(&site.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(Action::await_change())
}}

fn failed(_site: Arc<Site{n}>, _error: &Error, _state: Arc<State>) -> Action {{
    Action::requeue(Duration::from_secs(5))
}}

pub async fn run(client: Client) {{
    let (sites, configs) = (Api::<Site{n}>::all(client.clone()), Api::<ConfigMap>::all(client.clone()));
    Controller::new(sites, watcher::Config::default())
        .owns(configs, watcher::Config::default())
        .shutdown_on_signal()
        .run(reconcile, failed, Arc::new(State {{ client }}))
        .for_each(|_| std::future::ready(()))
        .await;
}}
"""

def mains():
    numbers = range(CONTROLLERS)
    modules = "".join(f"mod site{n};\n" for n in numbers)
    controllers = "".join(f"        .controller::<site{n}::site{n}>()\n" for n in numbers)
    kctl = f"""//! {CONTROLLERS} controllers on kctl.
{modules}
#[tokio::main]
async fn main() -> kctl::Result<()> {{
    kctl::App::new("sites")
{controllers}        .main()
        .await
}}
"""
    runs = "".join(f"        tokio::spawn(site{n}::run(client.clone())),\n" for n in numbers)
    kube = f"""//! {CONTROLLERS} controllers on kube alone.
{modules}
#[tokio::main]
async fn main() -> Result<(), kube::Error> {{
    let client = kube::Client::try_default().await?;
    let all = [
{runs}    ];
    futures::future::join_all(all).await;
    Ok(())
}}
"""
    return {"on-kctl": kctl, "on-kube": kube}

def write():
    PLACE.mkdir(parents=True, exist_ok=True)
    (PLACE / "Cargo.toml").write_text(WORKSPACE)
    shutil.copy(ROOT / "Cargo.lock", PLACE / "Cargo.lock")
    for name, main in mains().items():
        crate = PLACE / name
        shutil.rmtree(crate, ignore_errors=True)
        (crate / "src").mkdir(parents=True)
        dependencies = "".join(f"{d}.workspace = true\n" for d in DEPENDENCIES[name])
        (crate / "Cargo.toml").write_text(
            f'[package]\nname = "{name}"\nversion = "0.0.0"\nedition = "2024"\npublish = false\n\n[dependencies]\n{dependencies}'
        )
        (crate / "src" / "main.rs").write_text(main)
        kind = KCTL_KIND if name == "on-kctl" else KUBE_KIND
        for n in range(CONTROLLERS):
            (crate / "src" / f"site{n}.rs").write_text(kind.format(n=n))
    wrapper = PLACE / "rustc.py"
    wrapper.write_text(
        "#!/usr/bin/env python3\n"
        "import os, resource, subprocess, sys\n"
        "code = subprocess.run(sys.argv[1:]).returncode\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "with open(os.environ['RUSTC_TIMES'], 'a') as times:\n"
        "    print(used.ru_utime + used.ru_stime, file=times)\n"
        "sys.exit(code)\n"
    )
    wrapper.chmod(0o755)

def build(name, times):
    times.unlink(missing_ok=True)
    # The target folder of the workspace, where the dependencies that both programs share with it are already built.
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    environment = os.environ | {
        "RUSTC_WORKSPACE_WRAPPER": str(PLACE / "rustc.py"), "RUSTC_TIMES": str(times), "CARGO_INCREMENTAL": "0",
        "CARGO_TARGET_DIR": target,
    }
    (PLACE / name / "src" / "main.rs").touch()
    subprocess.run(["cargo", "build", "--quiet", "-p", name], cwd=PLACE, env=environment, check=True)
    return sum(float(line) for line in times.read_text().split())

def main():
    write()
    times = PLACE / "times"
    for name in DEPENDENCIES:
        build(name, times)
    cpu = {name: [] for name in DEPENDENCIES}
    for run in range(RUNS):
        for name in DEPENDENCIES:
            cpu[name].append(build(name, times))
        print(f"run {run + 1}: " + ", ".join(f"{name} {all[-1]:.2f} s" for name, all in cpu.items()), flush=True)
    kctl, kube = (statistics.median(cpu[name]) for name in ("on-kctl", "on-kube"))
    print(f"median: on-kctl {kctl:.2f} s, on-kube {kube:.2f} s, ratio {kctl / kube:.2f}")

main()
