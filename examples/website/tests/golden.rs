//! Compares the generated manifests with `tests/golden/website` of the workspace, and those for cert-manager with
//! `tests/golden/website-cert-manager`. `GOLDEN=overwrite` updates the golden files.

#[path = "../../../tests/golden/chart.rs"]
mod chart;

use std::process::Command;

#[test]
fn generated_manifests_match_golden_files() {
    let overwrite = std::env::var("GOLDEN").is_ok_and(|mode| mode == "overwrite");
    for (golden, with) in [("website", None), ("website-cert-manager", Some("--with=cert-manager"))] {
        let folder = format!("{}/../../tests/golden/{golden}", env!("CARGO_MANIFEST_DIR"));
        let way: &[&str] = if overwrite { &["--out", &folder, "--allow-breaking"] } else { &["--check", &folder] };
        let output = Command::new(env!("CARGO_BIN_EXE_website"))
            .args(["generate-manifests", "--leader-elect", "--metrics", "--image", "example.com/website:1"])
            .args(with)
            .args(way)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn generated_chart_matches_golden_files() {
    chart::check("website", env!("CARGO_BIN_EXE_website"), env!("CARGO_TARGET_TMPDIR"));
}
