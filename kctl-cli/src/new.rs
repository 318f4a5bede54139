//! `kctl new`: a project with one kind, its controller, a test and a sample, which runs as it is.

mod dependency;
mod deploy;
mod error;
mod names;
mod repository;
mod rustfmt;
mod workspace;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use kctl_apimachinery::validation::is_protected_group;

use self::{
    dependency::dependency,
    error::NewFailure,
    names::BUILT,
    repository::{REPOSITORIES, has_repository, init_git, is_in_repository, real_path},
    workspace::set_workspace,
};
pub(crate) use self::{
    error::{invalid_group, invalid_version, protected_group},
    names::{
        NAME_LEN_MAX, TAKEN, default_kind, fill_template, is_group, is_kind, is_name, is_taken, is_version, plural,
        snake_case,
    },
    rustfmt::{format_file, format_source},
};
use crate::Failure;

/// Files of a new project, with `{{…}}` in place of the user's names.
const FILES: [(&str, &str); 12] = [
    ("Cargo.toml", include_str!("../templates/Cargo.toml.tpl")),
    ("src/main.rs", include_str!("../templates/main.rs.tpl")),
    ("sample.yaml", include_str!("../templates/sample.yaml.tpl")),
    ("clippy.toml", include_str!("../templates/clippy.toml.tpl")),
    (TOOLCHAIN, include_str!("../templates/rust-toolchain.toml.tpl")),
    ("README.md", include_str!("../templates/README.md.tpl")),
    ("Dockerfile", include_str!("../templates/dockerfile.tpl")),
    (".dockerignore", include_str!("../templates/dockerignore.tpl")),
    (WORKFLOW, include_str!("../templates/ci.yml.tpl")),
    (DEPENDABOT, include_str!("../templates/dependabot.yml.tpl")),
    // The commands that write files write LF, which Git on Windows would change otherwise.
    (".gitattributes", "* text=auto eol=lf\n"),
    (".gitignore", include_str!("../templates/gitignore.tpl")),
];

/// The workflow of GitHub Actions, which GitHub reads at the root of a repository alone.
const WORKFLOW: &str = ".github/workflows/ci.yml";

/// The settings of Dependabot, which GitHub reads at the root of a repository alone.
const DEPENDABOT: &str = ".github/dependabot.yml";

/// The version of Rust. CI fails on a warning of clippy, and each release of Rust adds lints.
const TOOLCHAIN: &str = "rust-toolchain.toml";

/// The version of a new kind: an API whose fields may still change begins as alpha.
pub(crate) const FIRST_VERSION: &str = "v1alpha1";

/// Options of `kctl new`.
#[derive(Args)]
pub(crate) struct Options {
    /// The folder of the new project, such as `web-site` or `path/to/web-site`
    path: PathBuf,
    /// The name of the project: lower case letters, digits and dashes; by default the last component of the path
    #[arg(long)]
    name: Option<String>,
    /// The API group of the kind
    #[arg(long, default_value = "example.com")]
    group: String,
    /// The kind; by default derived from the name: `WebSite`
    #[arg(long)]
    kind: Option<String>,
    /// The version of the kind, such as `v1`
    #[arg(long, value_name = "VERSION", default_value = FIRST_VERSION)]
    api_version: String,
    /// Depend on kctl in this folder instead of the published one
    #[arg(long, value_name = "DIR")]
    kctl: Option<PathBuf>,
    /// Create a repository of this kind; by default git, unless the project is within a repository
    #[arg(long, value_enum)]
    vcs: Option<Vcs>,
}

/// Version control of a new project, with the choices of `cargo new`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Vcs {
    Git,
    None,
}

/// Runs `kctl new`: checks all arguments, then writes the files, formats the program and makes a git repository.
///
/// # Errors
/// An argument is invalid, the folder exists, or a file cannot be written.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let folder = options.path.as_path();
    let mut texts = project(options)?;
    check_free(folder)?;
    let (is_tracked, is_repository) = (is_in_repository(folder), has_repository(folder));
    let vcs = options.vcs.unwrap_or(if is_tracked { Vcs::None } else { Vcs::Git });
    let runs_workflow = vcs == Vcs::Git || is_repository || !is_tracked;
    let pins_rust = !has_toolchain_above(folder);
    texts.retain(|(file, _)| (!file.starts_with(".github/") || runs_workflow) && (file != TOOLCHAIN || pins_rust));
    let is_absent = |file: &&str| !texts.iter().any(|(kept, _)| kept == *file);
    let absent: Vec<&str> = [WORKFLOW, DEPENDABOT, TOOLCHAIN].into_iter().filter(is_absent).collect();
    for (_, page) in texts.iter_mut().filter(|(file, _)| file == "README.md") {
        *page = without_paragraphs_about(&absent, page);
    }
    create(folder, &texts)?;
    format_file(&folder.join("src/main.rs"));
    if vcs == Vcs::Git && !is_repository {
        init_git(folder);
    }
    if let Some(kctl) = dependency(options.kctl.as_deref())?.strip_prefix("path = ") {
        say!(
            "note: Cargo.toml depends on kctl by path ({kctl}); CI and an image build need a version or a git source instead, and a Cargo.lock written after that change"
        );
    }
    let folder = folder.display();
    say!("created {folder}. Try it: cd {folder} && cargo run -- dev -f sample.yaml --until-idle");
    say!("commit Cargo.lock, which this command writes: CI and the image use it (`--locked`)");
    let checked = if runs_workflow { "; the workflow in .github checks that it matches the code" } else { "" };
    say!("deploy/ has the manifests, and README.md the command that generates them again{checked}");
    Ok(())
}

/// Returns a page without the paragraphs that name a file that the project does not have.
fn without_paragraphs_about(absent: &[&str], page: &str) -> String {
    let is_kept = |paragraph: &&str| !absent.iter().any(|file| paragraph.contains(&format!("`{file}`")));
    page.split("\n\n").filter(is_kept).collect::<Vec<_>>().join("\n\n")
}

/// Checks that a project can be written into a folder: it does not exist, or has nothing but a repository. Other files are
/// never mixed with a project.
///
/// # Errors
/// The path is a file, a folder with other files, or one that can't be read.
fn check_free(path: &Path) -> Result<(), NewFailure> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(source) if path.is_dir() => return Err(NewFailure::Unreadable { path: path.into(), source }),
        Err(_) if path.exists() => return Err(NewFailure::IsFile(path.into())),
        Err(_) => return Ok(()),
    };
    if entries.flatten().any(|entry| !REPOSITORIES.iter().any(|name| entry.file_name() == *name)) {
        return Err(NewFailure::HasFiles(path.into()));
    }
    Ok(())
}

/// Returns `true` if a folder above, in the same repository, pins the version of Rust. A file in the project would override
/// it. Files outside of the repository are not there in CI.
fn has_toolchain_above(folder: &Path) -> bool {
    let folder = real_path(folder);
    let above: Vec<&Path> = folder.ancestors().skip(1).collect();
    let root = above.iter().position(|folder| has_repository(folder));
    let in_repository = above.iter().take(root.map_or(0, |root| root + 1));
    in_repository.flat_map(|folder| [folder.join(TOOLCHAIN), folder.join("rust-toolchain")]).any(|file| file.is_file())
}

/// Returns the name of the project: the option, or the last component of the path. For an existing folder, such as `.`,
/// it is the name of that folder.
fn name_of(options: &Options) -> Result<String, NewFailure> {
    if let Some(name) = &options.name {
        let is_path = name.contains(['/', '\\']) || [".", ".."].contains(&name.as_str());
        return if is_path { Err(NewFailure::NameIsPath(name.clone())) } else { Ok(name.clone()) };
    }
    let last = options.path.file_name().map(ToOwned::to_owned);
    let last = last.or_else(|| Some(options.path.canonicalize().ok()?.file_name()?.to_owned()));
    let last = last.ok_or_else(|| NewFailure::NoFolder(options.path.clone()))?;
    Ok(last.to_string_lossy().into_owned())
}

/// Writes the files of a project, and makes it the root or a member of a workspace. If that fails, removes what it has
/// written, so that the same command works once the reason is gone.
///
/// # Errors
/// A file cannot be written.
fn create(folder: &Path, files: &[(String, String)]) -> Result<(), NewFailure> {
    let is_absent = |above: &&Path| !above.as_os_str().is_empty() && !above.exists();
    let absent: Vec<&Path> = folder.ancestors().take_while(is_absent).collect();
    let written = files.iter().try_for_each(|(file, text)| write(&folder.join(file), text));
    let created = written.and_then(|()| set_workspace(folder));
    if created.is_err() {
        for (file, _) in files {
            let path = folder.join(file);
            let _removed = std::fs::remove_file(&path);
            remove_empty(path.ancestors().skip(1).take_while(|above| *above != folder));
        }
        remove_empty(absent);
    }
    created
}

/// Removes folders, the inner ones first. One that is not empty remains.
pub(crate) fn remove_empty<'a>(folders: impl IntoIterator<Item = &'a Path>) {
    for folder in folders {
        let _removed = std::fs::remove_dir(folder);
    }
}

/// Writes a file of the new project and creates its folders.
fn write(path: &Path, text: &str) -> Result<(), NewFailure> {
    let failed = |source| NewFailure::Write { path: path.into(), source };
    path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
    std::fs::write(path, text).map_err(failed)
}

/// Returns the paths of the project's files and their contents.
///
/// Arguments are checked here, before anything is written.
///
/// # Errors
/// A name, group or kind is not valid, or taken by Rust, Cargo or Kubernetes; or kctl is not in the folder of `--kctl`.
fn project(options: &Options) -> Result<Vec<(String, String)>, NewFailure> {
    let (name, group, version) = (name_of(options)?, &options.group, &options.api_version);
    if !is_name(&name) {
        return Err(NewFailure::Name(name.clone()));
    }
    if BUILT.contains(&name.as_str()) {
        return Err(NewFailure::CargosName(name.clone()));
    }
    if TAKEN.contains(&name.as_str()) {
        return Err(NewFailure::TakenName(name.clone()));
    }
    let kind = options.kind.clone().unwrap_or_else(|| default_kind(&name));
    if !is_kind(&kind) {
        return Err(if options.kind.is_some() {
            NewFailure::Kind(kind)
        } else {
            NewFailure::DerivedKind { name, kind }
        });
    }
    if is_taken(main_template(), &kind) {
        return Err(NewFailure::TakenKind(kind));
    }
    if !is_group(group) {
        return Err(NewFailure::Group(group.clone()));
    }
    if is_protected_group(group) {
        return Err(NewFailure::ProtectedGroup(group.clone()));
    }
    if !is_version(version) {
        return Err(NewFailure::Version(version.clone()));
    }
    let function = format!("reconcile_{}", snake_case(&kind));
    let kctl = dependency(options.kctl.as_deref())?;
    let names = [
        ("name", &*name),
        ("group", &**group),
        ("version", &**version),
        ("kind", &*kind),
        ("function", &*function),
        ("kctl", &*kctl),
    ];
    let mut files: Vec<_> =
        FILES.iter().map(|(file, text)| ((*file).to_owned(), fill_template(text, &names))).collect();
    files.extend(deploy::manifests(&deploy::Names { name: &name, group, version, kind: &kind })?);
    Ok(files)
}

/// Returns the template of `src/main.rs`.
fn main_template() -> &'static str {
    FILES.iter().find(|(file, _)| *file == "src/main.rs").map_or("", |(_, text)| text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    const APP: &str = "App::new(\"web-site2\")\n        .version(env!(\"CARGO_PKG_VERSION\"))";
    const COMMIT: &str = ".commit(option_env!(\"COMMIT\"))";

    fn options(name: &str) -> Options {
        let (path, group, api_version) = (name.into(), "example.com".into(), FIRST_VERSION.into());
        Options { path, name: Some(name.into()), group, kind: None, api_version, kctl: None, vcs: None }
    }

    fn rejected(options: &Options) -> String {
        project(options).unwrap_err().to_string()
    }

    #[test]
    fn failed_write_leaves_nothing_behind() {
        let files = ["Cargo.toml", ".github/workflows/ci.yml", "src/main.rs", "src/main.rs/below-a-file"];
        let files = files.map(|file| (file.to_owned(), String::new()));
        let outer = std::env::temp_dir().join(format!("kctl-new-failed-{}", std::process::id()));
        for existing in ["", "empty", "clone/.git"] {
            std::fs::create_dir_all(outer.join(existing)).unwrap();
        }
        for (folder, remains) in [("some/place/web", None), ("empty", Some(0)), ("clone", Some(1))] {
            let failed = create(&outer.join(folder), &files).unwrap_err().to_string();
            assert!(failed.ends_with("below-a-file cannot be written"), "{failed}");
            let left = std::fs::read_dir(outer.join(folder)).ok().map(Iterator::count);
            assert_eq!(left, remains, "{folder}");
            assert!(!outer.join("some").exists());
        }
        std::fs::remove_dir_all(&outer).unwrap();
    }

    #[test]
    fn kind_and_function_are_made_from_the_name() {
        let files = project(&options("web-site2")).unwrap();
        let main = &files.iter().find(|(file, _)| *file == "src/main.rs").unwrap().1;
        for expected in ["kind = \"WebSite2\"", "async fn reconcile_web_site2(", APP, COMMIT] {
            assert!(main.contains(expected), "{expected}");
        }
        // `${{ … }}` is an expression of the workflow.
        assert!(files.iter().all(|(_, text)| !text.replace("${{", "").contains("{{")), "every place is filled");
    }

    #[test]
    fn ci_checks_the_manifests_that_the_readme_generates() {
        let files = project(&options("web")).unwrap();
        let text = |file: &str| &files.iter().find(|(name, _)| *name == file).unwrap().1;
        let command = |file: &str| {
            let line = text(file).lines().find(|line| line.contains("generate-manifests")).unwrap();
            line[line.find("cargo run").unwrap()..].replace(" --locked", "")
        };
        let readme = command("README.md");
        assert_eq!(command(WORKFLOW), format!("{readme} --check"));
    }

    /// `dev`, a default feature, would compile the embedded API server and the simulator.
    #[test]
    fn readme_runs_on_clusters_without_default_features() {
        let files = project(&options("web")).unwrap();
        let text = |file: &str| &files.iter().find(|(name, _)| *name == file).unwrap().1;
        assert!(text("Cargo.toml").contains("\ndefault = [\"dev\"]\n"));
        let runs: Vec<&str> = text("README.md").lines().filter(|line| line.ends_with(" -- run")).collect();
        assert_eq!(runs, ["    cargo run --no-default-features -- run"]);
    }

    #[test]
    fn readme_names_every_addition() {
        let readme = FILES.iter().find(|(file, _)| *file == "README.md").unwrap().1;
        let kctl = crate::Cli::command();
        let additions = kctl.find_subcommand("add").unwrap().get_subcommands();
        let names: Vec<&str> = additions.map(clap::Command::get_name).collect();
        assert!(names.len() > 2, "{names:?}");
        for name in names {
            assert!(readme.contains(&format!("`kctl add {name} ")), "{name}");
        }
    }

    #[test]
    fn image_is_built_with_the_reported_commit() {
        let files = project(&options("web")).unwrap();
        let text = |file: &str| &files.iter().find(|(name, _)| *name == file).unwrap().1;
        let docker = text("Dockerfile");
        let (argument, build) = (docker.find("\nARG COMMIT\n"), docker.find("\nRUN cargo build"));
        assert!(
            argument.is_some() && argument < build,
            "an argument that comes later is not in the environment of the build"
        );
        let how = "docker build --build-arg COMMIT=\"$(git rev-parse --short HEAD)\" -t registry.example.com/web:1 .\n";
        for file in ["README.md", "Dockerfile"] {
            assert!(text(file).contains(how), "{file}");
        }
    }

    #[test]
    fn names_invalid_for_kubernetes_or_cargo_are_rejected() {
        for name in ["", "-a", "a-", "a--b", "Web", "1a", "a_b", &"a".repeat(56)] {
            assert!(rejected(&options(name)).contains("is not a valid project name"), "{name}");
        }
        for name in ["a/b", "./web", ".", ".."] {
            let expected = format!("`{name}` is a path, and `--name` is the name alone\nhelp: ");
            assert!(rejected(&options(name)).starts_with(&expected), "{name}");
        }
        let derived = rejected(&options("n"));
        assert!(
            derived.starts_with("the name `n` gives the kind `N`") && derived.contains("`--kind NSite`"),
            "{derived}"
        );
        assert!(project(&options(&"a".repeat(55))).is_ok());
        for name in ["kctl", "tokio", "match", "test", "while", "true", "self"] {
            assert!(rejected(&options(name)).contains("is a Rust keyword or the name of a crate"), "{name}");
        }
        for name in ["build", "deps"] {
            assert!(rejected(&options(name)).contains("a directory that Cargo creates"), "{name}");
        }
        for name in ["app", "action", "config-map", "option", "patch", "some"] {
            let error = rejected(&options(name));
            assert!(error.contains("choose another kind, such as `--kind "), "{error}");
            assert!(project(&Options { kind: Some("Web".into()), ..options(name) }).is_ok(), "{name}");
        }
        let kind = |kind: &str| rejected(&Options { kind: Some(kind.into()), ..options("a") });
        assert!(kind("web").contains("is not a valid kind") && kind("Web-Site").contains("is not a valid kind"));
        for text in ["True", "Null", "No", &format!("A{}", "a".repeat(59))] {
            assert!(kind(text).contains("is not a valid kind"), "{text}");
        }
        assert!(project(&Options { kind: Some(format!("A{}", "a".repeat(58))), ..options("a") }).is_ok());
        let group = |group: &str| rejected(&Options { group: group.into(), ..options("a") });
        assert!(
            group("example").contains("is not a valid API group") && group("a..b").contains("is not a valid API group")
        );
        assert!(group(&format!("{}.com", "a".repeat(64))).contains("is not a valid API group"));
        let upper = "`Example.com` is not a valid API group, because it has upper case letters: use `example.com`";
        assert_eq!(group("Example.com"), upper);
        assert!(group("Example").contains("use a domain name"), "lower case alone would not help");
    }

    #[test]
    fn chosen_version_is_in_code_sample_and_crd() {
        let with = |version: &str| Options { api_version: version.into(), ..options("web") };
        let files = project(&with("v1")).unwrap();
        let text = |file: &str| &files.iter().find(|(name, _)| *name == file).unwrap().1;
        assert!(text("src/main.rs").contains("version = \"v1\", kind = \"Web\""));
        assert!(text("sample.yaml").starts_with("apiVersion: example.com/v1\n"));
        assert!(text("deploy/crds/webs.example.com.yaml").contains("name: v1\n"));
        assert!(files.iter().all(|(_, text)| !text.contains(FIRST_VERSION)));
        let error = rejected(&with("1.0"));
        assert!(error.starts_with("`1.0` is not a version of Kubernetes' form"), "{error}");
    }

    #[test]
    fn groups_of_kubernetes_are_rejected() {
        for group in ["web.k8s.io", "web.kubernetes.io", "k8s.io", "kubernetes.io"] {
            let error = rejected(&Options { group: group.into(), ..options("a") });
            let expected = format!("the API group `{group}` belongs to Kubernetes");
            assert!(error.starts_with(&expected) && error.contains("\nhelp: use a domain of your own"), "{error}");
        }
        assert!(project(&Options { group: "webk8s.io".into(), ..options("a") }).is_ok());
    }

    #[test]
    fn folder_without_kctl_is_rejected() {
        let options = Options { kctl: Some("/nowhere".into()), ..options("a") };
        assert_eq!(
            rejected(&options),
            "/nowhere does not contain the kctl crate: pass the directory with its Cargo.toml"
        );
    }
}
