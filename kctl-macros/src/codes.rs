//! The error codes of kctl: a number and a short title each, as in the book (`guide/errors.md`).
//!
//! The first table has the codes that the attributes of this crate report, each with its reason. The second one has the
//! codes of other crates. They are written there as literals, because `#[diagnostic::on_unimplemented]` takes no
//! constants.
//!
//! A code is never reused: people search for it, and old answers must remain right. A new error takes the highest code of
//! both tables plus one, a case in `tests/ui` (its `README.md` lists the cases of each code), and a section in the book.

use std::fmt;

/// The code of a compile error. It is displayed as in the book: `K0042`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(u16);

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "K{:04}", self.0)
    }
}

/// Defines a constant for each code, and for the tests a table of names, codes and titles. The doc of a constant is
/// the title from the book, then the reason.
macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $number:literal, $title:literal;)*) => {
        $(
            #[doc = $title]
            #[doc = ""]
            $(#[doc = $doc])*
            pub(crate) const $name: Code = Code($number);
        )*
        /// Names, codes and titles of all constants.
        #[cfg_attr(not(test), expect(dead_code, reason = "only tests compare titles with the book"))]
        const ATTRIBUTE_CODES: &[(&str, Code, &str)] = &[$((stringify!($name), $name, $title)),*];
    };
}

codes! {
    /// The item is a method, an `impl`, an enum or another item: `controller/check/item.rs` and `check::check`.
    NOT_ON_A_CONTROLLER = 1, "`#[controller]` must be applied to a function or a struct";
    /// `of` is an option of the struct form. A function has the kind in its first parameter.
    OF_ON_A_FUNCTION = 2, "the kind of a function is the type of its first parameter";
    /// Reported at `fn`, because `async` is missing there.
    NOT_ASYNC = 3, "a reconcile function must be `async`";
    /// Name, role and CRD are static, so neither a controller nor a kind has type parameters.
    GENERIC_CONTROLLER_OR_KIND = 4, "a controller or a kind can't be generic";
    /// The macro reports a missing return type; the trait `Outcome` of the runtime reports another type with the same
    /// code.
    NOT_A_RESULT_OF_ACTION = 5, "a reconcile function returns `Result<Action>`";
    /// A parameter is missing or superfluous, or the two are swapped.
    NOT_TWO_PARAMETERS = 6, "a reconcile function has two parameters";
    /// The second parameter is not a `Context`, or the `Context` of another controller, of the kind or of its spec.
    NOT_A_CONTEXT = 7, "the second parameter is the controller's `Context`";
    /// Objects are shared with the cache, so a reference or a value can't be the first parameter.
    NOT_AN_ARC = 8, "the first parameter must be `Arc<Kind>`";
    /// A struct has no parameter that could name the kind.
    MISSING_OF = 9, "a controller struct needs `of = Kind`";
    /// `name =` and `name` alone, for an option that needs a value; and a `crate` that is not a path.
    MISSING_VALUE = 10, "an option needs a value";
    /// Options of `#[controller]` and `#[view]`. The other attributes have their own codes.
    UNKNOWN_OPTION = 11, "`#[controller]` or `#[view]` has no such option";
    /// The value of `owns`, `watches` or `reads` is missing, a list, a string or a reference.
    NOT_A_KIND_NAME = 12, "a relation names a kind";
    /// An entry in the parentheses of a kind has the wrong form, or is a flag of another relation.
    NEITHER_VERB_NOR_OPTION = 13, "the parentheses of a kind contain verbs, options and flags";
    /// Without `map`, nothing says which primaries a change of a watched object concerns.
    MISSING_MAPPER = 14, "a watched kind needs a mapper";
    /// Also for wildcards: a role lists its verbs.
    UNKNOWN_VERB = 15, "no such verb";
    /// The options in the parentheses of a kind are the variants of `RelationOption`.
    UNKNOWN_RELATION_OPTION = 16, "a relation has no such option";
    /// API servers require a qualified name: `IsQualifiedName` in `k8s.io/apimachinery`.
    INVALID_FINALIZER = 17, "not a valid finalizer name";
    /// A string or a negative number for `retries` or `concurrency`, no worker at all, a port outside of 1 to 65535, or a
    /// priority of a printer column that is not a number from 0.
    INVALID_NUMBER = 18, "a number is wrong";
    /// The first wait is required and given once, and `max` is the only option.
    INVALID_BACKOFF = 19, "`backoff` is written `backoff(\"5ms\", max = \"1000s\")`";
    /// A literal without a unit, or with a unit other than `ms`, `s`, `m` and `h`.
    INVALID_DURATION = 20, "not a duration";
    /// One kind has one relation on each cluster: the functions could not say which cache they mean.
    DUPLICATE_KIND = 21, "a kind is declared twice";
    /// An option, a verb, a flag, a name of a field in JSON, or a derive; for field attributes see `DUPLICATE_MARKER`.
    DUPLICATE = 22, "given twice";
    /// Cleanup is the second method of the struct form, `Finalize::finalize`.
    FUNCTION_WITH_FINALIZER = 23, "a function can't clean up";
    /// An error of `syn`, with the form of the options as help.
    SYNTAX = 24, "the attribute can't be read";
    /// `primary = …`, `rbac = …`, `of = Kind(…)`: the value would be lost without a message.
    FORM_OF_ANOTHER_OPTION = 25, "an option in the form of another option";
    /// A function in place of a string or the reverse, a number, or a `name` with a wrong length.
    STRING_OR_FUNCTION = 26, "wrong value type: string or function";
    /// `namespaces = "default"` lacks its brackets.
    NAMESPACES_NOT_A_LIST = 27, "`namespaces` is a list";
    /// An option that no code would ever use, such as `index` on a kind without a cache.
    WITHOUT_EFFECT = 28, "an option that would have no effect";
    /// Options of serde and field attributes have their own attributes.
    SCHEMA_WITH_OPTIONS = 29, "`#[schema]` takes no option but `crate`";
    /// A spec, a `DynamicObject`, or a struct without `#[resource]`. Traits of the runtime report other types with
    /// the same code.
    NOT_A_KIND = 30, "not a Kubernetes kind";
    /// Garbage collection looks for owners in the cluster of the object.
    OWNED_ON_ANOTHER_CLUSTER = 41, "an owned object is in the cluster of its owner";
    /// A group, a version or a name is missing, or API servers would reject it.
    INCOMPLETE_KIND = 43, "a kind has a group, a version and a name";
    /// A group, kind or other name without quotes: kube's derive does not say what to write.
    NOT_A_STRING = 44, "a string in quotes";
    /// Also in the parentheses of `printcolumn`, `scale` and `conversion`. The help knows the names that CRDs and kube-rs
    /// have for an option.
    UNKNOWN_RESOURCE_OPTION = 45, "`#[resource]` has no such option";
    /// `metadata` or `as` where the whole object is needed, or where nothing is cached.
    PART_OF_AN_OBJECT = 49, "a part where the whole is needed";
    /// The attribute adds a type of the function's name, which needs a free function.
    NOT_ON_AN_INTERPRETER = 50, "`#[interpreter]` must be applied to a function";
    /// `op` is missing, or has no value yet.
    MISSING_OPERATION = 51, "an interpreter needs its operation";
    /// Operations are spelled as Karmada spells them, without quotes, one for each function.
    UNKNOWN_OPERATION = 52, "no such operation";
    /// The options are `op` and `crate`.
    UNKNOWN_INTERPRETER_OPTION = 53, "`#[interpreter]` has no such option";
    /// Each operation has one or two parameters: `interpreter::operation::Shape`.
    NUMBER_OF_PARAMETERS = 54, "an operation has its number of parameters";
    /// `&Kind` for operations that read, `&mut Kind` for those that change their object.
    OBJECT_NOT_BORROWED = 55, "the object is borrowed";
    /// The number of replicas, the observed object, or the status items.
    INVALID_SECOND_PARAMETER = 56, "the second parameter does not fit the operation";
    /// An interpreter is registered for one kind.
    GENERIC_INTERPRETER = 57, "an interpreter can't be generic";
    /// The function returns nothing, or a status that is a number, a string or the object. Traits of `kctl-interpreter`
    /// report other types with the same code.
    INVALID_RETURN_TYPE = 58, "not a return type of the operation";
    /// No `of`, an item other than a struct with named fields, type parameters, or a field `metadata`.
    NOT_A_VIEW = 73, "not a view";
    /// A field has no path, two, or an expression that is not made of fields and keys.
    NOT_A_PATH = 74, "not a path";
    /// The help knows the names of kubebuilder, JSON schema and other validators.
    UNKNOWN_MARKER = 80, "no such field attribute";
    /// A field attribute is given twice, or a list names a value twice.
    DUPLICATE_MARKER = 81, "a duplicate field attribute or value";
    /// A bound in quotes, or a negative number of items, characters or properties.
    INVALID_BOUND = 82, "a bound is a number";
    /// The value is one of a few words: a list type, a type of JSON schema, a reason.
    UNKNOWN_WORD = 83, "unknown value";
    /// `allowed()` would allow no value.
    EMPTY_LIST = 84, "empty list";
    /// `x-kubernetes-list-type: map` needs `x-kubernetes-list-map-keys`.
    LIST_MAP_WITHOUT_KEYS = 85, "a list that is a map needs its keys";
    /// API servers reject a CRD with an empty rule.
    EMPTY_RULE = 86, "a rule without an expression";
    /// No value could satisfy both, or one of them says the opposite of the other.
    CONTRADICTING_MARKERS = 87, "field attributes contradict each other";
    /// API servers reject a CRD whose default does not match its own schema.
    FORBIDDEN_DEFAULT = 88, "a default that its own field forbids";
    /// A conversion webhook is a Service with its namespace, or a URL.
    CONVERSION_WITHOUT_ADDRESS = 89, "a conversion webhook without an address";
    /// A field's type in the same file. For types of other files rustc reports the missing traits.
    PART_WITHOUT_SCHEMA = 90, "a part without `#[schema]`";
    /// The attribute adds a type of the function's name, which needs a free function.
    NOT_ON_AN_ADMISSION = 100, "`#[admission]` must be applied to a function";
    /// Exactly one of the two words.
    NEITHER_VALIDATES_NOR_MUTATES = 101, "an admission function validates or mutates";
    /// The options are named after the webhook configuration, in snake case.
    UNKNOWN_ADMISSION_OPTION = 102, "unknown option of an admission function";
    /// The object, the request or both, borrowed as the action needs it.
    ADMISSION_PARAMETERS = 103, "parameters of an admission function";
    /// The value is missing, has another form, or is not one of the words of the API.
    INVALID_ADMISSION_VALUE = 104, "value of an option of an admission function";
    /// A literal that no API server could parse. The app reports selectors of `#[admission]` that compare numbers when it
    /// starts, with the same code.
    INVALID_SELECTOR = 105, "an invalid selector";
    /// Such as `reinvocation` on a validating function, a `connect` that takes an object, or `url` and `service` of
    /// `conversion(…)` in `#[resource]`.
    CONTRADICTING_OPTIONS = 106, "options that contradict each other";
    /// A webhook is for one kind, a conversion for two versions.
    GENERIC_FUNCTION = 107, "generic functions have no kind";
    /// Not a free function, or an attribute with options other than `crate`.
    NOT_ON_A_CONVERSION = 111, "`#[conversion]` must be applied to a function";
    /// One parameter by value, and another version as the result.
    CONVERSION_SIGNATURE = 112, "parameter and result of a conversion";
    /// kube's derive makes a type of the kind's name next to the struct.
    STRUCT_NAMED_AS_ITS_KIND = 117, "the struct has the name of its kind";
    /// `Instant` and references, for which the help names a type that JSON can hold.
    TYPE_NOT_STORABLE = 118, "a type that no object can store";
    /// A callback of `map`, `when`, `index` or `converged` in the same file.
    WRONG_FUNCTION = 119, "wrong signature of a callback";
    /// `#[resource]` or `#[schema]` on a function, an `impl` or another item that is not a type.
    NOT_A_STRUCT_OR_ENUM = 121, "not a struct or an enum";
}

/// Codes that only other crates report, with their titles. Most are diagnostics of traits; K0070, K0109, K0113 and
/// K0114 are errors of an app that starts.
#[cfg(test)]
const RUNTIME_CODES: &[(u16, &str)] = &[
    (31, "an owner in a namespace owns nothing outside of it"),
    (32, "the kind has no status"),
    (33, "not a controller"),
    (34, "a controller has no `reconcile`"),
    (35, "a finalizer without `finalize`"),
    (36, "a `finalize` without a finalizer"),
    (37, "a struct controller needs `controller_with`"),
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
    (108, "not an admission function"),
    (109, "two functions for one kind"),
    (110, "result of an admission function"),
    (113, "a version without a conversion"),
    (114, "two conversions for the same"),
    (115, "not a conversion"),
    (116, "this handle has no such operation"),
    (120, "`Store::get` takes a `Key`"),
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
        let attribute_titles = ATTRIBUTE_CODES.iter().map(|(_, code, title)| (code.to_string(), *title));
        let runtime_titles = RUNTIME_CODES.iter().map(|(number, title)| (Code(*number).to_string(), *title));
        attribute_titles.chain(runtime_titles).collect()
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
        assert!(ATTRIBUTE_CODES.is_sorted_by(|(_, one, _), (_, next, _)| one.0 < next.0));
        assert!(RUNTIME_CODES.is_sorted_by(|(one, _), (next, _)| one < next));
        assert_eq!(titles().len(), ATTRIBUTE_CODES.len() + RUNTIME_CODES.len(), "no code is in both tables");
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
    fn every_code_is_in_the_book_index() {
        let book = fs::read_to_string(root().join("guide/errors.md")).unwrap();
        for (code, title) in titles() {
            let (start, end) = (format!("- [{code}](#"), format!(") {title}"));
            let n_lines = book.lines().filter(|line| line.starts_with(&start) && line.ends_with(&end)).count();
            assert_eq!(n_lines, 1, "guide/errors.md lists each code once, with its title: {code}");
        }
    }

    #[test]
    fn every_code_is_reported() {
        let sources = sources();
        let all: BTreeSet<_> = sources.iter().flat_map(|(_, text)| literals(text)).collect();
        let unused = |name: &&str| !sources.iter().any(|(_, text)| uses(text, name));
        let unused: Vec<_> = ATTRIBUTE_CODES.iter().map(|(name, ..)| *name).filter(unused).collect();
        assert!(unused.is_empty(), "no attribute reports {unused:?}: remove them, also from the book");
        for (number, title) in RUNTIME_CODES {
            let code = Code(*number).to_string();
            assert!(all.contains(code.as_str()), "no crate reports {code} ({title}): remove it, also from the book");
        }
    }

    /// Returns `true` if a source file has the constant. One whose name only begins the same does not count.
    fn uses(text: &str, name: &str) -> bool {
        let path = format!("codes::{name}");
        let is_complete = |rest: &str| !rest.starts_with(|next: char| next == '_' || next.is_alphanumeric());
        text.match_indices(&path).any(|(at, _)| is_complete(&text[at + path.len()..]))
    }

    /// Returns the codes in a cell such as `K0024, K0043–K0045`.
    fn codes_of_cell(cell: &str) -> BTreeSet<String> {
        let number = |code: &str| code.trim().trim_start_matches('K').parse::<u16>().unwrap();
        let parts = cell.split(',').filter(|part| !part.trim().is_empty());
        let ranges = parts.map(|part| part.split_once('–').unwrap_or((part, part)));
        let numbers = ranges.flat_map(|(first, last)| number(first)..=number(last));
        numbers.map(|number| Code(number).to_string()).collect()
    }

    /// Returns the codes that a source file reports. Two methods of `Errors` have a fixed code.
    fn codes_of_source(text: &str) -> BTreeSet<String> {
        let constants = ATTRIBUTE_CODES.iter().filter(|(name, ..)| uses(text, name)).map(|(_, code, _)| *code);
        let methods = [("push_duplicate(", DUPLICATE), ("errors.syntax(", SYNTAX)];
        let calls = methods.into_iter().filter(|(method, _)| text.contains(method)).map(|(_, code)| code);
        constants.chain(calls).map(|code| code.to_string()).collect()
    }

    #[test]
    fn table_of_resource_files_has_their_codes() {
        let folder = "kctl-macros/src/resource/";
        let sources = sources();
        let mut files: BTreeMap<_, _> =
            sources.iter().filter_map(|(path, text)| Some((path.strip_prefix(folder)?, text))).collect();
        let page = files["mod.rs"];
        let table = page.lines().filter_map(|line| line.strip_prefix("//! | `"));
        let rows: Vec<Vec<&str>> = table.map(|row| row.trim_end_matches('|').split(" | ").collect()).collect();
        assert!(rows.len() > 15, "the table has another form: {rows:?}");
        for row in rows {
            let mut reported = BTreeSet::new();
            for name in row[0].split('`').step_by(2).filter(|name| !name.is_empty()) {
                let is_part =
                    |path: &str| path.strip_suffix(".rs") == Some(name) || path.split('/').next() == Some(name);
                let parts = files.iter().filter(|(path, _)| is_part(path));
                reported.extend(parts.flat_map(|(_, text)| codes_of_source(text)));
                files.retain(|path, _| !is_part(path));
            }
            assert_eq!(codes_of_cell(row[2]), reported, "codes of `{}` in the table of resource/mod.rs", row[0]);
        }
        files.retain(|_, text| !codes_of_source(text).is_empty());
        assert!(files.is_empty(), "add these to the table of resource/mod.rs: {:?}", files.keys());
    }

    #[test]
    fn every_reported_code_is_known() {
        let known = titles();
        for (path, text) in sources() {
            for code in literals(&text) {
                assert!(known.contains_key(code), "{path} reports {code}, which is not in codes.rs");
            }
            let is_test = path.ends_with("controller/check/tests.rs");
            assert!(
                !path.starts_with("kctl-macros/") || is_test || literals(&text).next().is_none(),
                "{path} has a code as a literal: use the constant of codes.rs"
            );
        }
    }
}
