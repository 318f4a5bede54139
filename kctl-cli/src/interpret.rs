//! `kctl interpret`: one operation of the resource interpreters on files, to try what a control plane would do.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
};

use clap::{CommandFactory, Parser, error::ErrorKind};
use kctl_interpreter::{
    chain::{Chain, ChainError},
    operation::{AggregatedStatusItem, Inputs, Operation},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Failure;

/// The largest file that is read. It is that of etcd's values many times over, and keeps a wrong path from filling the
/// memory.
const FILE_LEN_MAX: u64 = 16 << 20;

/// What to interpret. A file is JSON or YAML, and `-` is standard input.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// The operation, such as `InterpretReplica`
    #[arg(long)]
    operation: Operation,
    /// A file of `ResourceInterpreterCustomization`s; without one the built-in interpreters answer
    #[arg(long, value_name = "FILE")]
    customization: Vec<PathBuf>,
    /// The object
    #[arg(long, value_name = "FILE", conflicts_with = "desired")]
    object: Option<PathBuf>,
    /// The object of the control plane
    #[arg(long, value_name = "FILE")]
    desired: Option<PathBuf>,
    /// The object as the cluster has it
    #[arg(long, value_name = "FILE")]
    observed: Option<PathBuf>,
    /// The number of replicas that `ReviseReplica` sets
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    replicas: Option<i64>,
    /// A list of what the clusters reported, for `AggregateStatus`
    #[arg(long, value_name = "FILE")]
    status_items: Option<PathBuf>,
}

/// Why a file or an operation gave nothing.
#[derive(Debug, thiserror::Error)]
enum InterpretError {
    #[error("{path}: cannot be read")]
    FileUnreadable {
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("{path}: larger than {FILE_LEN_MAX} bytes, so probably not what was meant")]
    FileTooLarge { path: String },
    #[error("{path}: neither JSON nor YAML of {expected}: {problem}")]
    FileMalformed { path: String, expected: &'static str, problem: String },
    #[error("{path}: not an object with apiVersion and kind")]
    ObjectIncomplete { path: String },
    #[error(transparent)]
    ChainFailed(#[from] ChainError),
}

/// Prints the answer as one line of JSON.
pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    if let Some(problem) = wrong_usage(&options) {
        crate::Cli::command().error(ErrorKind::ArgumentConflict, problem).exit();
    }
    let inputs = inputs(&options)?;
    let documents = options.customization.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let answer = answer(&documents, options.operation, &inputs).await?;
    writeln!(std::io::stdout().lock(), "{answer}")?;
    Ok(())
}

async fn answer(documents: &[String], operation: Operation, inputs: &Inputs) -> Result<Value, Failure> {
    if documents.is_empty() {
        return Ok(Chain::native().answer(operation, inputs).await.map_err(InterpretError::from)?);
    }
    Err("--customization: this build of kctl cannot run the Lua scripts of customizations".into())
}

/// Returns what cannot be meant, before anything is read.
fn wrong_usage(options: &Options) -> Option<String> {
    let operation = options.operation;
    let files = [&options.object, &options.desired, &options.observed, &options.status_items];
    let files = files.into_iter().flatten().chain(&options.customization);
    if files.filter(|path| path.as_os_str() == "-").count() > 1 {
        return Some("standard input can be read once: give one file as -".to_owned());
    }
    let missing = match operation {
        Operation::Retain if options.observed.is_none() => "--observed",
        Operation::Retain if options.desired.is_none() && options.object.is_none() => "--desired",
        Operation::ReviseReplica if options.replicas.is_none() => "--replicas",
        _ if options.object.is_none() && options.desired.is_none() && options.observed.is_none() => "--object",
        _ => return None,
    };
    Some(format!("{operation} needs {missing}"))
}

fn inputs(options: &Options) -> Result<Inputs, InterpretError> {
    let status_items = match &options.status_items {
        Some(path) => parsed::<Option<Vec<AggregatedStatusItem>>>(path, "a list of status items")?,
        None => Some(Vec::new()),
    };
    Ok(Inputs {
        desired: options.object.as_deref().or(options.desired.as_deref()).map(object).transpose()?,
        observed: options.observed.as_deref().map(object).transpose()?,
        replicas: options.replicas,
        status_items,
    })
}

fn object(path: &Path) -> Result<Value, InterpretError> {
    let object: Value = parsed(path, "an object")?;
    let has = |field: &str| object.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if has("apiVersion") && has("kind") {
        return Ok(object);
    }
    Err(InterpretError::ObjectIncomplete { path: path.display().to_string() })
}

fn parsed<T: DeserializeOwned>(path: &Path, expected: &'static str) -> Result<T, InterpretError> {
    let text = read(path)?;
    let malformed = |problem| InterpretError::FileMalformed { path: path.display().to_string(), expected, problem };
    // JSON is YAML, but only its own parser keeps all digits of numbers and knows all escapes.
    if let Ok(value) = serde_json::from_str(&text) {
        return Ok(value);
    }
    serde_saphyr::from_str(&text).map_err(|error| malformed(error.to_string()))
}

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
