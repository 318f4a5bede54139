//! `kctl new` from the command line: the project's folder, its Git repository and its formatting.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A folder outside of every Git repository, removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kctl-new-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

fn new(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kctl")).arg("new").args(arguments).current_dir(folder).output().unwrap()
}

fn created(folder: &Path, arguments: &[&str]) -> String {
    let output = new(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn project_is_named_after_its_last_path_component() {
    let folder = Folder::new("path");
    let said = created(&folder.0, &["some/place/web-site"]);
    let project = folder.0.join("some/place/web-site");
    let text = |file: &str| fs::read_to_string(project.join(file)).unwrap();
    assert!(text("Cargo.toml").contains("name = \"web-site\""));
    assert!(text("src/main.rs").contains("kind = \"WebSite\""));
    assert!(said.contains("cd some/place/web-site && cargo run"), "{said}");

    created(&folder.0, &["./other/", "--name", "shop"]);
    let manifest = fs::read_to_string(folder.0.join("other/Cargo.toml")).unwrap();
    assert!(manifest.contains("name = \"shop\""), "{manifest}");

    for (path, expected) in [
        ("some/place", "some/place is there already"),
        ("a/..", "`a/..` names no folder"),
        ("Web_Site", "`Web_Site` is not a valid project name"),
    ] {
        let output = new(&folder.0, &[path]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(expected), "{path}: {text}");
    }
}

#[test]
fn new_project_is_git_repository_unless_inside_one() {
    let version = Command::new("git").arg("--version").output();
    assert!(version.is_ok(), "install git: a contributor has it, and without it nothing here would be checked");
    let folder = Folder::new("git");
    created(&folder.0, &["plain", "--vcs", "none"]);
    assert!(!folder.0.join("plain/.git").exists());
    created(&folder.0, &["outer"]);
    assert!(folder.0.join("outer/.git").is_dir());
    created(&folder.0.join("outer"), &["tools/inner"]);
    assert!(!folder.0.join("outer/tools/inner/.git").exists(), "the repository above has it");

    // The README tags the image with the commit, so its `git` commands have to work.
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"];
        Command::new("git").args(identity).args(arguments).current_dir(folder.0.join("outer")).output().unwrap()
    };
    let readme = fs::read_to_string(folder.0.join("outer/README.md")).unwrap();
    for command in ["git add --all", "git commit --message \"New project\"", "git rev-parse --short HEAD"] {
        assert!(readme.contains(command), "{command}");
    }
    for arguments in [&["add", "--all"][..], &["commit", "--message", "New project"], &["rev-parse", "--short", "HEAD"]]
    {
        let output = git(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    created(&folder.0.join("outer"), &["apart", "--vcs", "git"]);
    assert!(folder.0.join("outer/apart/.git").is_dir());
}

#[test]
fn generated_code_has_the_default_format() {
    let folder = Folder::new("format");
    for name in ["web", "a-project-with-a-name-that-makes-lines-long"] {
        created(&folder.0, &[name, "--vcs", "none"]);
        let mut check = Command::new("rustfmt");
        check.args(["--edition", "2024", "--check", "src/main.rs"]).current_dir(folder.0.join(name));
        let output = check.output().expect("rustfmt is a component of the toolchain");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stdout));
    }
}
