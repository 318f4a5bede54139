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

fn create_project(folder: &Path, arguments: &[&str]) -> String {
    let output = new(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn project_is_named_after_its_last_path_component() {
    let folder = Folder::new("path");
    let printed = create_project(&folder.0, &["some/place/web-site"]);
    let project = folder.0.join("some/place/web-site");
    let text = |file: &str| fs::read_to_string(project.join(file)).unwrap();
    assert!(text("Cargo.toml").contains("name = \"web-site\""));
    assert!(text("src/main.rs").contains("kind = \"WebSite\""));
    assert!(printed.contains("cd some/place/web-site && cargo run"), "{printed}");

    create_project(&folder.0, &["./other/", "--name", "shop"]);
    let manifest = fs::read_to_string(folder.0.join("other/Cargo.toml")).unwrap();
    assert!(manifest.contains("name = \"shop\""), "{manifest}");

    fs::write(folder.0.join("file"), "").unwrap();
    for (path, expected) in [
        ("some/place", "the folder `some/place` has files already"),
        (
            ".",
            "the folder `.` has files already, and `kctl new` fills only an empty folder or a fresh clone\nhelp: pass a folder",
        ),
        ("a/..", "`a/..` has no last path component"),
        ("file", "`file` is a file\nhelp: pass a folder"),
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
    create_project(&folder.0, &["plain", "--vcs", "none"]);
    assert!(!folder.0.join("plain/.git").exists());
    create_project(&folder.0, &["outer"]);
    assert!(folder.0.join("outer/.git").is_dir());
    create_project(&folder.0.join("outer"), &["tools/inner"]);
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
    create_project(&folder.0.join("outer"), &["apart", "--vcs", "git"]);
    assert!(folder.0.join("outer/apart/.git").is_dir());
}

/// GitHub reads workflows at the root of a repository alone.
#[test]
fn workflow_is_written_only_where_github_reads_it() {
    let folder = Folder::new("workflow");
    for (place, arguments, has_workflow) in [
        ("", &["alone"][..], true),
        ("", &["plain", "--vcs", "none"], true),
        ("alone", &["inner"], false),
        ("alone", &["apart", "--vcs", "git"], true),
    ] {
        let place = folder.0.join(place);
        let output = create_project(&place, arguments);
        assert_eq!(place.join(arguments[0]).join(".github").exists(), has_workflow, "{arguments:?}");
        assert_eq!(output.contains("the workflow in .github"), has_workflow, "{arguments:?}: {output}");
        let readme = fs::read_to_string(place.join(arguments[0]).join("README.md")).unwrap();
        for file in ["ci.yml", "dependabot.yml"] {
            assert_eq!(readme.contains(file), has_workflow, "{arguments:?}: {readme}");
        }
        assert!(readme.ends_with("has `deploy` as its resource.\n"), "{readme}");
    }
    for file in ["alone/.github/workflows/ci.yml", "alone/.github/dependabot.yml"] {
        assert!(folder.0.join(file).exists(), "{file}");
    }
    assert!(folder.0.join("alone/inner/deploy/kustomization.yaml").exists(), "manifests need no workflow");
    let head = fs::read_to_string(folder.0.join("alone/.git/HEAD")).unwrap();
    assert_eq!(head, "ref: refs/heads/main\n", "the workflow runs for this branch");
    let attributes = fs::read_to_string(folder.0.join("alone/.gitattributes")).unwrap();
    assert_eq!(attributes, "* text=auto eol=lf\n", "generated files have LF");
}

#[test]
fn empty_folder_and_fresh_clone_are_filled() {
    let folder = Folder::new("clone");
    fs::create_dir_all(folder.0.join("empty")).unwrap();
    create_project(&folder.0, &["empty", "--vcs", "none"]);
    let clone = folder.0.join("web-site");
    fs::create_dir_all(&clone).unwrap();
    assert!(Command::new("git").args(["init", "--quiet"]).current_dir(&clone).status().unwrap().success());
    create_project(&clone, &["."]);
    assert!(fs::read_to_string(clone.join("Cargo.toml")).unwrap().contains("name = \"web-site\""));
    assert!(clone.join(".github").exists());
    assert!(!new(&clone, &["."]).status.success(), "it has files now");
}

#[test]
fn every_changed_file_is_named() {
    let folder = Folder::new("add");
    create_project(&folder.0, &["shop", "--vcs", "none"]);
    for (arguments, is_manifest_changed) in
        [(["controller", "bar"], false), (["webhook", "Shop"], true), (["webhook", "Bar"], false)]
    {
        let mut kctl = Command::new(env!("CARGO_BIN_EXE_kctl"));
        let output = kctl.arg("add").args(arguments).current_dir(folder.0.join("shop")).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && stderr.contains("changed ./src/main.rs\n"), "{stderr}");
        assert_eq!(stderr.contains("changed ./Cargo.toml\n"), is_manifest_changed, "{stderr}");
        let command =
            "again: cargo run -- generate-manifests --leader-elect --image registry.example.com/shop:1 --out deploy\n";
        assert!(stderr.contains(command), "{stderr}");
    }
}

/// Returns the names of a workspace's packages.
fn packages(folder: &Path) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version=1"]).current_dir(folder);
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}: {}", folder.display(), String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter().map(|package| package["name"].as_str().unwrap());
    packages.collect::<Vec<_>>().join(" ")
}

#[test]
fn project_in_a_cargo_workspace_leaves_it_intact() {
    let folder = Folder::new("workspace");
    fs::write(folder.0.join("Cargo.toml"), "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"3\"\n").unwrap();
    let output = create_project(&folder.0, &["crates/web", "--vcs", "none"]);
    assert!(output.contains("is a member of the workspace"), "{output}");
    create_project(&folder.0, &["ops/bar", "--vcs", "none"]);
    assert_eq!(packages(&folder.0), "web");
    assert_eq!(packages(&folder.0.join("crates/web")), "web");
    assert_eq!(packages(&folder.0.join("ops/bar")), "bar");
    for (project, has_profile) in [("crates/web", false), ("ops/bar", true)] {
        let manifest = fs::read_to_string(folder.0.join(project).join("Cargo.toml")).unwrap();
        for profile in ["[profile.dev]", "[profile.release]"] {
            assert_eq!(manifest.contains(profile), has_profile, "Cargo ignores it in a member: {manifest}");
        }
    }
}

#[test]
fn version_of_rust_is_pinned_once() {
    let folder = Folder::new("toolchain");
    create_project(&folder.0, &["web", "--vcs", "none"]);
    let toolchain = folder.0.join("web/rust-toolchain.toml");
    let pinned = fs::read_to_string(&toolchain).unwrap();
    let version = pinned.lines().find_map(|line| line.strip_prefix("channel = \"")?.strip_suffix('"')).unwrap();
    let docker = fs::read_to_string(folder.0.join("web/Dockerfile")).unwrap();
    assert!(docker.contains(&format!("\nFROM rust:{version}-slim-trixie AS build\n")), "{version}: {docker}");
    create_project(&folder.0.join("web"), &["tools/outside", "--vcs", "none"]);
    assert!(folder.0.join("web/tools/outside/rust-toolchain.toml").exists(), "the folder above is not in CI");
    fs::create_dir(folder.0.join("web/.git")).unwrap();
    create_project(&folder.0.join("web"), &["tools/inner", "--vcs", "none"]);
    assert!(!folder.0.join("web/tools/inner/rust-toolchain.toml").exists(), "the repository pins it");
    for (project, is_named) in [("web", true), ("web/tools/inner", false)] {
        let readme = fs::read_to_string(folder.0.join(project).join("README.md")).unwrap();
        assert_eq!(readme.contains("rust-toolchain.toml"), is_named, "{project}: {readme}");
    }
}

/// Returns rustfmt for the program of a project and its modules, as `cargo fmt` runs it: with the edition of the manifest.
fn rustfmt(project: &Path, edition: &str) -> Command {
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition", edition, "src/main.rs"]).current_dir(project);
    rustfmt
}

fn assert_formatted(project: &Path, edition: &str) {
    let output = rustfmt(project, edition).arg("--check").output().expect("rustfmt is a component of the toolchain");
    assert!(output.status.success(), "{}: {}", project.display(), String::from_utf8_lossy(&output.stdout));
}

#[test]
fn generated_code_has_the_default_format() {
    let folder = Folder::new("format");
    for name in ["web", "a-project-with-a-name-that-makes-lines-long"] {
        create_project(&folder.0, &[name, "--vcs", "none"]);
        assert_formatted(&folder.0.join(name), "2024");
    }
}

#[test]
fn generated_code_has_the_settings_above_it() {
    let folder = Folder::new("settings");
    fs::write(folder.0.join("rustfmt.toml"), "max_width = 120\n").unwrap();
    create_project(&folder.0, &["web", "--vcs", "none"]);
    assert_formatted(&folder.0.join("web"), "2024");
}

/// With the second module, `main.rs` has to be found formatted: only then rustfmt sorts the lines `mod …;`.
#[test]
fn added_code_has_the_format_of_its_project() {
    let folder = Folder::new("project-format");
    create_project(&folder.0, &["web", "--vcs", "none"]);
    let (project, edition) = (folder.0.join("web"), "2021");
    fs::write(project.join(".rustfmt.toml"), "max_width = 120\n").unwrap();
    let manifest = fs::read_to_string(project.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("edition = \"2024\""), "{manifest}");
    fs::write(project.join("Cargo.toml"), manifest.replace("edition = \"2024\"", "edition = \"2021\"")).unwrap();
    assert!(rustfmt(&project, edition).status().unwrap().success());
    for name in ["tea-room", "bar"] {
        let mut kctl = Command::new(env!("CARGO_BIN_EXE_kctl"));
        let output = kctl.args(["add", "controller", name]).current_dir(&project).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert_formatted(&project, edition);
    }
    let main = fs::read_to_string(project.join("src/main.rs")).unwrap();
    assert!(main.contains("mod bar;\nmod tea_room;\n"), "{main}");
}

#[test]
fn missing_rustfmt_is_noted() {
    let folder = Folder::new("unformatted");
    let note = "run `cargo fmt` before you commit";
    let mut kctl = Command::new(env!("CARGO_BIN_EXE_kctl"));
    kctl.args(["new", "web", "--vcs", "none"]).current_dir(&folder.0);
    // A folder without programs.
    let output = kctl.env("PATH", &folder.0).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.contains(note), "{printed}");
    let printed = create_project(&folder.0, &["other", "--vcs", "none"]);
    assert!(!printed.contains(note), "{printed}");
}
