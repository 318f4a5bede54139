//! Commands and flags in the README and the book exist: each command line is compared with `--help`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::build::{programs, run};

/// With fewer command lines than this, the search for them is broken.
const LINES_LEN_MIN: usize = 30;

#[test]
fn commands_and_flags_of_the_book_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut helps = BTreeMap::new();
    let (mut n_lines, mut wrong) = (0, Vec::new());
    for page in pages(&root) {
        for line in command_lines(&fs::read_to_string(&page).unwrap()) {
            let Some((program, words)) = program_of(&line) else { continue };
            n_lines += 1;
            if let Err(error) = check(program, &words, &mut helps) {
                wrong.push(format!("{}: `{line}`: {error}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_lines >= LINES_LEN_MIN, "only {n_lines} command lines were found");
}

fn pages(root: &Path) -> Vec<PathBuf> {
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in [root.join("guide"), root.join("guide/recipes")] {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(files.filter(|file| file.extension().is_some_and(|extension| extension == "md")));
    }
    pages
}

/// Returns the lines of `sh` blocks, lines that are indented by four spaces, and code spans.
fn command_lines(text: &str) -> Vec<String> {
    let (mut lines, mut block) = (Vec::new(), None);
    for line in text.lines() {
        match block {
            None if line.starts_with("```") => block = Some(line == "```sh"),
            None => {
                lines.extend(line.strip_prefix("    ").map(str::to_owned));
                lines.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
            }
            Some(_) if line == "```" => block = None,
            Some(true) => lines.push(line.to_owned()),
            Some(false) => {}
        }
    }
    lines
}

/// Returns the program that a line starts, and the words after it. Placeholders (`…`) end a line.
fn program_of(line: &str) -> Option<(&'static str, Vec<String>)> {
    let line = line.split(" # ").next()?.split(['|', '…', ';']).next()?.split(" && ").next()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let program = match words.next()?.as_str() {
        "kctl" => "kctl",
        "my-controller" => "website",
        "cargo" if words.next()? == "run" => {
            let mut package = "website";
            while let Some(word) = words.next() {
                match word.as_str() {
                    "--" => break,
                    "-p" => package = package_of(&words.next()?)?,
                    _ => {}
                }
            }
            package
        }
        _ => return None,
    };
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then_some((program, words))
}

fn package_of(name: &str) -> Option<&'static str> {
    ["multicluster", "podset", "quickstart", "website", "workload-interpreter"]
        .into_iter()
        .find(|known| *known == name)
        .or_else(|| (name == "kctl-cli").then_some("kctl"))
}

fn check(
    program: &'static str,
    words: &[String],
    helps: &mut BTreeMap<(String, String), String>,
) -> Result<(), String> {
    // A program runs if no command is given.
    let command = words.first().filter(|word| !word.starts_with('-')).map_or("run", String::as_str);
    let main = helps.entry((program.into(), String::new())).or_insert_with(|| help(program, None));
    if !main.lines().any(|line| line.split_whitespace().next() == Some(command)) {
        return Err(format!("`{program}` has no command `{command}`"));
    }
    let help = helps.entry((program.into(), command.into())).or_insert_with(|| help(program, Some(command)));
    let flags: Vec<&str> = help.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-')).collect();
    for word in words.iter().filter(|word| word.starts_with('-') && word.len() > 1) {
        let flag = word.split('=').next().unwrap_or(word).trim_end_matches([',', '.', ')', ':']);
        if !flags.contains(&flag) {
            return Err(format!("`{program} {command}` has no flag `{flag}`"));
        }
    }
    Ok(())
}

fn help(program: &str, command: Option<&str>) -> String {
    run(Command::new(programs().join(program)).args(command).arg("--help").env("COLUMNS", "200"))
}

#[test]
fn wrong_commands_and_flags_are_found() {
    let mut helps = BTreeMap::new();
    let mut error = |line: &str| {
        let (program, words) = program_of(line).unwrap();
        check(program, &words, &mut helps).unwrap_err()
    };
    assert_eq!(error("kctl init web-site"), "`kctl` has no command `init`");
    assert_eq!(error("cargo run -- dev --until-ready"), "`website dev` has no flag `--until-ready`");
    assert_eq!(
        error("cargo run -p quickstart -- generate-crd | kubectl apply -f -"),
        "`quickstart` has no command `generate-crd`"
    );
}
