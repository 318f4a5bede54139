//! Compares the generated manifests with `tests/golden/multicluster` of the workspace, and the manifests of a member
//! with `tests/golden/multicluster-member1`. `GOLDEN=overwrite` updates the golden files.

use std::process::Command;

/// Compares the output of a command with a golden folder, or writes it there.
fn check(golden: &str, command: &[&str]) {
    let folder = format!("{}/../../tests/golden/{golden}", env!("CARGO_MANIFEST_DIR"));
    let overwrite = std::env::var("GOLDEN").is_ok_and(|mode| mode == "overwrite");
    let mut way = if overwrite { vec!["--out", &folder] } else { vec!["--check", &folder] };
    // Roles are not versioned, so a change of a role is not a breaking change.
    way.extend((overwrite && command[0] == "generate-manifests").then_some("--allow-breaking"));
    let output = Command::new(env!("CARGO_BIN_EXE_multicluster")).args(command).args(way).output().unwrap();
    assert!(output.status.success(), "{golden}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn generated_manifests_match_golden_files() {
    let image = "example.com/multicluster:1";
    check("multicluster", &["generate-manifests", "--leader-elect", "--metrics", "--image", image]);
}

#[test]
fn member_role_equals_the_golden_one() {
    check("multicluster-member1", &["generate-rbac", "--cluster", "member1"]);
}
