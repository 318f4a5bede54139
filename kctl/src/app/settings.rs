//! The options of `run` from three places: flags, then environment variables, then a file.
//!
//! One name each: `--leader-elect` is `KCTL_LEADER_ELECT` and `leader-elect:`.

use std::{ffi::OsString, io::Read, path::Path};

use clap::{
    Arg, ArgAction, ArgMatches, Command,
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};
use kctl_runtime::reconcile::{Error, Result, ResultExt};
use serde_json::{Map, Value};

/// Prefix of environment variables, the same for all programs since each has its own environment.
const PREFIX: &str = "KCTL_";
/// Maximum size of the file of `--config`, in bytes.
const FILE_LEN_MAX: u64 = 1 << 20;

/// Maximum edit distance at which an unknown name is taken for a known one. A short name allows fewer changes, because
/// most short names are three letters away from each other.
const CHANGES_MAX: usize = 3;

/// The command whose options also come from elsewhere.
pub(super) const RUN: &str = "run";

/// Returns the command line with environment variables for the options of `run`.
///
/// As in Go, the last one of an option that is given twice wins, so that `extraArgs` of a chart override its own arguments.
/// Options that can be repeated keep all of their values.
pub(super) fn with_environment(command: Command) -> Command {
    command.mut_subcommand(RUN, |run| {
        run.args_override_self(true).mut_args(|arg| {
            let Some((name, delimiter)) = arg.get_long().map(|long| (variable(long), delimiter(long))) else {
                return arg;
            };
            let arg = match arg.get_action() {
                ArgAction::Append => arg.value_delimiter(delimiter),
                ArgAction::SetTrue => or_not(arg),
                _ => arg,
            };
            // Values may be secrets, so `--help` shows the names alone.
            arg.env(name).hide_env_values(true)
        })
    })
}

/// Returns the character between the values of a repeatable option. Names of groups may have commas, as in LDAP.
fn delimiter(flag: &str) -> char {
    if flag == "as-group" { '\n' } else { ',' }
}

/// Allows `--flag=false`, as in Go: otherwise a flag could not override the environment or the
/// file.
fn or_not(arg: Arg) -> Arg {
    arg.action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .default_value("false")
        .hide_default_value(true)
        .value_parser(clap::value_parser!(bool))
        .hide_possible_values(true)
        .value_name("BOOL")
}

fn variable(flag: &str) -> String {
    format!("{PREFIX}{}", flag.to_uppercase().replace('-', "_"))
}

/// Adds the options of the file that `--config` names, unless a flag or the environment sets them. Without a command, `run`
/// is added.
///
/// The file becomes flags, so that clap checks its values exactly as it checks typed ones.
///
/// # Errors
/// The file can't be read, has an unknown option, or a value that no flag can have.
pub(super) fn arguments(command: &Command, arguments: Vec<OsString>) -> Result<Vec<OsString>> {
    let mut arguments = with_command(arguments);
    let Ok(matches) = command.clone().ignore_errors(true).try_get_matches_from(&arguments) else {
        return Ok(arguments);
    };
    let (Some(run), Some(options)) = (matches.subcommand_matches(RUN), command.find_subcommand(RUN)) else {
        return Ok(arguments);
    };
    let Some(file) = run.get_one::<std::path::PathBuf>("config") else { return Ok(arguments) };
    let mut more = Vec::new();
    for (key, value) in &read(file)? {
        let arg = options.get_arguments().find(|arg| arg.get_long() == Some(key) && key != "config");
        let arg = arg.ok_or_else(|| unknown_option(file, key, options))?;
        if !is_set(run, arg) {
            more.extend(flags(arg, key, value).ok_or_else(|| invalid_value(file, key, value))?);
        }
    }
    // After a `--` they would not be options.
    let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    drop(arguments.splice(end..end, more));
    Ok(arguments)
}

/// Adds `run` to arguments without a command. Options of the program itself, such as `--help`, take no command.
///
/// The programs of controller-runtime have no commands, so a Deployment that was written for one starts with a flag. A `--`
/// before the command, as in `cargo run -- -- dev`, separates nothing and is removed.
fn with_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_some_and(|first| first == "--") {
        arguments.remove(1);
    }
    let is_command = |first: &OsString| !first.as_encoded_bytes().starts_with(b"-");
    let is_program_option = |first: &OsString| ["-h", "--help", "-V", "--version"].iter().any(|option| first == option);
    let is_complete = arguments.get(1).is_some_and(|first| is_command(first) || is_program_option(first));
    if !is_complete {
        arguments.insert(arguments.len().min(1), RUN.into());
    }
    arguments
}

/// Variables of `#[kctl::test]` and `TestServer`, which programs that a test starts see as well.
const TEST_VARIABLES: [&str; 5] =
    ["KCTL_SEED", "KCTL_SEEDS", "KCTL_SIM_SECONDS", "KCTL_TEST_STUCK_SECONDS", "KCTL_TWICE"];

/// Returns a line for each variable with our prefix that is not an option of `run`: otherwise a
/// typo would go unnoticed.
///
/// Such variables are not errors, because Kubernetes sets some for a Service named `kctl-…`.
pub(super) fn misspelt(command: &Command, variables: impl Iterator<Item = String>) -> Vec<String> {
    let Some(run) = command.find_subcommand(RUN) else { return Vec::new() };
    let known_variables: Vec<String> = run.get_arguments().filter_map(Arg::get_long).map(variable).collect();
    let is_service_variable =
        |name: &str| ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT"].iter().any(|part| name.contains(part));
    let mut unknown: Vec<String> = variables
        .filter(|name| name.starts_with(PREFIX) && !known_variables.contains(name))
        .filter(|name| !is_service_variable(name) && !TEST_VARIABLES.contains(&name.as_str()))
        .map(|name| {
            let meant = closest_name(&name, known_variables.iter().map(String::as_str));
            let meant = meant.map_or("see `run --help`".into(), |meant| format!("is {meant} meant?"));
            format!("the variable {name} is not an option of `run` and has no effect; {meant}")
        })
        .collect();
    unknown.sort();
    unknown
}

/// Returns the known name with the smallest edit distance, if that is at most a third of the name and [`CHANGES_MAX`].
pub(super) fn closest_name<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let best = candidates.map(|candidate| (edit_distance(name, candidate), candidate)).min()?;
    let length = name.strip_prefix(PREFIX).unwrap_or(name).len();
    (best.0 <= CHANGES_MAX.min(length.div_ceil(3))).then_some(best.1)
}

/// Returns the number of bytes to add, remove or change (Levenshtein).
fn edit_distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, other) in to.bytes().enumerate() {
            let changed = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

/// Returns a hint at the variable or the file that a rejected value comes from, or `None` if it was typed or its origin
/// is unknown.
///
/// `is_set` returns `true` if an environment variable of that name exists.
pub(super) fn origin(
    command: &Command,
    rejected: &clap::Error,
    typed: &[OsString],
    is_set: impl Fn(&str) -> bool,
) -> Option<String> {
    let Some(ContextValue::String(arg)) = rejected.get(ContextKind::InvalidArg) else { return None };
    let name: String = arg.strip_prefix("--")?.chars().take_while(|c| *c == '-' || c.is_ascii_lowercase()).collect();
    let run = command.find_subcommand(RUN)?;
    if is_typed(run, typed, &name) {
        return None;
    }
    let variable = variable(&name);
    if is_set(&variable) {
        return Some(format!("help: the value is from the variable {variable}"));
    }
    let has_file = is_typed(run, typed, "config") || is_set(&self::variable("config"));
    has_file.then(|| format!("help: the value is from the line `{name}:` in the file of --config"))
}

/// Returns a hint at the options that the environment and the file set, for an error about several options.
///
/// clap names options that contradict each other, or that require another option, but not their origin.
///
/// `all` are the typed arguments and the arguments from the file.
pub(super) fn set_elsewhere(
    command: &Command,
    rejected: &clap::Error,
    typed: &[OsString],
    all: &[OsString],
    is_set: impl Fn(&str) -> bool,
) -> Option<String> {
    let is_about_several = match rejected.kind() {
        ErrorKind::ArgumentConflict | ErrorKind::MissingRequiredArgument => true,
        // The program's check of the options names them in its message.
        kind => kind == ErrorKind::ValueValidation && rejected.get(ContextKind::InvalidArg).is_none(),
    };
    let is_run = all.get(1).is_some_and(|first| first == RUN);
    let run = command.find_subcommand(RUN).filter(|_| is_about_several && is_run)?;
    let names = || {
        let names = run.get_arguments().filter_map(Arg::get_long).filter(|name| *name != "config");
        names.filter(move |name| !is_typed(run, typed, name))
    };
    let environment_variables = names().map(variable).filter(|name| is_set(name));
    let file_keys =
        names().filter(|name| is_typed(run, all, name)).map(|name| format!("`{name}:` in the file of --config"));
    let set: Vec<String> = environment_variables.chain(file_keys).collect();
    (!set.is_empty()).then(|| format!("help: options that are set elsewhere: {}", set.join(", ")))
}

/// Returns `true` if the arguments have an option, as `--name`, `--name=value`, `-n value` or `-nvalue`.
fn is_typed(run: &Command, typed: &[OsString], name: &str) -> bool {
    let short = run.get_arguments().find(|arg| arg.get_long() == Some(name)).and_then(Arg::get_short);
    let is_long = |text: &str| text.strip_prefix("--").and_then(|text| text.strip_prefix(name)).is_some_and(is_end);
    let is_short =
        |text: &str| short.is_some_and(|short| text.strip_prefix('-').is_some_and(|text| text.starts_with(short)));
    typed.iter().filter_map(|typed| typed.to_str()).any(|text| is_long(text) || is_short(text))
}

/// Returns `true` if the name of an option ends here: its value follows, or the next argument.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('=')
}

/// Returns `true` if a flag or the environment sets an option.
fn is_set(matches: &ArgMatches, arg: &Arg) -> bool {
    let source =
        matches.try_contains_id(arg.get_id().as_str()).ok().and_then(|_| matches.value_source(arg.get_id().as_str()));
    matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
}

/// Reads the file of `--config`.
fn read(file: &Path) -> Result<Map<String, Value>> {
    let length = std::fs::metadata(file).context(format!("--config {}", file.display()))?.len();
    if length > FILE_LEN_MAX {
        return Err(Error::from(format!("--config {}: longer than {FILE_LEN_MAX} bytes", file.display())));
    }
    // Devices and pipes report a length of 0, so the bound is checked again while reading.
    let mut text = String::new();
    let opened = std::fs::File::open(file).context(format!("--config {}", file.display()))?;
    let len =
        opened.take(FILE_LEN_MAX + 1).read_to_string(&mut text).context(format!("--config {}", file.display()))?;
    if len as u64 > FILE_LEN_MAX {
        return Err(Error::from(format!("--config {}: longer than {FILE_LEN_MAX} bytes", file.display())));
    }
    if text.lines().all(|line| line.trim_start().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Map::new());
    }
    serde_saphyr::from_str(&text)
        .map_err(|error| Error::from(format!("--config {}: {}", file.display(), yaml_problem(error.without_snippet()))))
}

/// Returns the problem of a file that can't be parsed, in one line. The messages of the parser name its functions.
fn yaml_problem(error: &serde_saphyr::Error) -> String {
    match error {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), location } => {
            format!("`{key}` is set twice, the second time in line {}; remove one of the lines", location.line())
        }
        serde_saphyr::Error::MultipleDocuments { .. } => {
            "several documents; write all options into one, without a line `---` between them".to_owned()
        }
        other => {
            let text = other.to_string();
            format!("not a list of `option: value`: {}", text.lines().next().unwrap_or_default())
        }
    }
}

/// Returns a value of the file as flags; `None` if it does not fit the option.
fn flags(arg: &Arg, key: &str, value: &Value) -> Option<Vec<OsString>> {
    let flag = |text: String| OsString::from(format!("--{key}={text}"));
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is) => Some(is.to_string()),
        _ => None,
    };
    match (arg.get_action(), value) {
        (ArgAction::Append, Value::Array(values)) => values.iter().map(|value| text(value).map(flag)).collect(),
        (_, value) => Some(vec![flag(text(value)?)]),
    }
}

/// Returns the error for a value that the option can't have, such as a list for a single value.
fn invalid_value(file: &Path, key: &str, value: &Value) -> Error {
    Error::from(format!(
        "--config {}: `{key}: {value}` is not a valid value of --{key}; see `run --help`",
        file.display()
    ))
}

/// Returns the error for an option that does not exist, with the nearest name or all of them.
fn unknown_option(file: &Path, key: &str, options: &Command) -> Error {
    let names: Vec<&str> = options.get_arguments().filter_map(Arg::get_long).filter(|name| *name != "config").collect();
    let meant = match closest_name(key, names.iter().copied()) {
        Some(meant) => format!("is `{meant}` meant?"),
        None => format!("there are {}", names.join(", ")),
    };
    Error::from(format!("--config {}: there is no option `{key}`; {meant}", file.display()))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn command() -> Command {
        with_environment(plain())
    }

    fn plain() -> Command {
        Command::new("app").subcommand(
            Command::new(RUN)
                .arg(Arg::new("config").long("config").value_parser(clap::value_parser!(PathBuf)))
                .arg(Arg::new("address").long("address"))
                .arg(Arg::new("needs").long("needs").requires("address"))
                .arg(Arg::new("wait").long("wait").default_value("1s"))
                .arg(Arg::new("elect").long("elect").action(ArgAction::SetTrue))
                .arg(Arg::new("namespace").long("namespace").short('n').action(ArgAction::Append)),
        )
    }

    /// The flags that come from a file of this text.
    fn check(text: &str, flags: &[&str]) -> Result<Vec<String>, String> {
        static N_FILES: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = N_FILES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let file = std::env::temp_dir().join(format!("kctl-settings-{}-{number}.yaml", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let config = format!("--config={}", file.display());
        let all: Vec<OsString> = ["app", RUN, &config].iter().chain(flags).map(OsString::from).collect();
        let result = arguments(&command(), all.clone());
        std::fs::remove_file(&file).unwrap();
        let more = result.map_err(|error| format!("{error:#}").replace(&file.display().to_string(), "FILE"))?;
        assert!(command().try_get_matches_from(&more).is_ok() || flags.contains(&"--broken"), "{more:?}");
        Ok(more[all.len()..].iter().map(|flag| flag.to_str().unwrap().to_owned()).collect())
    }

    #[test]
    fn options_without_flags_come_from_the_file() {
        let cases: [(&str, &[&str], &[&str]); 10] = [
            ("address: :8080", &[], &["--address=:8080"]),
            ("address: :8080", &["--address=:1"], &[]),
            ("wait: 5", &[], &["--wait=5"]),
            ("elect: true", &[], &["--elect=true"]),
            ("elect: false", &[], &["--elect=false"]),
            ("elect: true", &["--elect=false"], &[]),
            ("namespace: [a, b]", &[], &["--namespace=a", "--namespace=b"]),
            ("namespace: [a, b]", &["--namespace=c"], &[]),
            ("address: :8080\nneeds: it", &[], &["--address=:8080", "--needs=it"]),
            ("# nothing\n", &[], &[]),
        ];
        for (text, flags, expected) in cases {
            assert_eq!(check(text, flags).unwrap(), expected, "{text}");
        }
        assert_eq!(
            check("address: :8080", &["--needs=it"]).unwrap(),
            ["--address=:8080"],
            "what a flag needs may be there"
        );
    }

    #[test]
    fn options_of_the_file_precede_a_separator() {
        let file = std::env::temp_dir().join(format!("kctl-settings-{}-separator.yaml", std::process::id()));
        std::fs::write(&file, "address: :8080\nelect: true\n").unwrap();
        let config = format!("--config={}", file.display());
        let typed = ["app", RUN, &config, "--"].map(OsString::from).to_vec();
        let all = arguments(&command(), typed).unwrap();
        assert_eq!(all[3..], ["--address=:8080", "--elect=true", "--"]);
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn arguments_without_a_command_go_to_run() {
        for (line, expected) in [
            ("app", "app run"),
            ("app --", "app run"),
            ("app --elect --address=:1", "app run --elect --address=:1"),
            ("app -- --elect", "app run --elect"),
            ("app -- dev -f a.yaml", "app dev -f a.yaml"),
            ("app run -- --elect", "app run -- --elect"),
            ("app --help", "app --help"),
            ("app -- --version", "app --version"),
            ("app unknown", "app unknown"),
        ] {
            let typed = line.split(' ').map(OsString::from).collect();
            let expected: Vec<OsString> = expected.split(' ').map(OsString::from).collect();
            assert_eq!(arguments(&command(), typed).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn last_of_repeated_options_wins() {
        let run =
            ["app", RUN, "--address=:1", "--elect", "--namespace=a", "--address=:2", "--elect=false", "--namespace=b"];
        let matches = command().try_get_matches_from(run).unwrap();
        let run = matches.subcommand_matches(RUN).unwrap();
        assert_eq!(run.get_one::<String>("address").unwrap(), ":2");
        assert_eq!(run.get_one::<bool>("elect"), Some(&false));
        assert_eq!(run.get_many::<String>("namespace").unwrap().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn errors_in_the_file_are_named() {
        let cases = [
            ("adress: :8080", "--config FILE: there is no option `adress`; is `address` meant?"),
            (
                "leadership: true",
                "--config FILE: there is no option `leadership`; there are address, needs, wait, elect, namespace",
            ),
            ("config: other", "--config FILE: there is no option `config`"),
            ("elect: [true]", "--config FILE: `elect: [true]` is not a valid value of --elect"),
            ("address: [a]", "--config FILE: `address: [\"a\"]` is not a valid value of --address"),
            ("address: null", "--config FILE: `address: null` is not a valid value of --address"),
            ("namespace: { a: b }", "--config FILE: `namespace: {\"a\":\"b\"}` is not a valid value"),
            ("- a", "--config FILE: not a list of `option: value`"),
            (
                "elect: true\nelect: false\n",
                "--config FILE: `elect` is set twice, the second time in line 2; remove one",
            ),
            ("elect: true\n---\nelect: false\n", "--config FILE: several documents; write all options into one"),
        ];
        for (text, expected) in cases {
            let error = check(text, &[]).unwrap_err();
            assert!(error.starts_with(expected) && error.lines().count() == 1, "{text}: {error}");
        }
        let missing = ["app", RUN, "--config=/nowhere.yaml"].map(OsString::from).to_vec();
        assert!(arguments(&command(), missing).unwrap_err().to_string().starts_with("--config /nowhere.yaml"));
    }

    #[test]
    fn rejected_value_is_found_at_its_line() {
        let number = || Arg::new("wait-for").long("wait-for").short('w').value_parser(clap::value_parser!(u32));
        let with_number = || command().mut_subcommand(RUN, |run| run.arg(number()));
        let origin = |typed: &[&str], more: &[&str], is_set: bool| {
            let typed: Vec<_> = typed.iter().map(OsString::from).collect();
            let all = typed.iter().cloned().chain(more.iter().map(OsString::from));
            let error = with_number().try_get_matches_from(all).unwrap_err();
            origin(&with_number(), &error, &typed, |name| is_set && name == "KCTL_WAIT_FOR")
        };
        let config = "--config=web.yaml";
        let file = Some("help: the value is from the line `wait-for:` in the file of --config".to_owned());
        let environment = Some("help: the value is from the variable KCTL_WAIT_FOR".to_owned());
        assert_eq!(origin(&["app", RUN, config], &["--wait-for=5x"], false), file);
        assert_eq!(origin(&["app", RUN], &["--wait-for=5x"], false), None);
        assert_eq!(origin(&["app", RUN], &["--wait-for=5x"], true), environment);
        for typed in [
            &["app", RUN, "--wait-for=5x"][..],
            &["app", RUN, "--wait-for", "5x"],
            &["app", RUN, config, "-w", "5x"],
            &["app", RUN, config, "-w5x"],
        ] {
            assert_eq!(origin(typed, &[], true), None);
        }
        assert_eq!(origin(&["app", RUN, "--elect=5"], &[], true), None);
        assert_eq!(
            origin(&["app", RUN, config], &["--elect=5"], false),
            Some("help: the value is from the line `elect:` in the file of --config".into())
        );
    }

    #[test]
    fn options_set_elsewhere_are_named() {
        let hint = |typed: &[&str], more: &[&str], is_set: bool| {
            let typed: Vec<_> = typed.iter().map(OsString::from).collect();
            let all: Vec<_> = typed.iter().cloned().chain(more.iter().map(OsString::from)).collect();
            let error = command().error(ErrorKind::MissingRequiredArgument, "--address is missing");
            set_elsewhere(&command(), &error, &typed, &all, |name| is_set && name == "KCTL_NEEDS")
        };
        let begin = "help: options that are set elsewhere: ";
        assert_eq!(hint(&["app", RUN], &[], true), Some(format!("{begin}KCTL_NEEDS")));
        let config = "--config=web.yaml";
        assert_eq!(
            hint(&["app", RUN, config], &["--needs=it"], false),
            Some(format!("{begin}`needs:` in the file of --config"))
        );
        assert_eq!(hint(&["app", RUN, "--needs=it"], &[], true), None);
        assert_eq!(hint(&["app", "dev"], &[], true), None);
        let wrong = command().error(ErrorKind::InvalidValue, "5x");
        assert_eq!(set_elsewhere(&command(), &wrong, &[], &["app", RUN].map(OsString::from), |_name| true), None);
    }

    #[test]
    fn every_option_of_run_has_an_environment_variable() {
        let with = with_environment(plain());
        let run = with.find_subcommand(RUN).unwrap();
        for arg in run.get_arguments().filter(|arg| arg.get_long().is_some_and(|long| long != "help")) {
            assert_eq!(arg.get_env().unwrap().to_str().unwrap(), variable(arg.get_long().unwrap()));
        }
        assert_eq!(variable("leader-elect"), "KCTL_LEADER_ELECT");
    }

    #[test]
    fn unknown_variables_are_reported_with_a_suggestion() {
        let set = [
            "KCTL_ADDRESS",
            "KCTL_ADRESS",
            "KCTL_FOO",
            "KCTL_NAMESPACES",
            "KCTL_SOMETHING",
            "KCTL_SEEDS",
            "KCTL_SIM_SECONDS",
            "KCTL_TEST_STUCK_SECONDS",
            "KCTL_TWICE",
            "KCTL_ADDRESS_SERVICE_HOST",
            "KCTL_WEB_PORT_443_TCP",
            "ADRESS",
            "HOME",
        ];
        let reported = misspelt(&command(), set.iter().map(|name| (*name).to_owned()));
        let begin = "the variable KCTL_";
        let expected = [
            "ADRESS is not an option of `run` and has no effect; is KCTL_ADDRESS meant?",
            "FOO is not an option of `run` and has no effect; see `run --help`",
            "NAMESPACES is not an option of `run` and has no effect; is KCTL_NAMESPACE meant?",
            "SOMETHING is not an option of `run` and has no effect; see `run --help`",
        ];
        assert_eq!(reported, expected.map(|end| format!("{begin}{end}")));
    }

    #[test]
    fn distance_is_the_number_of_letters_that_differ() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("abc", "axc", 1),
            ("abc", "ac", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!((edit_distance(from, to), edit_distance(to, from)), (expected, expected), "{from} {to}");
        }
    }

    #[test]
    fn without_a_command_it_is_run() {
        let of = |flags: &[&str]| arguments(&command(), flags.iter().map(OsString::from).collect()).unwrap();
        assert_eq!(of(&["app"]), ["app", "run"]);
        assert_eq!(of(&["app", "run", "--elect"]), ["app", "run", "--elect"]);
        assert_eq!(of(&["app", "--help"]), ["app", "--help"]);
    }
}
