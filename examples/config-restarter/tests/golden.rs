//! Compares the generated manifests with `tests/golden/config-restarter` of the workspace. `GOLDEN=overwrite` updates
//! the golden files.

use std::process::Command;

#[test]
fn generated_manifests_match_golden_files() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/config-restarter");
    let overwrite = std::env::var("GOLDEN").is_ok_and(|mode| mode == "overwrite");
    let way: &[&str] = if overwrite { &["--out", folder, "--allow-breaking"] } else { &["--check", folder] };
    let output = Command::new(env!("CARGO_BIN_EXE_config-restarter"))
        .args(["generate-manifests", "--leader-elect", "--metrics", "--image", "example.com/config-restarter:1"])
        .args(way)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
