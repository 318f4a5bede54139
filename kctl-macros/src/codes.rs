//! The error codes of kctl: a number and a short title each, as in the book (`guide/errors.md`).
//!
//! The first table has the codes that the attributes of this crate report. The second one has those
//! of other crates. They stand there as literals, because `#[diagnostic::on_unimplemented]` takes
//! no constants.

use std::fmt;

/// The code of a compile error. It is displayed as in the book: `K0042`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(u16);

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "K{:04}", self.0)
    }
}

/// Defines a constant for each code, and for the tests a table of names, codes and titles.
macro_rules! codes {
    ($($name:ident = $number:literal, $title:literal;)*) => {
        $(
            #[doc = $title]
            pub(crate) const $name: Code = Code($number);
        )*
        #[cfg(test)]
        const OF_ATTRIBUTES: &[(&str, Code, &str)] = &[$((stringify!($name), $name, $title)),*];
    };
}

codes! {
    NOT_ON_A_CONTROLLER = 1, "`#[controller]` goes on a function or a struct";
    OF_ON_A_FUNCTION = 2, "the kind of a function is the type of its first parameter";
    NOT_ASYNC = 3, "a reconcile function must be `async`";
    GENERIC_CONTROLLER_OR_KIND = 4, "a controller or a kind can't be generic";
    NOT_A_RESULT_OF_ACTION = 5, "a reconcile function returns `Result<Action>`";
    NOT_TWO_PARAMETERS = 6, "a reconcile function has two parameters";
    NOT_A_CONTEXT = 7, "the second parameter is the controller's `Context`";
    NOT_AN_ARC = 8, "the first parameter must be `Arc<Kind>`";
    MISSING_OF = 9, "a controller struct needs `of = Kind`";
    MISSING_VALUE = 10, "an option needs a value";
    UNKNOWN_OPTION = 11, "`#[controller]` has no such option";
    NOT_A_KIND_NAME = 12, "a relation names a kind";
    NEITHER_VERB_NOR_OPTION = 13, "neither a verb nor an option";
    MISSING_MAPPER = 14, "a watched kind needs a mapper";
    UNKNOWN_VERB = 15, "no such verb";
    UNKNOWN_RELATION_OPTION = 16, "a relation has no such option";
    INVALID_FINALIZER = 17, "not a valid finalizer name";
    INVALID_NUMBER = 18, "a number is wrong";
    INVALID_BACKOFF = 19, "`backoff` is written `backoff(\"5ms\", max = \"1000s\")`";
    INVALID_DURATION = 20, "not a duration";
    DUPLICATE_KIND = 21, "a kind is declared twice";
    DUPLICATE = 22, "given twice";
    FUNCTION_WITH_FINALIZER = 23, "a function can't clean up";
    SYNTAX = 24, "the attribute can't be read";
    FORM_OF_ANOTHER_OPTION = 25, "an option in the form of another one";
    STRING_OR_FUNCTION = 26, "a string, or a function";
    NAMESPACES_NOT_A_LIST = 27, "`namespaces` is a list";
    WITHOUT_EFFECT = 28, "an option that would have no effect";
    SCHEMA_WITH_OPTIONS = 29, "`#[schema]` takes no options";
    NOT_A_KIND = 30, "not a Kubernetes kind";
    OWNED_ON_ANOTHER_CLUSTER = 41, "an owned object is in the cluster of its owner";
    INCOMPLETE_KIND = 43, "a kind has a group, a version and a name";
    NOT_A_STRING = 44, "a string in quotes";
    UNKNOWN_RESOURCE_OPTION = 45, "`#[resource]` has no such option";
    PART_OF_AN_OBJECT = 49, "a part where the whole is needed";
    NOT_ON_AN_INTERPRETER = 50, "`#[interpreter]` goes on a function";
    MISSING_OPERATION = 51, "an interpreter needs its operation";
    UNKNOWN_OPERATION = 52, "no such operation";
    UNKNOWN_INTERPRETER_OPTION = 53, "`#[interpreter]` has no such option";
    NUMBER_OF_PARAMETERS = 54, "an operation has its number of parameters";
    OBJECT_NOT_BORROWED = 55, "the object is borrowed";
    INVALID_SECOND_PARAMETER = 56, "the second parameter does not fit the operation";
    GENERIC_INTERPRETER = 57, "an interpreter can't be generic";
    NOT_AN_ANSWER = 58, "not an answer of the operation";
    NOT_A_VIEW = 73, "not a view";
    NOT_A_PATH = 74, "not a path";
    UNKNOWN_MARK = 80, "no such mark";
    DUPLICATE_MARK = 81, "a duplicate mark or value";
    INVALID_BOUND = 82, "a bound is a number";
    UNKNOWN_WORD = 83, "not one of the words";
    EMPTY_LIST = 84, "nothing is named";
    LIST_MAP_WITHOUT_KEYS = 85, "a list that is a map needs its keys";
    EMPTY_RULE = 86, "a rule without an expression";
    CONTRADICTING_MARKS = 87, "marks contradict each other";
    FORBIDDEN_DEFAULT = 88, "a default that its own field forbids";
    CONVERSION_WITHOUT_ADDRESS = 89, "a conversion webhook without an address";
    PART_WITHOUT_SCHEMA = 90, "a part without `#[schema]`";
    NOT_ON_AN_ADMISSION = 100, "`#[admission]` goes on a function";
    NEITHER_VALIDATES_NOR_MUTATES = 101, "an admission function validates or mutates";
    UNKNOWN_ADMISSION_OPTION = 102, "unknown option of an admission function";
    ADMISSION_PARAMETERS = 103, "parameters of an admission function";
    INVALID_ADMISSION_VALUE = 104, "value of an option of an admission function";
    CONTRADICTING_OPTIONS = 106, "options that contradict each other";
    GENERIC_FUNCTION = 107, "generic functions have no kind";
    NOT_ON_A_CONVERSION = 111, "`#[conversion]` goes on a function";
    CONVERSION_SIGNATURE = 112, "parameter and result of a conversion";
    STRUCT_NAMED_AS_ITS_KIND = 117, "the struct has the name of its kind";
    TYPE_NOT_STORABLE = 118, "a type that no object can store";
    WRONG_FUNCTION = 119, "a function of another form";
}

/// Codes that only other crates report, with their titles.
#[cfg(test)]
const OF_OTHER_CRATES: &[(u16, &str)] = &[
    (31, "an owner in a namespace owns nothing outside of it"),
    (32, "the kind has no status"),
    (33, "not a controller"),
    (34, "a controller has no `reconcile`"),
    (35, "a finalizer without `finalize`"),
    (36, "a `finalize` without a finalizer"),
    (37, "a struct has to be made"),
    (38, "a verb that is not declared"),
    (39, "a kind that is not declared"),
    (40, "a kind that is not read live"),
    (42, "not a cluster"),
    (46, "a client without rules"),
    (47, "more than what is cached"),
    (59, "not an interpreter"),
    (60, "Prune can't be served as a webhook"),
    (70, "two functions for one operation and kind"),
    (71, "not a view of this kind"),
    (72, "a field of another type"),
    (105, "an invalid selector"),
    (108, "not an admission function"),
    (109, "two functions for one kind"),
    (110, "result of an admission function"),
    (113, "a version without a conversion"),
    (114, "two conversions for the same"),
    (115, "not a conversion"),
    (116, "an operation where it is not"),
    (120, "a store is asked by key"),
];

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
        path::{Path, PathBuf},
    };

    use super::*;

    /// All codes with their titles, as the book names them.
    fn titles() -> BTreeMap<String, &'static str> {
        let of_attributes = OF_ATTRIBUTES.iter().map(|(_, code, title)| (code.to_string(), *title));
        let of_others = OF_OTHER_CRATES.iter().map(|(number, title)| (Code(*number).to_string(), *title));
        of_attributes.chain(of_others).collect()
    }

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    /// The paths and contents of the Rust files in the `src` folders of all crates, without this file.
    fn sources() -> Vec<(String, String)> {
        let crates = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
        let mut folders: Vec<_> = crates.map(|folder| folder.join("src")).filter(|folder| folder.is_dir()).collect();
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs")
                    && !path.ends_with("kctl-macros/src/codes.rs")
                {
                    let name = path.strip_prefix(root()).unwrap().display().to_string();
                    files.push((name, fs::read_to_string(path).unwrap()));
                }
            }
        }
        assert!(files.len() > 500, "{} files", files.len());
        files
    }

    /// The codes in strings of a source file, in the form that users read: `code: K0042`.
    fn literals(text: &str) -> impl Iterator<Item = &str> {
        text.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(literals_of_line)
    }

    fn literals_of_line(text: &str) -> impl Iterator<Item = &str> {
        let starts = text.match_indices("code: K").map(|(at, label)| at + label.len() - 1);
        starts.filter_map(|at| text.get(at..at + 5)).filter(|code| code[1..].parse::<u16>().is_ok())
    }

    #[test]
    fn numbers_and_names_are_unique_and_sorted() {
        assert!(OF_ATTRIBUTES.is_sorted_by(|(_, one, _), (_, next, _)| one.0 < next.0));
        assert!(OF_OTHER_CRATES.is_sorted_by(|(one, _), (next, _)| one < next));
        assert_eq!(titles().len(), OF_ATTRIBUTES.len() + OF_OTHER_CRATES.len(), "no code is in both tables");
    }

    #[test]
    fn every_code_is_a_section_of_the_book() {
        let book = fs::read_to_string(root().join("guide/errors.md")).unwrap();
        let sections = book.lines().filter_map(|line| line.strip_prefix("## "));
        let sections: BTreeMap<_, _> = sections
            .map(|title| title.split_once(": ").map(|(code, title)| (code.to_owned(), title)).unwrap())
            .collect();
        assert_eq!(titles(), sections, "codes.rs and guide/errors.md have the same codes with the same titles");
    }

    #[test]
    fn every_code_is_reported() {
        let sources = sources();
        let all: BTreeSet<_> = sources.iter().flat_map(|(_, text)| literals(text)).collect();
        let unused = |name: &&str| !sources.iter().any(|(_, text)| uses(text, name));
        let unused: Vec<_> = OF_ATTRIBUTES.iter().map(|(name, ..)| *name).filter(unused).collect();
        assert!(unused.is_empty(), "no attribute reports {unused:?}: remove them, also from the book");
        for (number, title) in OF_OTHER_CRATES {
            let code = Code(*number).to_string();
            assert!(all.contains(code.as_str()), "no crate reports {code} ({title}): remove it, also from the book");
        }
    }

    /// Returns `true` if a source file has the constant. One whose name only begins the same does not count.
    fn uses(text: &str, name: &str) -> bool {
        let path = format!("codes::{name}");
        let is_whole = |rest: &str| !rest.starts_with(|next: char| next == '_' || next.is_alphanumeric());
        text.match_indices(&path).any(|(at, _)| is_whole(&text[at + path.len()..]))
    }

    #[test]
    fn every_reported_code_is_known() {
        let known = titles();
        for (path, text) in sources() {
            for code in literals(&text) {
                assert!(known.contains_key(code), "{path} reports {code}, which is not in codes.rs");
            }
            let is_test = path.ends_with("controller/check/relation.rs");
            assert!(
                !path.starts_with("kctl-macros/") || is_test || literals(&text).next().is_none(),
                "{path} has a code as a literal: use the constant of codes.rs"
            );
        }
    }
}
