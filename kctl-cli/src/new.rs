//! `kctl new`: a project with one kind, its controller, a test and a sample, which runs as it is.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use clap::{Args, ValueEnum};
use kctl_apimachinery::validation::{LABEL_LEN_MAX, is_dns1123_label, is_dns1123_subdomain};

use crate::Failure;

/// Files of a new project, with `{{…}}` in place of the user's names.
const FILES: [(&str, &str); 10] = [
    ("Cargo.toml", include_str!("../templates/Cargo.toml.tpl")),
    ("src/main.rs", include_str!("../templates/main.rs.tpl")),
    ("sample.yaml", include_str!("../templates/sample.yaml.tpl")),
    ("clippy.toml", include_str!("../templates/clippy.toml.tpl")),
    ("README.md", include_str!("../templates/README.md.tpl")),
    ("Dockerfile", include_str!("../templates/dockerfile.tpl")),
    (".dockerignore", include_str!("../templates/dockerignore.tpl")),
    (WORKFLOW, include_str!("../templates/ci.yml.tpl")),
    // `--check` compares bytes, which Git on Windows would change otherwise.
    (".gitattributes", "* text=auto eol=lf\n"),
    (".gitignore", include_str!("../templates/gitignore.tpl")),
];

/// The workflow of GitHub Actions, which GitHub reads at the root of a repository alone.
const WORKFLOW: &str = ".github/workflows/ci.yml";

/// The table that makes a package the root of a workspace.
///
/// Cargo otherwise rejects a package below a workspace that does not list it.
const OWN_WORKSPACE: &str = "\n# Not a member of a workspace above it.\n[workspace]\n";

/// Maximum length of a name: that of the Service `NAME-metrics` is a DNS label.
pub(crate) const NAME_LEN_MAX: usize = LABEL_LEN_MAX - "-metrics".len();

/// Maximum length of a kind: that of its list, `KINDList`, is a DNS label, too.
const KIND_LEN_MAX: usize = LABEL_LEN_MAX - "List".len();

/// Names of programs that Cargo rejects, since its target directory has folders of these names.
const BUILT: [&str; 4] = ["build", "deps", "examples", "incremental"];

/// Kinds that the YAML of Kubernetes reads as a boolean or as null, in lower case.
const READ_BY_YAML: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];

/// Names that `cargo new` rejects (keywords and crates of Rust), and the name of the dependency.
pub(crate) const TAKEN: [&str; 57] = [
    "kctl",
    "alloc",
    "core",
    "proc-macro",
    "std",
    "test",
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

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
    /// Depend on kctl in this folder instead of the published one
    #[arg(long, value_name = "DIR")]
    kctl: Option<PathBuf>,
    /// Create a repository of this kind; by default git, unless the project is within a repository
    #[arg(long, value_enum)]
    vcs: Option<Vcs>,
}

/// Version control of a new project, as of `cargo new`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Vcs {
    Git,
    None,
}

/// A project could not be made.
#[derive(Debug, thiserror::Error)]
enum NewFailure {
    /// The path ends in `..` or is a root, so that it has no last component to name the project by.
    #[error("`{0}` names no folder: give the folder to create, such as `web-site`")]
    NoFolder(PathBuf),
    /// The name breaks the rules of [`is_name`], which are those of labels and of Cargo together.
    #[error(
        "`{0}` is not a valid project name: use at most {NAME_LEN_MAX} lower case letters, digits and dashes, a letter first, such as `web-site`, or give the name by `--name`"
    )]
    Name(String),
    /// The name is one of [`BUILT`].
    #[error("`{0}` is a folder of Cargo's own among what it builds: choose another name, such as `{0}-site`")]
    CargosName(String),
    /// The name is one of [`TAKEN`].
    #[error("`{0}` is a name that Rust or kctl has already: choose another name, such as `{0}-site`")]
    TakenName(String),
    /// The kind would shadow a type that the generated program uses ([`is_taken`]).
    #[error("`{0}` is a name that the program uses itself: choose another kind, such as `--kind {0}Site`")]
    TakenKind(String),
    /// The kind breaks the rules of [`is_kind`].
    #[error(
        "`{0}` is not a valid kind: use at most {KIND_LEN_MAX} letters and digits, an upper case letter first, such as `WebSite`, and no boolean or null of YAML"
    )]
    Kind(String),
    /// The API group breaks the rules of [`is_group`].
    #[error("`{0}` is not a valid API group: use a domain name, such as `apps.example.com`")]
    Group(String),
    /// The folder exists and has other files than a repository.
    #[error("{0} is there already: choose another name, or remove it")]
    Exists(PathBuf),
    /// The folder of `--kctl` has neither the crate nor a repository with it.
    #[error("{0} holds no kctl: give the folder with its Cargo.toml")]
    NoKctl(PathBuf),
    /// A file or its folder cannot be written.
    #[error("{path} cannot be written")]
    Write { path: PathBuf, source: std::io::Error },
}

/// Runs `kctl new`: checks all arguments, then writes the files, formats the program and makes a git repository.
///
/// # Errors
/// An argument is invalid, the folder exists, or a file cannot be written.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let folder = options.path.as_path();
    let mut texts = project(options)?;
    if has_files(folder) {
        return Err(NewFailure::Exists(folder.into()).into());
    }
    let (is_tracked, is_repository) = (is_in_repository(folder), has_repository(folder));
    let vcs = options.vcs.unwrap_or(if is_tracked { Vcs::None } else { Vcs::Git });
    let runs_workflow = vcs == Vcs::Git || is_repository || !is_tracked;
    texts.retain(|(file, _)| *file != WORKFLOW || runs_workflow);
    for (file, text) in texts {
        write(&folder.join(file), &text)?;
    }
    set_workspace(folder)?;
    format_file(&folder.join("src/main.rs"));
    if vcs == Vcs::Git && !is_repository {
        init_git(folder);
    }
    if let Some(kctl) = dependency(options.kctl.as_deref())?.strip_prefix("path = ") {
        say!(
            "note: Cargo.toml depends on kctl by path ({kctl}); an image build needs a version or a git source instead"
        );
    }
    let folder = folder.display();
    say!("created {folder}. Try it: cd {folder} && cargo run -- dev -f sample.yaml --until-idle");
    let checked = if runs_workflow { "; the workflow in .github checks that it matches the code" } else { "" };
    say!("README.md has the command that generates deploy/{checked}");
    Ok(())
}

/// Returns `true` if the path is a file, or a folder with other things than a repository: those are never mixed with a
/// project.
fn has_files(path: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(path) else { return path.exists() };
    entries.flatten().any(|entry| !REPOSITORIES.iter().any(|name| entry.file_name() == *name))
}

/// Makes the package the root of a workspace, unless it is a member of one above it.
fn set_workspace(folder: &Path) -> Result<(), NewFailure> {
    if let Some(root) = workspace_of(folder) {
        say!(
            "note: the project is a member of the workspace {}, whose Cargo.lock its Dockerfile does not see",
            root.display()
        );
        return Ok(());
    }
    let manifest = folder.join("Cargo.toml");
    let failed = |source| NewFailure::Write { path: manifest.clone(), source };
    let text = std::fs::read_to_string(&manifest).map_err(failed)?;
    write(&manifest, &(text + OWN_WORKSPACE))
}

/// Returns the folder of the workspace that has a package among its members; `None` without Cargo.
///
/// Cargo evaluates `members` and `exclude`, and fails for a package that is in neither of them.
fn workspace_of(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().skip(1).find(|above| above.join("Cargo.toml").exists())?;
    let mut cargo = Command::new("cargo");
    cargo.args(["locate-project", "--workspace", "--message-format", "plain"]).current_dir(&folder);
    let output = cargo.stderr(Stdio::null()).output().ok().filter(|output| output.status.success())?;
    let root = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()).parent()?.canonicalize().ok()?;
    (root != folder).then_some(root)
}

/// Formats a file, since line lengths depend on the names. Does nothing without rustfmt.
pub(crate) fn format_file(file: &Path) {
    if let Some(formatted) = std::fs::read_to_string(file).ok().and_then(|source| formatted(&source)) {
        let _unchanged = std::fs::write(file, formatted);
    }
}

/// Returns source as rustfmt formats it; `None` without rustfmt, or if it cannot be parsed.
///
/// rustfmt gets it on standard input, because it would format the modules of a named file as well.
pub(crate) fn formatted(source: &str) -> Option<String> {
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition", "2024"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = rustfmt.spawn().ok()?;
    // rustfmt reads all of its input before it writes, so neither side waits for the other.
    child.stdin.take()?.write_all(source.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    String::from_utf8(output.stdout).ok().filter(|_| output.status.success())
}

/// Returns `true` for lower case letters, digits and dashes, a letter first.
pub(crate) fn is_name(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(is_name_byte);
    name.split('-').all(is_part)
        && name.len() <= NAME_LEN_MAX
        && name.starts_with(|first: char| first.is_ascii_lowercase())
}

/// Upper case is excluded: the name is also that of an image, which registries reject with upper case letters.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Returns `true` for letters and digits, an upper case letter first.
pub(crate) fn is_kind(kind: &str) -> bool {
    kind.starts_with(|first: char| first.is_ascii_uppercase())
        && kind.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && kind.len() <= KIND_LEN_MAX
        && !READ_BY_YAML.contains(&kind.to_ascii_lowercase().as_str())
}

/// Returns `true` for a domain name.
///
/// A group of one label, such as `apps`, is rejected: Kubernetes leaves those to its built-in kinds.
pub(crate) fn is_group(group: &str) -> bool {
    group.contains('.') && is_dns1123_subdomain(group) && group.split('.').all(is_dns1123_label)
}

/// Folders of the repositories of Git, Mercurial and Jujutsu.
const REPOSITORIES: [&str; 3] = [".git", ".hg", ".jj"];

/// Returns `true` if a folder is the root of a repository.
fn has_repository(folder: &Path) -> bool {
    REPOSITORIES.iter().any(|name| folder.join(name).exists())
}

/// Returns `true` if the folder is to be within a repository of git, Mercurial or Jujutsu.
fn is_in_repository(folder: &Path) -> bool {
    let folder = std::path::absolute(folder).unwrap_or_else(|_error| folder.into());
    folder.ancestors().any(has_repository)
}

/// Makes the folder a git repository. The project works without one, so a failure is only a note.
fn init_git(folder: &Path) {
    // The workflow runs for this branch. Versions of Git without the setting ignore it.
    let init = ["-c", "init.defaultBranch=main", "init", "--quiet"];
    let done = Command::new("git").args(init).current_dir(folder).stderr(Stdio::null()).status();
    if !done.is_ok_and(|status| status.success()) {
        say!("note: git could not create a repository; `--vcs none` leaves it out");
    }
}

/// Returns the name of the project: that of the option, or the last component of the path. For an existing folder, such as
/// `.`, it is the name of that folder.
fn name_of(options: &Options) -> Result<String, NewFailure> {
    if let Some(name) = &options.name {
        return Ok(name.clone());
    }
    let last = options.path.file_name().map(ToOwned::to_owned);
    let last = last.or_else(|| Some(options.path.canonicalize().ok()?.file_name()?.to_owned()));
    let last = last.ok_or_else(|| NewFailure::NoFolder(options.path.clone()))?;
    Ok(last.to_string_lossy().into_owned())
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
fn project(options: &Options) -> Result<Vec<(&'static str, String)>, NewFailure> {
    let (name, group) = (name_of(options)?, &options.group);
    if !is_name(&name) {
        return Err(NewFailure::Name(name.clone()));
    }
    if BUILT.contains(&name.as_str()) {
        return Err(NewFailure::CargosName(name.clone()));
    }
    if TAKEN.contains(&name.as_str()) {
        return Err(NewFailure::TakenName(name.clone()));
    }
    let kind = options.kind.clone().unwrap_or_else(|| name.split('-').map(capitalized).collect());
    if !is_kind(&kind) {
        return Err(NewFailure::Kind(kind));
    }
    if is_taken(main_template(), &kind) {
        return Err(NewFailure::TakenKind(kind));
    }
    if !is_group(group) {
        return Err(NewFailure::Group(group.clone()));
    }
    let function = format!("reconcile_{}", kind.to_ascii_lowercase());
    let kctl = dependency(options.kctl.as_deref())?;
    let names = [("name", &name), ("group", group), ("kind", &kind), ("function", &function), ("kctl", &kctl)];
    let fill = |text: &str| {
        names.iter().fold(text.to_owned(), |text, (place, value)| text.replace(&format!("{{{{{place}}}}}"), value))
    };
    Ok(FILES.iter().map(|(file, text)| (*file, fill(text))).collect())
}

/// Returns the template of `src/main.rs`.
fn main_template() -> &'static str {
    FILES.iter().find(|(file, _)| *file == "src/main.rs").map_or("", |(_, text)| text)
}

/// Returns `true` if a type of this name would shadow one that the program uses, such as `App`.
pub(crate) fn is_taken(program: &str, kind: &str) -> bool {
    let code = program.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut words = code.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()));
    kind == "Self" || words.any(|word| word == kind)
}

/// Makes the first letter upper case. The part is not empty and begins with ASCII, as [`is_name`] requires.
pub(crate) fn capitalized(part: &str) -> String {
    let (first, rest) = part.split_at(1);
    first.to_ascii_uppercase() + rest
}

/// Returns the kctl dependency for `Cargo.toml`: the given folder, or the source that this tool was built from.
fn dependency(folder: Option<&Path>) -> Result<String, NewFailure> {
    let Some(folder) = folder else { return Ok(source_of_build(Path::new(env!("CARGO_MANIFEST_DIR")))) };
    // The folder may be the repository or the crate in it.
    let found = folder.canonicalize().ok().and_then(|folder| {
        let inner = folder.join("kctl");
        [folder, inner].into_iter().find(|folder| is_kctl(folder))
    });
    found.map(|path| path_dependency(&path)).ok_or_else(|| NewFailure::NoKctl(folder.into()))
}

fn path_dependency(path: &Path) -> String {
    format!("path = {}", toml_string(&path.display().to_string()))
}

/// Returns a basic string of TOML, whose escapes are not those of Rust.
fn toml_string(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// Returns the dependency on the kctl of the same source as this tool, whose manifest was in a folder when it was built:
/// the commit of `cargo install --git`, a checkout if it still exists, or the published version with the same number.
fn source_of_build(manifest: &Path) -> String {
    if let Some(commit) = commit_of_cargo(manifest) {
        return format!("git = {:?}, rev = {commit:?}", env!("CARGO_PKG_REPOSITORY"));
    }
    let checkout = manifest.with_file_name("kctl");
    if is_kctl(&checkout) { path_dependency(&checkout) } else { format!("version = {:?}", env!("CARGO_PKG_VERSION")) }
}

/// Returns the commit of a checkout that `cargo install --git` made: `CARGO_HOME/git/checkouts/NAME-HASH/COMMIT`. For any
/// other folder it returns `None`.
///
/// No project may depend on the path of such a checkout: Cargo deletes it after some months, and no other machine has it.
fn commit_of_cargo(manifest: &Path) -> Option<String> {
    let checkout = manifest.parent()?;
    let named = |nth: usize, name: &str| checkout.ancestors().nth(nth)?.file_name().filter(|found| *found == name);
    named(2, "checkouts").and(named(3, "git"))?;
    // The folder has the abbreviated commit.
    let short = checkout.file_name()?.to_str()?;
    let head = std::fs::read_to_string(checkout.join(".git/HEAD")).unwrap_or_default();
    Some(if head.starts_with(short) { head.trim().to_owned() } else { short.to_owned() })
}

/// Returns `true` if the first `name` in the folder's `Cargo.toml` is `kctl`.
fn is_kctl(folder: &Path) -> bool {
    let text = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    // The name of the package comes before those of its binaries.
    text.lines().find(|line| line.starts_with("name =")) == Some(r#"name = "kctl""#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kctl_folder_accepts_only_crate_or_repository() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let path = format!("path = {:?}", crates.join("kctl").display().to_string());
        for folder in [crates.join("kctl"), crates.to_owned()] {
            assert_eq!(dependency(Some(&folder)).unwrap(), path, "{}", folder.display());
        }
        for folder in [crates.join("kctl-cli"), crates.join("nowhere")] {
            assert!(dependency(Some(&folder)).unwrap_err().to_string().contains("holds no kctl"));
        }
    }

    #[test]
    fn project_of_git_install_depends_on_commit() {
        let cargo = std::env::temp_dir().join(format!("kctl-cargo-home-{}", std::process::id()));
        let checkout = cargo.join("git/checkouts/kctl-0123456789abcdef/abc1234");
        let repository = "git = \"https://github.com/kctl-rs/kctl\", rev = ";
        assert_eq!(source_of_build(&checkout.join("kctl-cli")), format!("{repository}\"abc1234\""));
        let head = format!("abc1234{}", "0".repeat(33));
        std::fs::create_dir_all(checkout.join(".git")).unwrap();
        std::fs::write(checkout.join(".git/HEAD"), format!("{head}\n")).unwrap();
        assert_eq!(source_of_build(&checkout.join("kctl-cli")), format!("{repository}{head:?}"));
        std::fs::remove_dir_all(&cargo).unwrap();

        // A checkout of a user, and the sources of a published crate.
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(source_of_build(here), path_dependency(&here.with_file_name("kctl")));
        let registry = Path::new("/nowhere/registry/src/index.crates.io-0123456789abcdef/kctl-cli-0.1.0");
        assert_eq!(source_of_build(registry), format!("version = {:?}", env!("CARGO_PKG_VERSION")));
    }

    const APP: &str = "App::new(\"web-site2\")\n        .version(env!(\"CARGO_PKG_VERSION\"))";
    const COMMIT: &str = ".commit(option_env!(\"COMMIT\"))";

    fn options(name: &str) -> Options {
        let (path, group) = (name.into(), "example.com".into());
        Options { path, name: Some(name.into()), group, kind: None, kctl: None, vcs: None }
    }

    fn refused(options: &Options) -> String {
        project(options).unwrap_err().to_string()
    }

    #[test]
    fn kind_and_function_are_made_from_the_name() {
        let files = project(&options("web-site2")).unwrap();
        let main = &files.iter().find(|(file, _)| *file == "src/main.rs").unwrap().1;
        for expected in ["kind = \"WebSite2\"", "async fn reconcile_website2(", APP, COMMIT] {
            assert!(main.contains(expected), "{expected}");
        }
        // `${{ … }}` is an expression of the workflow.
        assert!(files.iter().all(|(_, text)| !text.replace("${{", "").contains("{{")), "every place is filled");
    }

    #[test]
    fn ci_checks_the_manifests_that_the_readme_generates() {
        let files = project(&options("web")).unwrap();
        let command = |file: &str| {
            let text = &files.iter().find(|(name, _)| *name == file).unwrap().1;
            let line = text.lines().find(|line| line.contains("generate-manifests")).unwrap();
            line[line.find("cargo run").unwrap()..].to_owned()
        };
        assert_eq!(command(".github/workflows/ci.yml"), command("README.md") + " --check");
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
    fn names_invalid_for_kubernetes_or_cargo_are_refused() {
        for name in ["", "-a", "a-", "a--b", "Web", "1a", "a_b", "a/b", "..", &"a".repeat(56)] {
            assert!(refused(&options(name)).contains("is not a valid project name"), "{name}");
        }
        assert!(project(&options(&"a".repeat(55))).is_ok());
        for name in ["kctl", "match", "test", "while", "true", "self"] {
            assert!(refused(&options(name)).contains("that Rust or kctl has already"), "{name}");
        }
        for name in ["build", "deps"] {
            assert!(refused(&options(name)).contains("a folder of Cargo's own"), "{name}");
        }
        for name in ["app", "action", "config-map", "option", "patch", "some"] {
            let error = refused(&options(name));
            assert!(error.contains("choose another kind, such as `--kind "), "{error}");
            assert!(project(&Options { kind: Some("Web".into()), ..options(name) }).is_ok(), "{name}");
        }
        let kind = |kind: &str| refused(&Options { kind: Some(kind.into()), ..options("a") });
        assert!(kind("web").contains("is not a valid kind") && kind("Web-Site").contains("is not a valid kind"));
        for text in ["True", "Null", "No", &format!("A{}", "a".repeat(59))] {
            assert!(kind(text).contains("is not a valid kind"), "{text}");
        }
        assert!(project(&Options { kind: Some(format!("A{}", "a".repeat(58))), ..options("a") }).is_ok());
        let group = |group: &str| refused(&Options { group: group.into(), ..options("a") });
        assert!(
            group("example").contains("is not a valid API group") && group("a..b").contains("is not a valid API group")
        );
        assert!(group(&format!("{}.com", "a".repeat(64))).contains("is not a valid API group"));
    }

    #[test]
    fn path_is_written_as_toml_string() {
        // A decomposed `ü`, as macOS stores it, and the separator of Windows.
        assert_eq!(path_dependency(Path::new("/u\u{308}x/kctl")), "path = \"/u\u{308}x/kctl\"");
        assert_eq!(path_dependency(Path::new("C:\\a\"\u{1}")), r#"path = "C:\\a\"\u0001""#);
    }

    #[test]
    fn folder_without_kctl_is_refused() {
        let options = Options { kctl: Some("/nowhere".into()), ..options("a") };
        assert_eq!(refused(&options), "/nowhere holds no kctl: give the folder with its Cargo.toml");
    }
}
