//! Shell completions, man pages and the version of the tool.

use std::process::{Command, Output};

/// The commands of the tool, as `kctl --help` lists them.
const COMMANDS: [&str; 7] = ["apiserver", "kubelet", "interpret", "new", "add", "completions", "man"];

fn kctl(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kctl")).args(arguments).output().unwrap()
}

fn run_kctl(arguments: &[&str]) -> String {
    let output = kctl(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn version_flag_prints_the_package_version() {
    assert_eq!(run_kctl(&["--version"]), format!("kctl {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_lists_exactly_the_checked_commands() {
    let help = run_kctl(&["--help"]);
    let (_usage, list) = help.split_once("Commands:\n").unwrap();
    let listed = list.lines().map_while(|line| line.split_whitespace().next());
    assert_eq!(listed.collect::<Vec<_>>(), COMMANDS);
}

#[test]
fn every_shell_gets_completions_of_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run_kctl(&["completions", shell]);
        // `add` and `man` are parts of other words.
        let words: Vec<&str> = script.split(|c: char| !c.is_alphanumeric()).collect();
        for command in COMMANDS {
            assert!(words.contains(&command), "{shell}: {command}");
        }
    }
}

#[test]
fn closed_reader_is_not_a_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_kctl")).args(["completions", "bash"]).stdout(writer).output();
    let output = output.unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn man_pages_are_written_for_every_command() {
    let dir = std::env::temp_dir().join(format!("kctl-man-{}", std::process::id()));
    run_kctl(&["man", dir.to_str().unwrap()]);
    let command_pages = COMMANDS.iter().map(|command| format!("kctl-{command}.1"));
    // `kctl add` has subcommands.
    let add_pages = ["controller", "webhook", "version"].map(|command| format!("kctl-add-{command}.1"));
    let mut expected: Vec<String> = command_pages.chain(add_pages).chain(["kctl.1".to_owned()]).collect();
    expected.sort();
    let pages = std::fs::read_dir(&dir).unwrap().map(|page| page.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<String> = pages.collect();
    pages.sort();
    assert_eq!(pages, expected);
    for page in pages {
        let text = std::fs::read_to_string(dir.join(&page)).unwrap();
        assert!(text.contains(".SH DESCRIPTION"), "{page}: {text}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn folder_that_cannot_be_created_is_an_error() {
    let file = std::env::temp_dir().join(format!("kctl-man-file-{}", std::process::id()));
    std::fs::write(&file, "").unwrap();
    let output = kctl(&["man", file.join("man1").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("kctl: failed to write man pages to "), "{error}");
    std::fs::remove_file(&file).unwrap();
}
