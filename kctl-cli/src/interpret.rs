//! `kctl interpret`: runs one resource interpreter operation on files, as `karmadactl interpret` does.
//!
//! ```text
//! kctl interpret --operation InterpretReplica --object deployment.yaml
//! kctl interpret --check --customization customizations/
//! ```

mod numbers;

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use clap::{CommandFactory, Parser, error::ErrorKind};
use kctl_interpreter::{
    chain::{Chain, ChainError, LayerKind},
    lua::{Configurable, CustomizationError, Limits, Pool, Scripts},
    operation::{AggregatedStatusItem, Inputs, Operation, UnknownOperationError},
    thirdparty::{self, FolderError},
};
use serde_json::Value;

use crate::{Failure, with_causes};

/// Maximum size of a file in bytes: many times etcd's limit of a value. It keeps a wrong path from filling the memory.
const FILE_LEN_MAX: u64 = 16 << 20;

/// Maximum number of files of a folder. A folder with more is probably not the one that was meant.
const FILES_MAX: usize = 1000;

/// The fields of an `AggregatedStatusItem`. A document without any of them is rejected.
const ITEM_FIELDS: [&str; 5] = ["clusterName", "status", "applied", "appliedMessage", "health"];

/// Options of `kctl interpret`. A file is JSON or YAML, and `-` is standard input.
#[derive(Debug, Parser)]
pub(crate) struct InterpretOptions {
    /// The operation, in any case: `InterpretReplica`, `InterpretComponent`, `ReviseReplica`, `Retain`, `InterpretStatus`,
    /// `AggregateStatus`, `InterpretDependency`, `InterpretHealth` or `Prune`
    #[arg(long, required_unless_present = "check", value_parser = operation)]
    operation: Option<Operation>,
    /// Only validate the customizations, as Karmada's webhook does when they are installed
    #[arg(long, conflicts_with = "operation")]
    check: bool,
    /// A file with `ResourceInterpreterCustomization`s, or a folder of such files. They are asked before the bundled and the
    /// built-in interpreters
    #[arg(short = 'f', long, visible_alias = "filename", value_name = "FILE|DIR")]
    customization: Vec<PathBuf>,
    /// A folder in Karmada's layout, `<group>/<version>/<Kind>/customizations.yaml`, instead of the bundled scripts for widely used
    /// kinds. The bundled scripts are kctl's own, not Karmada's
    #[arg(long, value_name = "DIR")]
    third_party: Option<PathBuf>,
    /// The file of the object
    #[arg(long, value_name = "FILE", conflicts_with = "desired")]
    object: Option<PathBuf>,
    /// The file of the object in the control plane
    #[arg(long, visible_alias = "desired-file", value_name = "FILE")]
    desired: Option<PathBuf>,
    /// The file of the object as observed in the member cluster
    #[arg(long, visible_alias = "observed-file", value_name = "FILE")]
    observed: Option<PathBuf>,
    /// The number of replicas that `ReviseReplica` sets
    #[arg(long, visible_alias = "desired-replica", value_name = "N", allow_negative_numbers = true)]
    replicas: Option<i64>,
    /// The file with the `AggregatedStatusItem`s that member clusters reported, for `AggregateStatus`: a list, or one per YAML
    /// document. Without this option scripts get nil
    #[arg(long, visible_alias = "status-file", value_name = "FILE")]
    status_items: Option<PathBuf>,
    /// The format of the answer
    #[arg(short, long, value_enum, default_value_t = Format::Json)]
    output: Format,
}

/// Formats of the answer.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// One line of JSON
    Json,
    /// YAML
    Yaml,
}

/// Parses the name of an operation in any case, as `karmadactl` does.
fn operation(name: &str) -> Result<Operation, UnknownOperationError> {
    let same = Operation::ALL.into_iter().find(|operation| operation.name().eq_ignore_ascii_case(name));
    same.map_or_else(|| name.parse(), Ok)
}

/// The reason why an operation has no answer.
#[derive(Debug, thiserror::Error)]
enum InterpretError {
    /// A file does not exist, or is not UTF-8.
    #[error("{path}: cannot be read")]
    FileUnreadable {
        path: String,
        #[source]
        source: std::io::Error,
    },
    /// A folder has no or too many files.
    #[error("{path}: {problem}")]
    FolderUnusable { path: String, problem: String },
    /// A file is larger than [`FILE_LEN_MAX`].
    #[error("{path}: larger than {FILE_LEN_MAX} bytes, so probably not what was meant")]
    FileTooLarge { path: String },
    /// A file can't be parsed.
    #[error("{path}: neither JSON nor YAML of {expected}: {problem}")]
    FileMalformed {
        /// The file, as the user named it.
        path: String,
        /// The content that the option wants, such as `an object`.
        expected: &'static str,
        /// The message of the YAML parser, with line and column.
        problem: String,
    },
    /// An object lacks `apiVersion` or `kind`, which select its interpreters.
    #[error("{path}: not an object with apiVersion and kind")]
    ObjectIncomplete { path: String },
    /// A list has no or several objects, and an operation takes one.
    #[error("{path}: a list of {n} objects: give a file with one")]
    ListNotSingle { path: String, n: usize },
    /// Karmada's webhook would reject the customizations; all errors are printed.
    #[error("{}", errors.iter().map(|error| with_causes(error)).collect::<Vec<_>>().join("\n"))]
    CustomizationsRejected { errors: Vec<CustomizationError> },
    /// The folder of `--third-party` is invalid.
    #[error(transparent)]
    FolderRejected(#[from] FolderError),
    /// No layer implements the operation for the kind, or one failed.
    #[error(transparent)]
    ChainFailed(#[from] ChainError),
}

/// Runs the operation on the chain of layers and prints its answer as JSON or YAML.
///
/// The layers have the order of a control plane, but there are no webhooks: `--customization` first, then third-party
/// scripts, then the built-in kinds. With `--check` parsing the customizations is all that happens, and success prints nothing.
///
/// # Errors
/// See [`InterpretError`]. Wrong usage exits with clap's message and status 2.
pub(crate) async fn run(options: InterpretOptions) -> Result<(), Failure> {
    if let Some(problem) = wrong_usage(&options) {
        usage().error(ErrorKind::ArgumentConflict, problem).exit();
    }
    let pool = || Pool::new(Limits::default());
    let bundled = match &options.third_party {
        Some(folder) => {
            let scripts = thirdparty::read(folder).map_err(InterpretError::from)?;
            Configurable::new(scripts, pool())
        }
        None => thirdparty::bundled_customizations(pool()),
    };
    let mut chain = Chain::native().with(LayerKind::ThirdParty, bundled);
    if !options.customization.is_empty() {
        let layer = Configurable::new(scripts(&options.customization)?, pool());
        chain = chain.with(LayerKind::Configurable, layer);
    }
    let Some(operation) = options.operation else { return Ok(()) };
    let answer = chain.interpret_dynamic(operation, &inputs(&options)?).await.map_err(InterpretError::from)?;
    let json = numbers::format_json(&answer);
    let text = match options.output {
        Format::Json => format!("{json}\n"),
        // The YAML comes from the JSON, so that numbers have Go's form here as well.
        Format::Yaml => serde_saphyr::to_string(&serde_json::from_str::<Value>(&json)?)?,
    };
    crate::print(&text)?;
    Ok(())
}

/// Returns this command, for its usage in errors.
fn usage() -> clap::Command {
    let mut tool = crate::Cli::command();
    tool.build();
    tool.find_subcommand("interpret").cloned().unwrap_or(tool)
}

/// Reads customizations from files and folders; a file may have several documents.
fn scripts(paths: &[PathBuf]) -> Result<Scripts, InterpretError> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() { files.extend(files_of(path)?) } else { files.push(path.clone()) }
    }
    let mut documents = Vec::new();
    for path in &files {
        let malformed = |problem| {
            let expected = "ResourceInterpreterCustomizations";
            InterpretError::FileMalformed { path: path.display().to_string(), expected, problem }
        };
        let parsed = serde_saphyr::from_multiple::<Value>(&read(path)?);
        documents.extend(parsed.map_err(|error| malformed(error.to_string()))?.into_iter().flat_map(split_list));
    }
    Scripts::parse(documents.iter().filter(|document| !document.is_null()))
        .map_err(|errors| InterpretError::CustomizationsRejected { errors })
}

/// Returns the YAML and JSON files of a folder, by name.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, InterpretError> {
    let unusable = |problem: String| InterpretError::FolderUnusable { path: folder.display().to_string(), problem };
    let entries = std::fs::read_dir(folder).map_err(|error| unusable(error.to_string()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| unusable(error.to_string()))?.path();
        let extension = path.extension().and_then(std::ffi::OsStr::to_str);
        if path.is_file() && extension.is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension)) {
            files.push(path);
        }
        if files.len() > FILES_MAX {
            return Err(unusable(format!("more than {FILES_MAX} files: name those that are meant")));
        }
    }
    if files.is_empty() {
        return Err(unusable("no file of it ends with .yaml, .yml or .json".to_owned()));
    }
    files.sort();
    Ok(files)
}

/// Returns the first contradiction or missing option, before any file is read.
fn wrong_usage(options: &InterpretOptions) -> Option<String> {
    if options.check && options.customization.is_empty() && options.third_party.is_none() {
        return Some("--check needs --customization or --third-party: name what to check".to_owned());
    }
    let files = [&options.object, &options.desired, &options.observed, &options.status_items];
    let files = files.into_iter().flatten().chain(&options.customization);
    if files.filter(|path| path.as_os_str() == "-").count() > 1 {
        return Some("standard input can be read once: give one file as -".to_owned());
    }
    let operation = options.operation?;
    let missing = match operation {
        Operation::Retain if options.observed.is_none() => "--observed",
        Operation::Retain if options.desired.is_none() && options.object.is_none() => "--desired",
        Operation::ReviseReplica if options.replicas.is_none() => "--replicas",
        _ if options.object.is_none() && options.desired.is_none() && options.observed.is_none() => "--object",
        _ => return None,
    };
    Some(format!("{operation} needs {missing}"))
}

/// Reads the objects and values that the operation gets.
fn inputs(options: &InterpretOptions) -> Result<Inputs, InterpretError> {
    // Without items Karmada passes nil, and not an empty list: scripts, and the rule for pods, answer differently.
    let status_items = options.status_items.as_deref().map(status_items).transpose()?.flatten();
    Ok(Inputs {
        desired: options.object.as_deref().or(options.desired.as_deref()).map(object).transpose()?,
        observed: options.observed.as_deref().map(object).transpose()?,
        replicas: options.replicas,
        status_items,
    })
}

/// Reads status items from all documents, each an item or a list of items.
///
/// The document `null` is nil, which scripts can distinguish from the empty list of an empty file.
fn status_items(path: &Path) -> Result<Option<Vec<AggregatedStatusItem>>, InterpretError> {
    let malformed = |problem: String| InterpretError::FileMalformed {
        path: path.display().to_string(),
        expected: "a list of status items",
        problem,
    };
    let text = read(path)?;
    // JSON is YAML, but only its own parser keeps all digits of numbers and knows all escapes.
    let json = serde_json::Deserializer::from_str(&text).into_iter().collect::<Result<Vec<Value>, _>>();
    let documents = match json {
        Ok(documents) => documents,
        Err(_) => serde_saphyr::from_multiple_with_options(&text, yaml_options())
            .map_err(|error| malformed(error.to_string()))?,
    };
    if text.trim() == "null" {
        return Ok(None);
    }
    let mut items = Vec::new();
    for document in documents {
        match document {
            Value::Null => {}
            Value::Array(list) => items.extend(list),
            Value::Object(ref fields) if ITEM_FIELDS.iter().any(|field| fields.contains_key(*field)) => {
                items.push(document);
            }
            _ => {
                return Err(malformed(
                    "a document is neither a list nor an item with clusterName and status".to_owned(),
                ));
            }
        }
    }
    serde_json::from_value(items.into()).map(Some).map_err(|error| malformed(error.to_string()))
}

/// Reads an object in JSON, or else in YAML, and checks that it has `apiVersion` and `kind`.
///
/// The chain chooses the layer by them; without the check, its error would be about a kind with an empty name.
fn object(path: &Path) -> Result<Value, InterpretError> {
    let (text, shown) = (read(path)?, path.display().to_string());
    // JSON is YAML, but only its own parser keeps all digits of numbers and knows all escapes.
    let document = match serde_json::from_str(&text) {
        Ok(document) => document,
        Err(_) => serde_saphyr::from_str_with_options::<Value>(&text, yaml_options()).map_err(|error| {
            InterpretError::FileMalformed { path: shown.clone(), expected: "an object", problem: error.to_string() }
        })?,
    };
    let not_single = |items: Vec<Value>| InterpretError::ListNotSingle { path: shown.clone(), n: items.len() };
    let [object] = <[Value; 1]>::try_from(split_list(document)).map_err(not_single)?;
    let has = |field: &str| object.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if has("apiVersion") && has("kind") { Ok(object) } else { Err(InterpretError::ObjectIncomplete { path: shown }) }
}

/// Returns the items of a list, as `kubectl get -o yaml` prints several objects; other documents as they are.
fn split_list(mut document: Value) -> Vec<Value> {
    let is_list = document.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    match document.get_mut("items") {
        Some(Value::Array(items)) if is_list => std::mem::take(items),
        _ => vec![document],
    }
}

/// Returns the options with which the YAML parser reads numbers as Go's does: `0644`, a mode of a file, is octal.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! { legacy_octal_numbers: true }
}

/// Reads a file or standard input, up to [`FILE_LEN_MAX`].
fn read(path: &Path) -> Result<String, InterpretError> {
    let shown = || path.display().to_string();
    let unreadable = |source| InterpretError::FileUnreadable { path: shown(), source };
    let mut text = String::new();
    let source: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(unreadable)?)
    };
    let len = source.take(FILE_LEN_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if u64::try_from(len).is_ok_and(|len| len > FILE_LEN_MAX) {
        return Err(InterpretError::FileTooLarge { path: shown() });
    }
    Ok(text)
}
