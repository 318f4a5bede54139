//! What the program runs as in its control plane, and what it may do in a member: `tests/golden/multicluster` of the workspace and
//! `tests/golden/multicluster-member1`. With `GOLDEN=overwrite` they are written anew.

use std::process::Command;

/// What a command prints goes into a golden folder, or is compared with it.
fn check(golden: &str, command: &[&str]) {
    let folder = format!("{}/../../tests/golden/{golden}", env!("CARGO_MANIFEST_DIR"));
    let overwrite = std::env::var("GOLDEN").is_ok_and(|mode| mode == "overwrite");
    let mut way = if overwrite { vec!["--out", &folder] } else { vec!["--check", &folder] };
    // Roles have no versions that could break.
    way.extend((overwrite && command[0] == "generate-manifests").then_some("--allow-breaking"));
    let output = Command::new(env!("CARGO_BIN_EXE_multicluster")).args(command).args(way).output().unwrap();
    assert!(output.status.success(), "{golden}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_manifests_are_the_golden_ones() {
    let image = "example.com/multicluster:1";
    check("multicluster", &["generate-manifests", "--leader-elect", "--metrics", "--image", image]);
}

#[test]
fn what_it_may_do_in_a_member_is_golden_too() {
    check("multicluster-member1", &["generate-rbac", "--cluster", "member1"]);
}
