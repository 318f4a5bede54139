//! Compares the generated manifests with `tests/golden/podset` of the workspace. `GOLDEN=overwrite` updates the golden
//! files.

#[path = "../../../tests/golden/chart.rs"]
mod chart;

use std::process::Command;

#[test]
fn generated_manifests_match_golden_files() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/podset");
    let overwrite = std::env::var("GOLDEN").is_ok_and(|mode| mode == "overwrite");
    let way: &[&str] = if overwrite { &["--out", folder, "--allow-breaking"] } else { &["--check", folder] };
    let output = Command::new(env!("CARGO_BIN_EXE_podset"))
        .args(["generate-manifests", "--leader-elect", "--metrics", "--image", "example.com/podset:1"])
        .args(way)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn generated_chart_matches_golden_files() {
    chart::check("podset", env!("CARGO_BIN_EXE_podset"), env!("CARGO_TARGET_TMPDIR"));
}
