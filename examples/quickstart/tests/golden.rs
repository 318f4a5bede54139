//! Compares the generated manifests with `tests/golden/quickstart` of the workspace. `GOLDEN=overwrite` updates the
//! golden files.

use std::process::Command;

#[test]
fn generated_manifests_match_golden_files() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/quickstart");
    let overwrite = std::env::var("GOLDEN").is_ok_and(|mode| mode == "overwrite");
    let way: &[&str] = if overwrite { &["--out", folder, "--allow-breaking"] } else { &["--check", folder] };
    let output = Command::new(env!("CARGO_BIN_EXE_quickstart"))
        .args(["generate-manifests", "--leader-elect", "--metrics", "--image", "example.com/quickstart:1"])
        .args(way)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
