//! `kctl add`: a controller, webhooks or a version of a kind for a project that is there.
//!
//! New code goes into a new module, and existing files are never overwritten. The only lines that change in files of the
//! user are a `mod` declaration, a call on `App::new(…)`, and a feature in `Cargo.toml`. They are inserted at places that
//! the syntax of the file names ([`source`]), so that everything else stays as it was written. Where no such place is
//! found, the lines to add are printed.

mod source;
mod version;

use std::{
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};

use self::source::{Insertion, Kind};
use crate::{
    Failure,
    new::{NAME_LEN_MAX, TAKEN, capitalized, formatted, is_group, is_kind, is_name, is_taken},
};

/// Names of the root files of crates, which no module can have.
const ROOTS: [&str; 2] = ["lib", "main"];

/// Template of a module with a kind, its reconcile function and tests; [`fill`] puts in the names.
const CONTROLLER: &str = include_str!("../templates/controller.rs.tpl");
/// Template of the object in `samples/`, the same that `kctl new` writes.
const SAMPLE: &str = include_str!("../templates/sample.yaml.tpl");
/// Template of a module that defaults and validates a kind of the project.
const WEBHOOK: &str = include_str!("../templates/webhook.rs.tpl");

#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
    /// The folder of the project, with its Cargo.toml
    #[arg(long, value_name = "DIR", default_value = ".", global = true)]
    project: PathBuf,
}

#[derive(Subcommand)]
enum What {
    /// Add a kind with its controller, tests and a sample: `kctl add controller tea-room`
    Controller {
        /// The name of the controller and of its module: lower case letters, digits and dashes
        name: String,
        /// The API group of the kind; by default that of the project's first kind
        #[arg(long)]
        group: Option<String>,
        /// The kind; by default derived from the name: `TeaRoom`
        #[arg(long)]
        kind: Option<String>,
    },
    /// Add defaulting and validation of a kind of the project: `kctl add webhook TeaRoom`
    Webhook {
        /// The kind, as in `#[resource(kind = "…")]`
        kind: String,
    },
    /// Add a version of a kind, with conversions in both directions: `kctl add version v1 --kind TeaRoom`
    Version {
        /// The version, such as `v1` or `v1beta1`
        version: String,
        /// The kind, as in `#[resource(kind = "…")]`; by default the only one of the project
        #[arg(long)]
        kind: Option<String>,
    },
}

/// Nothing could be added.
#[derive(Debug, thiserror::Error)]
enum AddFailure {
    /// Neither `src/main.rs` nor `src/lib.rs` calls `App::new` outside of its tests.
    #[error(
        "{0} has no src/main.rs or src/lib.rs with `App::new(…)`: name the folder of a kctl project by `--project`"
    )]
    NoApp(PathBuf),
    /// The name of a controller cannot become that of a module.
    #[error(
        "`{0}` is not a valid name: use at most {NAME_LEN_MAX} lower case letters, digits and dashes, a letter first, such as `tea-room`"
    )]
    Name(String),
    /// A module cannot have the name of the controller ([`is_module`]).
    #[error("`{0}` is a name that Rust or kctl has already: choose another name, such as `{0}-controller`")]
    TakenName(String),
    /// A `#[resource]` of the project declares the kind.
    #[error("{kind} is declared already, in {file}: choose another name, or another kind by `--kind`")]
    HasKind { kind: String, file: String },
    /// The kind is malformed, or shadows a type in the generated module.
    #[error(
        "`{0}` is not a valid kind, or the generated code uses a type of this name: choose another one by `--kind`"
    )]
    Kind(String),
    /// The API group is not a domain name with at least one dot.
    #[error("`{0}` is not a valid API group: use a domain name, such as `apps.example.com`")]
    Group(String),
    /// The version does not have the form `v1`, `v1beta1` or `v2alpha1`.
    #[error("`{0}` is not a version of Kubernetes' form: use for example `v1`, `v1beta1` or `v2alpha1`")]
    Version(String),
    /// No file directly in `src/` declares the kind; modules in folders are not searched.
    #[error("no `#[resource(…, kind = \"{kind}\")]` was found in src/; kinds there: {known}")]
    NoKind { kind: String, known: String },
    /// `kctl add version` without `--kind` in a project without kinds.
    #[error("no `#[resource]` was found in src/: `kctl add controller NAME` adds a kind, which can then have versions")]
    NoKinds,
    /// `kctl add version` without `--kind` in a project with several kinds.
    #[error("the project has the kinds {0}: choose one by `--kind`")]
    WhichKind(String),
    /// A `#[resource]` of the kind declares this version.
    #[error("{kind} has the version {version} already, in {file}")]
    HasVersion { kind: String, version: String, file: String },
    /// The version would be a copy of the fields, and a tuple or unit struct has no names to copy.
    #[error("the spec of {kind} in {file} is not a struct with named fields: write the version by hand")]
    NoFields { kind: String, file: String },
    /// The version stands in another module, and private types can be neither imported nor copied.
    #[error("the new version needs `{names}`, which {file} keeps private: write `pub` there")]
    Private { names: String, file: String },
    /// A new file would replace one of the user. Checked for all files before anything is written.
    #[error("{0} is there already, and is never written over: choose another name, or remove it")]
    Exists(PathBuf),
    /// A second module of the name would not compile.
    #[error(
        "{file} has the name `{module}` already, and the new module needs it: choose another name, with the kind by `--kind`, or rename \
         it there"
    )]
    HasModule { module: String, file: String },
    /// A file of the project cannot be read or written.
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    /// A file in `src/` is not valid Rust, so the kinds in it are unknown.
    #[error("{path}: cannot be parsed: {message}")]
    Syntax { path: PathBuf, message: String },
    /// Some lines had no unambiguous place. The new files exist, and the message has the lines.
    #[error("the new files are written, but these lines have to be added by hand:\n{0}")]
    ByHand(String),
}

/// Runs `kctl add`: reads the project, generates the code in memory, then writes it.
///
/// # Errors
/// The folder is not a kctl project, an argument is invalid, a file exists already, or lines must be added by hand.
/// Files were changed only in the last case, or when a write failed.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let project = Project::open(&options.project)?;
    let added = match &options.what {
        What::Controller { name, group, kind } => project.controller(name, group.as_deref(), kind.as_deref())?,
        What::Webhook { kind } => project.webhook(kind)?,
        What::Version { version, kind } => project.version(version, kind.as_deref())?,
    };
    project.apply(&added)?;
    Ok(())
}

/// The new files, and the changes to existing files.
struct Added {
    /// Paths relative to the project, with the content of each file.
    files: Vec<(PathBuf, String)>,
    /// The module to declare next to `App::new(…)`.
    module: String,
    /// The call on the app, such as `.controller::<tea_room::reconcile_tearoom>()`.
    call: String,
    /// Features of kctl that the code needs.
    features: &'static [&'static str],
    /// The command that a user runs next.
    next: String,
}

/// The project that is changed.
struct Project {
    folder: PathBuf,
    /// The file with `App::new(…)`.
    root: PathBuf,
    /// Kinds that `#[resource]` declares, in the order of files.
    kinds: Vec<Kind>,
}

/// An object that generated tests create.
struct Sample {
    /// The path of the file, relative to `src`.
    file: String,
    /// The name of the object.
    object: String,
}

/// Returns the name of the first object of a kind and version in YAML documents.
///
/// Objects in other namespaces than `default` are skipped, because the tests read objects there.
fn object_of(text: &str, kind: &Kind) -> Option<String> {
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(text).ok()?;
    let api_version = format!("{}/{}", kind.group, kind.version);
    let fits = |object: &&serde_json::Value| {
        let namespace = object["metadata"]["namespace"].as_str();
        object["apiVersion"] == api_version && object["kind"] == kind.name && namespace.is_none_or(|it| it == "default")
    };
    documents.iter().find(fits)?["metadata"]["name"].as_str().map(ToOwned::to_owned)
}

/// The byte order mark with which some editors begin a file. Offsets of its syntax don't count it.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads a file, with its path in the error.
fn read(path: &Path) -> Result<String, AddFailure> {
    std::fs::read_to_string(path).map_err(|source| AddFailure::File { path: path.into(), source })
}

/// Writes a file and creates its folders. Replaces what is there: callers check first.
fn write(path: &Path, text: &str) -> Result<(), AddFailure> {
    let failed = |source| AddFailure::File { path: path.into(), source };
    path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
    std::fs::write(path, text).map_err(failed)
}

/// Writes a file that does not exist, and creates its folders.
fn write_new(path: &Path, text: &str) -> Result<(), AddFailure> {
    let failed = |source| AddFailure::File { path: path.into(), source };
    path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
    std::fs::File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)
}

/// Returns the Rust files of a folder by name.
fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, AddFailure> {
    let failed = |source| AddFailure::File { path: folder.into(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        files.push(entry.map_err(failed)?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    Ok(files)
}

impl Project {
    /// Finds the file with the app (`main.rs` before `lib.rs`) and the kinds that the files in `src/` declare.
    ///
    /// Kinds in the file with the app have the path `crate`, those of another file `crate::` and its name.
    fn open(folder: &Path) -> Result<Self, AddFailure> {
        let source = folder.join("src");
        let mut root = None;
        for file in ["main.rs", "lib.rs"].map(|file| source.join(file)) {
            if root.is_none() && file.is_file() && source::has_app(&read(&file)?) {
                root = Some(file);
            }
        }
        let root = root.ok_or_else(|| AddFailure::NoApp(folder.into()))?;
        let mut kinds = Vec::new();
        for file in rust_files(&source)? {
            let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let path = if file == root { "crate".to_owned() } else { format!("crate::{stem}") };
            let syntax = |message| AddFailure::Syntax { path: file.clone(), message };
            kinds.extend(source::kinds(read(&file)?.trim_start_matches(BYTE_ORDER_MARK), &path).map_err(syntax)?);
        }
        Ok(Self { folder: folder.into(), root, kinds })
    }

    /// Returns the version of a kind that is stored, because a kind alone without it can't be served.
    ///
    /// If every version has `storage = false`, returns the first one.
    fn kind(&self, kind: &str) -> Result<&Kind, AddFailure> {
        let mut versions = self.kinds.iter().filter(|known| known.name == kind);
        let stored = versions.clone().find(|version| version.is_stored);
        stored.or_else(|| versions.next()).ok_or_else(|| AddFailure::NoKind { kind: kind.into(), known: self.names() })
    }

    /// Returns the kinds for an error message, sorted and without repeating one that has several versions.
    fn names(&self) -> String {
        let mut names: Vec<_> = self.kinds.iter().map(|kind| kind.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { "none".into() } else { names.join(", ") }
    }

    /// Returns the file that declares a kind, relative to the project.
    fn file_of(&self, kind: &Kind) -> String {
        kind.path.strip_prefix("crate::").map_or_else(|| self.root_file(), |module| format!("src/{module}.rs"))
    }

    /// Returns the file with the app, relative to the project.
    fn root_file(&self) -> String {
        self.root.strip_prefix(&self.folder).unwrap_or(&self.root).display().to_string()
    }

    /// Returns `true` if a path of the project exists. Also a link whose target is missing is there: a file would be written
    /// where it points to.
    ///
    /// # Errors
    /// The path cannot be read, for example because a folder of it is a file.
    fn is_there(&self, path: &Path) -> Result<bool, AddFailure> {
        let path = self.folder.join(path);
        match std::fs::symlink_metadata(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(source) => Err(AddFailure::File { path, source }),
        }
    }

    /// Checks that no file and no module has the names of the new ones.
    fn check_names(&self, added: &Added, root: &str) -> Result<(), AddFailure> {
        for (file, _) in &added.files {
            if self.is_there(file)? {
                return Err(AddFailure::Exists(file.clone()));
            }
        }
        let folder = format!("src/{}", added.module);
        let file = if self.is_there(Path::new(&folder))? { folder } else { self.root_file() };
        if file == self.root_file() && !source::has_module(root, &added.module) {
            return Ok(());
        }
        Err(AddFailure::HasModule { module: added.module.clone(), file })
    }

    /// Returns an object of a kind for generated tests: from the sample of the module, `sample.yaml`, or another file in
    /// `samples/`.
    ///
    /// Folders that can't be read have no samples.
    fn sample(&self, kind: &Kind) -> Option<Sample> {
        let module = kind.path.rsplit("::").next().unwrap_or_default().replace('_', "-");
        let folder = std::fs::read_dir(self.folder.join("samples")).into_iter().flatten().flatten();
        let mut others: Vec<String> = folder
            .filter_map(|file| file.file_name().into_string().ok())
            .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "yaml"))
            .map(|name| format!("samples/{name}"))
            .collect();
        others.sort();
        let first = [format!("samples/{module}.yaml"), "sample.yaml".to_owned()];
        first.into_iter().chain(others).find_map(|file| {
            let text = read(&self.folder.join(&file)).ok()?;
            Some(Sample { object: object_of(&text, kind)?, file: format!("../{file}") })
        })
    }

    /// Fills a template whose tests need an object of the kind. Without a sample, the tests are left out: the values of the
    /// required fields are unknown.
    fn with_sample(&self, kind: &Kind, template: &str, names: &[(&str, &str)]) -> String {
        let api = if kind.is_namespaced { "Api::default_namespaced" } else { "Api::all" };
        let Some(Sample { file, object }) = self.sample(kind) else {
            let code = template.split_once("\n#[cfg(test)]").map_or(template, |(code, _tests)| code);
            say!(
                "no tests were generated, because no file in samples/ has a {}: write one, and a test with it",
                kind.name
            );
            return fill(code, names);
        };
        fill(&fill(template, names), &[("sample", &file), ("object", &object), ("api", api)])
    }

    /// Generates a kind with its controller and a sample.
    ///
    /// The kind is derived from the name (`tea-room` is `TeaRoom`), and the group is that of the project's first kind.
    fn controller(&self, name: &str, group: Option<&str>, kind: Option<&str>) -> Result<Added, AddFailure> {
        if !is_name(name) {
            return Err(AddFailure::Name(name.into()));
        }
        if !is_module(name) {
            return Err(AddFailure::TakenName(name.into()));
        }
        let kind = kind.map_or_else(|| name.split('-').map(capitalized).collect(), ToOwned::to_owned);
        if let Some(known) = self.kinds.iter().find(|known| known.name == kind) {
            return Err(AddFailure::HasKind { kind, file: self.file_of(known) });
        }
        if !is_kind(&kind) || is_taken(CONTROLLER, &kind) {
            return Err(AddFailure::Kind(kind));
        }
        let group = group.or_else(|| self.kinds.first().map(|kind| kind.group.as_str())).unwrap_or("example.com");
        if !is_group(group) {
            return Err(AddFailure::Group(group.into()));
        }
        let function = format!("reconcile_{}", kind.to_ascii_lowercase());
        let module = name.replace('-', "_");
        let fill =
            |text: &str| fill(text, &[("name", name), ("group", group), ("kind", &kind), ("function", &function)]);
        Ok(Added {
            files: vec![
                (format!("src/{module}.rs").into(), fill(CONTROLLER)),
                (format!("samples/{name}.yaml").into(), fill(SAMPLE)),
            ],
            call: format!(".controller::<{module}::{function}>()"),
            module,
            features: &[],
            next: format!("cargo run -- dev -f samples/{name}.yaml --until-idle"),
        })
    }

    /// Generates defaulting and validation of a declared kind, with tests if the kind has a sample.
    ///
    /// The code needs the feature `webhook` of kctl, which [`Project::apply`] turns on.
    fn webhook(&self, kind: &str) -> Result<Added, AddFailure> {
        let kind = self.kind(kind)?;
        let lower = kind.name.to_ascii_lowercase();
        let module = format!("{lower}_webhook");
        let names = [("kind", &*kind.name), ("path", &*kind.path), ("group", &*kind.group), ("lower", &*lower)];
        let text = self.with_sample(kind, WEBHOOK, &names);
        Ok(Added {
            files: vec![(format!("src/{module}.rs").into(), text)],
            call: format!(".admission::<({module}::default_{lower}, {module}::validate_{lower})>()"),
            module,
            features: &["webhook"],
            next: "cargo test".into(),
        })
    }

    /// Writes the new files, and inserts the lines into those of the user.
    ///
    /// Nothing is written if one of the new files exists. The changed source must parse, else its lines are left to the
    /// user: a wrong guess in someone's file costs more than two lines to copy. New files come first, because a declaration of
    /// a missing module breaks the project, and a file that nothing declares does not.
    fn apply(&self, added: &Added) -> Result<(), AddFailure> {
        let mut by_hand = Vec::new();
        let whole = read(&self.root)?;
        let root = whole.trim_start_matches(BYTE_ORDER_MARK);
        let mark = &whole[..whole.len() - root.len()];
        self.check_names(added, root)?;
        let (changed_root, changed_manifest) =
            (Self::changed_root(root, added), self.changed_manifest(added, &mut by_hand)?);
        for (file, text) in &added.files {
            let path = self.folder.join(file);
            write_new(&path, text)?;
            if path.extension().is_some_and(|extension| extension == "rs") {
                crate::new::format_file(&path);
            }
            say!("created {}", path.display());
        }
        if let Some(text) = changed_manifest {
            write(&self.folder.join("Cargo.toml"), &text)?;
        }
        match changed_root {
            Some(text) => write(&self.root, &format!("{mark}{text}"))?,
            None => by_hand.insert(0, {
                let Added { module, call, .. } = added;
                format!("{}:\nmod {module};  // beside `App::new(…)`\n{call}  // on the app", self.root.display())
            }),
        }
        if !by_hand.is_empty() {
            return Err(AddFailure::ByHand(by_hand.join("\n")));
        }
        say!("changed {}. Try it: {}", self.root.display(), added.next);
        Ok(())
    }

    /// Returns the source of the app with the module and the call, or `None` without a place for them.
    fn changed_root(root: &str, added: &Added) -> Option<String> {
        let module = |text: &str| source::module(text, &added.module);
        let call = |text: &str| source::call(text, &added.call);
        let text = inserted(root, module).and_then(|text| inserted(&text, call)).filter(|text| source::parses(text))?;
        // A file that was formatted stays formatted; the layout of any other one is the user's.
        let is_formatted = formatted(root).is_some_and(|formatted| formatted == root);
        Some(is_formatted.then(|| formatted(&text)).flatten().unwrap_or(text))
    }

    /// Returns `Cargo.toml` with the features of the new code, `None` if it has them. Lines without a place are added to
    /// `by_hand`.
    fn changed_manifest(&self, added: &Added, by_hand: &mut Vec<String>) -> Result<Option<String>, AddFailure> {
        let manifest = self.folder.join("Cargo.toml");
        let old = read(&manifest)?;
        let mut text = old.clone();
        for feature in added.features {
            match source::feature(&text, feature) {
                source::Feature::Present => {}
                source::Feature::Missing(insertion) => text = insertion.applied(&text),
                source::Feature::Unknown => {
                    by_hand.push(format!("{}:\nkctl = {{ …, features = [\"{feature}\"] }}", manifest.display()));
                }
            }
        }
        Ok((text != old).then_some(text))
    }
}

/// Returns the source with an insertion, or `None` without a place for it.
fn inserted(text: &str, find: impl Fn(&str) -> Option<Insertion>) -> Option<String> {
    Some(find(text)?.applied(text))
}

/// Returns `true` if a module beside those of the project can have the name of a controller.
///
/// A keyword is not an identifier, and a module `core` or `kctl` would shadow the crate.
fn is_module(name: &str) -> bool {
    let is_identifier = syn::parse_str::<syn::Ident>(&name.replace('-', "_")).is_ok();
    is_identifier && !TAKEN.contains(&name) && !ROOTS.contains(&name)
}

/// Replaces `{{…}}` by names.
///
/// A name without a placeholder in the template is ignored, so templates need not use all of them.
fn fill(text: &str, names: &[(&str, &str)]) -> String {
    names.iter().fold(text.to_owned(), |text, (place, value)| text.replace(&format!("{{{{{place}}}}}"), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        /// A project of one file.
        fn new(name: &str, main: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("kctl-add-{}-{name}", std::process::id()));
            write(&folder.join("src/main.rs"), main).unwrap();
            write(&folder.join("Cargo.toml"), "[dependencies]\nkctl = { version = \"0.1\", features = [\"v1_37\"] }\n")
                .unwrap();
            Self(folder)
        }

        fn add(&self, what: What) -> Result<(), String> {
            let options = Options { what, project: self.0.clone() };
            run(&options).map_err(|error| error.to_string())
        }

        fn text(&self, file: &str) -> String {
            read(&self.0.join(file)).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    fn controller(name: &str) -> What {
        What::Controller { name: name.into(), group: None, kind: None }
    }

    const MAIN: &str = "//! Ours.
use kctl::prelude::*;

#[resource(group = \"shop.example.com\", version = \"v1alpha1\", kind = \"Shop\", namespaced)]
pub struct ShopSpec {
    /// Kept as it is written.
    pub host:   String,
}

fn app() -> App {
    // Hand-written.
    App::new(\"shop\")
        .version(\"1\")
        .controller::<reconcile_shop>()
}
";

    #[test]
    fn controller_is_added_and_nothing_else_changes() {
        let folder = Folder::new("controller", MAIN);
        folder.add(controller("tea-room")).unwrap();
        folder.add(controller("bar")).unwrap();
        let expected = MAIN.replace("use kctl", "mod bar;\nmod tea_room;\n\nuse kctl").replace(
            ".controller::<reconcile_shop>()",
            ".controller::<reconcile_shop>()\n        .controller::<tea_room::reconcile_tearoom>()\n        .controller::<bar::reconcile_bar>()",
        );
        let sorted = |text: &str| text.replace("mod tea_room;\nmod bar;", "mod bar;\nmod tea_room;");
        assert_eq!(sorted(&folder.text("src/main.rs")), expected);
        let module = folder.text("src/tea_room.rs");
        assert!(module.contains("kind = \"TeaRoom\"") && module.contains("group = \"shop.example.com\""), "{module}");
        assert!(!module.contains("{{"), "{module}");
        assert!(folder.text("samples/tea-room.yaml").contains("kind: TeaRoom"));
    }

    #[test]
    fn files_are_never_written_over() {
        let folder = Folder::new("exists", MAIN);
        write(&folder.0.join("src/tea_room.rs"), "// mine\n").unwrap();
        assert!(folder.add(controller("tea-room")).unwrap_err().contains("src/tea_room.rs is there already"));
        assert_eq!((folder.text("src/tea_room.rs"), folder.text("src/main.rs")), ("// mine\n".into(), MAIN.into()));
        assert!(folder.add(controller("Tea")).unwrap_err().contains("`Tea` is not a valid name"));
    }

    /// Runs `add controller NAME` and checks that it fails and changes nothing.
    fn fails_without_a_change(folder: &Folder, name: &str) -> String {
        let before = folder.text("src/main.rs");
        let error = folder.add(controller(name)).unwrap_err();
        assert_eq!(folder.text("src/main.rs"), before, "{error}");
        let file = format!("src/{}.rs", name.replace('-', "_"));
        assert!(!folder.0.join(&file).exists(), "{file}: {error}");
        error
    }

    #[test]
    fn existing_module_of_the_name_is_refused() {
        for (name, more) in [
            ("web", "mod web;\n"),
            ("web-site", "mod web_site {}\n"),
            ("tests", "#[cfg(test)]\nmod tests {}\n"),
            ("time", "use std::{fmt, time};\n"),
            ("site", "#[controller(read_only)]\nasync fn site() {}\n"),
        ] {
            let folder = Folder::new(&format!("module-{name}"), &format!("{MAIN}{more}"));
            let error = fails_without_a_change(&folder, name);
            assert!(error.starts_with("src/main.rs has the name `"), "{error}");
        }
        let folder = Folder::new("module-folder", MAIN);
        write(&folder.0.join("src/web/mod.rs"), "").unwrap();
        let error = fails_without_a_change(&folder, "web");
        assert!(error.starts_with("src/web has the name `web` already"), "{error}");
    }

    #[test]
    fn project_is_unchanged_if_it_cannot_be_read() {
        let folder = Folder::new("no-manifest", MAIN);
        std::fs::remove_file(folder.0.join("Cargo.toml")).unwrap();
        assert!(fails_without_a_change(&folder, "bar").contains("Cargo.toml"));
        let folder = Folder::new("samples-file", MAIN);
        write(&folder.0.join("samples"), "").unwrap();
        assert!(fails_without_a_change(&folder, "bar").contains("samples/bar.yaml: "));
    }

    #[test]
    fn byte_order_mark_moves_no_line() {
        let folder = Folder::new("mark", &format!("\u{feff}{MAIN}"));
        folder.add(controller("bar")).unwrap();
        let main = folder.text("src/main.rs");
        let start = "\u{feff}//! Ours.\nmod bar;\n\nuse kctl::prelude::*;\n";
        assert!(
            main.starts_with(start) && main.ends_with("()\n        .controller::<bar::reconcile_bar>()\n}\n"),
            "{main}"
        );
        folder.add(What::Version { version: "v1".into(), kind: Some("Shop".into()) }).unwrap();
        assert!(folder.text("src/shop_v1.rs").contains("pub host: String"));
    }

    /// The attributes of a kind with names that its file imports or declares.
    const FIELDS: &str = "use std::{collections::{BTreeMap, HashMap}, fmt::{self, Debug as Shown}};
use self::inner::Door;

mod inner {}
#[cfg(test)]
mod port {}
fn default_port() -> u16 { PORT }
const PORT: u16 = 80;
const MAX: u16 = 90;
fn unused() {}

#[resource(group = \"shop.example.com\", version = \"v1\", kind = \"Inn\", status = \"InnStatus\")]
pub struct InnSpec {
    /// unused
    pub labels: BTreeMap<String, String>,
    pub door: Door,
    #[serde(rename = \"unused\", default = \"default_port\")]
    #[validate(maximum = MAX)]
    pub port: u16,
}

pub struct InnStatus {}
";

    #[test]
    fn version_imports_names_of_its_fields() {
        let version = || What::Version { version: "v2".into(), kind: Some("Inn".into()) };
        let folder = Folder::new("names", &MAIN.replace("\nfn app", &format!("\n{FIELDS}\nfn app")));
        folder.add(version()).unwrap();
        let text = folder.text("src/inn_v2.rs");
        let head = text.split_once("#[resource").unwrap().0;
        for import in ["std::collections::BTreeMap;", "crate::inner::Door;", "crate::{InnStatus, MAX, default_port};"] {
            assert!(head.contains(&format!("use {import}\n")), "{import}\n{head}");
        }
        for other in ["HashMap", "fmt", "Shown", "unused"] {
            assert!(!head.contains(other), "{other}\n{head}");
        }
        // A module beside that of the kind can import its public items alone.
        let folder = Folder::new("names-beside", &MAIN.replace("\nuse kctl", "\nmod inn;\n\nuse kctl"));
        write(&folder.0.join("src/inn.rs"), FIELDS).unwrap();
        let error = folder.add(version()).unwrap_err();
        assert!(error.starts_with("the new version needs `Door`, which src/inn.rs keeps private"), "{error}");
        write(&folder.0.join("src/inn.rs"), &FIELDS.replace("mod inner", "pub mod inner")).unwrap();
        folder.add(version()).unwrap();
        let text = folder.text("src/inn_v2.rs");
        for part in [
            "use crate::inn::InnStatus;",
            "use crate::inn::inner::Door;",
            "fn default_port() -> u16",
            "const PORT: u16",
            "const MAX: u16",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("fn unused"), "{text}");
    }

    #[test]
    fn declared_kind_is_named_with_its_file() {
        let folder = Folder::new("declared", MAIN);
        let declared = folder.add(controller("shop")).unwrap_err();
        assert!(declared.contains("Shop is declared already, in src/main.rs"), "{declared}");
        folder.add(controller("tea-room")).unwrap();
        let kind = Some("TeaRoom".to_owned());
        let other = folder.add(What::Controller { name: "bar".into(), group: None, kind }).unwrap_err();
        assert!(other.contains("TeaRoom is declared already, in src/tea_room.rs"), "{other}");
    }

    #[test]
    fn controller_name_has_to_be_a_module() {
        let folder = Folder::new("taken", MAIN);
        for name in ["struct", "if", "self", "kctl", "lib", "main", "core"] {
            let error = folder.add(controller(name)).unwrap_err();
            assert!(error.contains(&format!("`{name}` is a name that Rust or kctl has already")), "{error}");
        }
        assert_eq!(folder.text("src/main.rs"), MAIN);
    }

    #[cfg(unix)]
    #[test]
    fn dangling_link_is_not_followed() {
        let folder = Folder::new("link", MAIN);
        let target = folder.0.join("elsewhere.yaml");
        std::fs::create_dir_all(folder.0.join("samples")).unwrap();
        std::os::unix::fs::symlink(&target, folder.0.join("samples/bar.yaml")).unwrap();
        assert!(folder.add(controller("bar")).unwrap_err().contains("samples/bar.yaml is there already"));
        assert!(!target.exists() && folder.text("src/main.rs") == MAIN);
    }

    #[test]
    fn webhook_needs_a_kind_and_a_feature() {
        let folder = Folder::new("webhook", MAIN);
        let webhook = |kind: &str| What::Webhook { kind: kind.into() };
        assert!(folder.add(webhook("Bar")).unwrap_err().contains("kinds there: Shop"));
        folder.add(webhook("Shop")).unwrap();
        assert!(folder.text("Cargo.toml").contains("features = [\"v1_37\", \"webhook\"]"));
        let call = ".admission::<(shop_webhook::default_shop, shop_webhook::validate_shop)>()";
        assert!(folder.text("src/main.rs").contains(call));
        assert!(folder.text("src/shop_webhook.rs").contains("use crate::Shop;"));
    }

    #[test]
    fn version_is_a_copy_with_conversions() {
        let folder = Folder::new("version", MAIN);
        let version = |version: &str| What::Version { version: version.into(), kind: None };
        assert!(folder.add(version("1")).unwrap_err().contains("is not a version"));
        assert!(folder.add(version("v1alpha1")).unwrap_err().contains("version v1alpha1 already, in src/main.rs"));
        folder.add(version("v1")).unwrap();
        let text = folder.text("src/shop_v1.rs");
        for part in
            ["version = \"v1\"", "storage = false", "pub host: String", "host: object.spec.host", "#[conversion]"]
        {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let main = folder.text("src/main.rs");
        assert!(main.contains(".kind::<shop_v1::Shop>().conversion::<(shop_v1::shop_to_v1, shop_v1::shop_from_v1)>()"));
    }

    /// The file of version `v1` is read before `main.rs`, which declares the stored version.
    #[test]
    fn further_versions_and_webhooks_use_the_stored_version() {
        let bar = MAIN.replace("Shop", "Bar").replace("shop", "bar");
        let folder = Folder::new("stored", &bar);
        let version = |version: &str| What::Version { version: version.into(), kind: None };
        folder.add(version("v1")).unwrap();
        folder.add(version("v2")).unwrap();
        let text = folder.text("src/bar_v2.rs");
        assert!(text.contains("fn bar_to_v2(object: crate::Bar)"), "{text}");
        assert!(text.contains("between it and `v1alpha1`"), "{text}");
        folder.add(What::Webhook { kind: "Bar".into() }).unwrap();
        assert!(folder.text("src/bar_webhook.rs").contains("use crate::Bar;"));
    }

    #[test]
    fn kind_without_sample_gets_no_tests() {
        let folder = Folder::new("sample", MAIN);
        folder.add(What::Webhook { kind: "Shop".into() }).unwrap();
        folder.add(What::Version { version: "v1".into(), kind: None }).unwrap();
        for file in ["src/shop_webhook.rs", "src/shop_v1.rs"] {
            let text = folder.text(file);
            assert!(!text.contains("#[cfg(test)]") && !text.contains("{{") && text.ends_with("}\n"), "{text}");
        }
        let other = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n";
        let elsewhere = "---\napiVersion: shop.example.com/v1alpha1\nkind: Shop\nmetadata: { name: b, namespace: c }\n";
        let shop =
            "---\napiVersion: shop.example.com/v1alpha1\nkind: Shop\nmetadata:\n  name: corner\nspec:\n  host: b\n";
        write(&folder.0.join("samples/all.yaml"), &format!("{other}{elsewhere}{shop}")).unwrap();
        folder.add(What::Version { version: "v2".into(), kind: None }).unwrap();
        let text = folder.text("src/shop_v2.rs");
        assert!(text.contains("include_str!(\"../samples/all.yaml\")") && text.contains("get(\"corner\")"), "{text}");
    }

    #[test]
    fn lines_are_shown_where_no_place_is_found() {
        // The file creates two apps, so the place for the call is ambiguous.
        let folder = Folder::new("by-hand", "fn a() { App::new(\"a\"); }\nfn b() { App::new(\"b\"); }\n");
        let version = What::Version { version: "v1".into(), kind: None };
        assert!(folder.add(version).unwrap_err().starts_with("no `#[resource]` was found in src/"));
        let error = folder.add(controller("bar")).unwrap_err();
        assert!(error.contains("mod bar;") && error.contains(".controller::<bar::reconcile_bar>()"), "{error}");
        assert!(folder.0.join("src/bar.rs").exists());
        let none = Folder::new("none", "fn main() {}\n");
        assert!(none.add(controller("bar")).unwrap_err().contains("has no src/main.rs or src/lib.rs"));
    }
}
