#!/usr/bin/env python3
"""Measures the time to compile a test of a CRD controller: a crate outside the workspace with one controller and one `TestServer` test.

    benches/compile/test_server.py [FEATURES] [CHECKOUT]

FEATURES are features of kctl (default: testing). CHECKOUT is the folder of another commit to compare with. Builds and runs the test in an
empty target folder. Then changes the crate and rebuilds it incrementally, three times. Prints the CPU time (user) of Cargo and all
compilers, and the elapsed time.
"""

import os, pathlib, resource, shutil, subprocess, sys, time

from versions import newest

FEATURES = sys.argv[1] if len(sys.argv) > 1 else "testing"
CHECKOUT = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).resolve().parents[2]).resolve()
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", CHECKOUT / "target")).resolve() / "test-server"

MANIFEST = f"""[package]
name = "sites"
version = "0.0.0"
edition = "2024"
publish = false

[workspace]

[dependencies]
kctl = {{ path = "{CHECKOUT}/kctl", default-features = false, features = ["{newest(CHECKOUT)}"] }}
tokio = {{ version = "1", features = ["rt", "macros"] }}

[dev-dependencies]
kctl = {{ path = "{CHECKOUT}/kctl", default-features = false, features = ["{newest(CHECKOUT)}", {", ".join(f'"{one}"' for one in FEATURES.split(","))}] }}
tokio = {{ version = "1", features = ["test-util"] }}

[profile.dev]
debug = "line-tables-only"

[profile.dev.package."*"]
debug = false
"""

SOURCE = """//! Keeps a `ConfigMap` for each `Site`.

use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Site", namespaced, status = "SiteStatus")]
pub struct SiteSpec {
    pub host: String,
}

#[schema]
pub struct SiteStatus {
    pub ready: bool,
}

#[controller(owns = ConfigMap(create))]
pub async fn sites(site: Arc<Site>, cx: Context<sites>) -> Result<Action> {
    let owned = cx.owned::<ConfigMap>();
    if owned.is_empty() {
        let metadata = ObjectMeta { name: Some(site.name_any()), ..ObjectMeta::default() };
        owned.create(ConfigMap { metadata, ..ConfigMap::default() }).await?;
    }
    cx.patch_status(SiteStatus { ready: true }).await?;
    Ok(Action::await_change())
}

#[cfg(test)]
mod tests {
    use kctl::{kube::Api, testing::TestServer};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn site_gets_a_config_map() {
        let site = "{apiVersion: example.com/v1, kind: Site, metadata: {name: web}, spec: {host: a.example.com}}";
        let server = TestServer::start_with(App::new("sites").controller::<sites>(), site).await.unwrap();
        server.idle().await.unwrap();
        let configs = Api::<ConfigMap>::default_namespaced(server.client());
        assert!(configs.get_opt("web").await.unwrap().is_some());
    }
}
"""

def build(incremental):
    environment = os.environ | {"CARGO_TARGET_DIR": str(TARGET), "CARGO_INCREMENTAL": str(incremental)}
    environment.pop("CARGO_PROFILE_DEV_DEBUG", None)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, time.monotonic()
    subprocess.run(["cargo", "test", "--quiet", "--no-run"], cwd=TARGET / "sites", env=environment, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, time.monotonic() - start, environment

def main():
    shutil.rmtree(TARGET, ignore_errors=True)
    (TARGET / "sites" / "src").mkdir(parents=True)
    (TARGET / "sites" / "Cargo.toml").write_text(MANIFEST)
    shutil.copy(CHECKOUT / "Cargo.lock", TARGET / "sites" / "Cargo.lock")
    source = TARGET / "sites" / "src" / "lib.rs"
    source.write_text(SOURCE)
    user, wall, environment = build(1)
    print(f"{FEATURES}: from nothing {user:.1f} s CPU, {wall:.1f} s", flush=True)
    subprocess.run(["cargo", "test", "--quiet"], cwd=TARGET / "sites", env=environment, check=True, stdout=subprocess.DEVNULL)
    for run in range(3):
        source.write_text(SOURCE + f"// change {run}\n")
        user, wall, _ = build(1)
        print(f"{FEATURES}: the crate changed {user:.2f} s CPU, {wall:.2f} s", flush=True)

main()
