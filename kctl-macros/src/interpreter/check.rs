//! `Input` → `InterpreterFn`: each rule is a function; all mistakes are reported at once.
//!
//! | code | mistake |
//! |---|---|
//! | K0010, K0022, K0024 | the value of `crate`, an option twice, tokens that are not options |
//! | K0050 | not on a free function |
//! | K0051, K0052, K0053 | no operation, an unknown one, an unknown option |
//! | K0054, K0055, K0056 | parameters: their number, the borrowed object, the second one |
//! | K0057 | the function is generic |
//! | K0058 | no return type where the operation needs one, or a status that is not one |
//!
//! Other return types are left to rustc: the trait of the return type has a diagnostic with K0058, too.

use proc_macro2::TokenTree;
use quote::ToTokens;
use syn::{Expr, Ident, ReturnType, Type, TypeReference};

use super::{
    ATTRIBUTE,
    operation::{OPERATIONS, Operation, Shape},
};
use crate::{
    attribute::{Entry, Input, KnownOptions, Value},
    codes,
    crate_path::CratePath,
    diagnostics::{Errors, closest_match},
    function::{Function, Head, compact_text, generic_argument, is_result, last_name, return_type, strip_pointers},
    registered_function::{Borrow, borrowed_kind, shown_kind},
    source_file,
};

/// A valid interpreter function.
pub(super) struct InterpreterFn {
    /// The function without its parameters.
    pub(super) head: Head,
    /// The path of the framework.
    pub(super) krate: CratePath,
    /// The row of the table of operations.
    pub(super) operation: &'static Operation,
    /// The word in the attribute, at which the error for two functions of the same operation is reported.
    pub(super) word: Ident,
    /// The kind behind the reference of the first parameter.
    pub(super) kind: Type,
    /// The type in the second parameter: a status item for `AggregateStatus`, and the observed object for `Retain`, if
    /// it is spelled in another way than the kind.
    pub(super) second: Option<Type>,
    /// `true` if the function returns a `Result`, as far as its signature shows.
    pub(super) is_fallible: bool,
}

/// The options of the attribute.
const OPTIONS: [&str; 2] = ["op", "crate"];

/// Checks options and function. It returns early without a free function or an operation: then the parameters
/// can't be judged.
pub(super) fn check(input: &Input) -> syn::Result<InterpreterFn> {
    let mut errors = Errors::default();
    for mistake in &input.mistakes {
        errors.syntax(mistake, "options are written `name = value`, such as `op = InterpretReplica`");
    }
    let known =
        KnownOptions { attribute: "#[interpreter]", names: &OPTIONS, code: codes::UNKNOWN_INTERPRETER_OPTION, synonym };
    input.check_known_and_unique(&known, &mut errors);
    let krate = input.krate(&mut errors);
    let operation = operation(input, &mut errors);
    let function = ATTRIBUTE.check_function(input.function.as_ref(), &input.other, &mut errors)?;
    let Some((operation, word)) = operation else { return Err(errors.into_error()) };
    let taken = parameters(function, operation, &mut errors);
    check_return_type(function, operation, &mut errors);
    let (kind, second) = taken.unwrap_or_else(|| (syn::parse_quote!(()), None));
    let sig = &function.sig;
    errors.into_result(InterpreterFn {
        head: function.head(),
        krate,
        operation,
        word,
        kind,
        second,
        is_fallible: is_result(&sig.output),
    })
}

/// Returns the help for an operation without `op =`, and for `operation = …`.
fn synonym(entry: &Entry, _input: &Input) -> Option<String> {
    let name = entry.name.to_string();
    let operation = match &entry.value {
        _ if name != "operation" => Operation::of(&name)?.name.to_owned(),
        Value::Expr(value) => value.to_token_stream().to_string(),
        _ => "…".to_owned(),
    };
    Some(format!("write `op = {operation}`"))
}

/// Returns the operation with its word in the attribute. Reports K0051 for none and K0052 for an unknown one. People
/// write names in quotes, in lower case, as a path or as a list; the help names the operation that they mean.
fn operation(input: &Input, errors: &mut Errors) -> Option<(&'static Operation, Ident)> {
    let names = || OPERATIONS.iter().map(|operation| operation.name).collect::<Vec<_>>();
    let Some(entry) = input.entry("op") else {
        // An unknown option with a value was reported already: it is most likely a misspelt `op`.
        let misspelt = |entry: &Entry| {
            entry.name != "crate" && (!matches!(entry.value, Value::None) || synonym(entry, input).is_some())
        };
        if !input.options.iter().any(misspelt) && input.mistakes.is_empty() {
            let at = input.function.as_ref().map(|function| function.sig.ident.clone());
            let help = format!("write `#[interpreter(op = …)]` with one of {}", names().join(", "));
            errors.push(at, codes::MISSING_OPERATION, "an interpreter needs its operation", &help);
        }
        return None;
    };
    let Value::Expr(value) = &entry.value else {
        report_missing_value(entry, input, errors);
        return None;
    };
    let text = value.to_token_stream().to_string();
    let word = match value {
        Expr::Path(path) => path.path.get_ident(),
        _ => None,
    };
    if let Some((operation, word)) = word.and_then(|word| Some((Operation::of(&word.to_string())?, word.clone()))) {
        return Some((operation, word));
    }
    let several = operations_in(value);
    if several.len() > 1 {
        let each: Vec<_> = several.iter().map(|name| format!("`#[interpreter(op = {name})]`")).collect();
        let help = format!("write a function for each, with {}; what they share is called by both", each.join(" and "));
        errors.push(value, codes::UNKNOWN_OPERATION, "a function answers one operation", &help);
        return None;
    }
    let plain = text.trim_matches('"');
    let same = |name: &&&str| name.eq_ignore_ascii_case(plain);
    let help = match closest_match(plain, &names()).or_else(|| names().iter().find(same).copied()) {
        Some(candidate) if text.starts_with('"') => {
            format!("operations are written without quotes: `op = {candidate}`")
        }
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None if several.len() == 1 => format!("write `op = {}`", several[0]),
        None => format!("the operations are {}", names().join(", ")),
    };
    errors.push(value, codes::UNKNOWN_OPERATION, &format!("`{plain}` is not an operation"), &help);
    None
}

/// Reports K0051 for `op` and `op(…)`. An error of the parser, as for `op: …`, was reported.
fn report_missing_value(entry: &Entry, input: &Input, errors: &mut Errors) {
    let named = match &entry.value {
        Value::Items(items) => items.iter().find_map(|item| Operation::of(&item.text)),
        _ if !input.mistakes.is_empty() => return,
        _ => None,
    };
    let names: Vec<_> = OPERATIONS.iter().map(|operation| operation.name).collect();
    let help = match named {
        Some(operation) => format!("write `op = {}`", operation.name),
        None => format!("write `op = …` with one of {}", names.join(", ")),
    };
    errors.push(&entry.name, codes::MISSING_OPERATION, "an interpreter needs its operation", &help);
}

/// Returns the operations that an expression names in whatever form: a list, alternatives, a call, a path.
fn operations_in(value: &Expr) -> Vec<&'static str> {
    let (mut tokens, mut found) = (vec![value.to_token_stream()], Vec::new());
    while let Some(stream) = tokens.pop() {
        for token in stream {
            match token {
                TokenTree::Group(group) => tokens.push(group.stream()),
                TokenTree::Ident(word) => {
                    found.extend(Operation::of(&word.to_string()).map(|operation| operation.name));
                }
                _ => {}
            }
        }
    }
    found
}

/// Returns the kind, and the type in the second parameter. Reports K0054 for a wrong number of parameters.
fn parameters(function: &Function, operation: &Operation, errors: &mut Errors) -> Option<(Type, Option<Type>)> {
    let (name, sig) = (function.sig.ident.to_string(), &function.sig);
    let typed: Vec<&Type> = function.parameter_types().collect();
    let n_expected = operation.shape.n_parameters();
    let kind = shown_kind(typed.first().copied());
    let help = format!("write `{}`", operation.signature(&name, &kind));
    if typed.len() != n_expected || sig.inputs.len() != n_expected {
        let parameters = if n_expected == 1 { "one parameter" } else { "two parameters" };
        let what = format!("a function for {} has {parameters}", operation.name);
        errors.push(&sig.ident, codes::NUMBER_OF_PARAMETERS, &what, &help);
        return None;
    }
    let kind = check_object_borrowed(typed[0], operation, &help, errors);
    let second = typed.get(1).map(|second| check_second_parameter(second, kind.as_ref(), operation, &help, errors));
    Some((kind?, second.flatten()))
}

/// Returns the kind behind the reference, or reports K0055.
fn check_object_borrowed(ty: &Type, operation: &Operation, help: &str, errors: &mut Errors) -> Option<Type> {
    let borrow = if operation.shape == Shape::Read { Borrow::Shared } else { Borrow::Mutable };
    borrowed_kind(ty, borrow, operation.name)
        .map_err(|what| errors.push(ty, codes::OBJECT_NOT_BORROWED, &what, help))
        .ok()
}

/// Checks the second parameter and reports K0056. Returns its type if rustc has to compare it: a status item, or the
/// observed object under another name.
fn check_second_parameter(
    ty: &Type,
    kind: Option<&Type>,
    operation: &Operation,
    help: &str,
    errors: &mut Errors,
) -> Option<Type> {
    let fits = match (operation.shape, ty) {
        (Shape::Revise, _) => may_be_i32(ty),
        (Shape::Retain, Type::Reference(TypeReference { mutability: None, elem, .. })) => {
            let is_other = kind.is_some_and(|kind| compact_text(kind) != compact_text(elem));
            return is_other.then(|| (**elem).clone());
        }
        (Shape::Aggregate, Type::Reference(TypeReference { mutability: None, elem, .. })) => match &**elem {
            Type::Slice(slice) => {
                check_status_item(&slice.elem, kind, errors);
                return Some((*slice.elem).clone());
            }
            _ => false,
        },
        _ => false,
    };
    if !fits {
        let must = match operation.shape {
            Shape::Revise => "the number of replicas, an `i32`",
            Shape::Retain => "the object as the cluster has it, by reference: `&Kind` of the same kind",
            _ => "what the clusters reported: `&[AggregatedStatusItem]`",
        };
        errors.push(
            ty,
            codes::INVALID_SECOND_PARAMETER,
            &format!("the second parameter of {} must be {must}", operation.name),
            help,
        );
    }
    None
}

/// Returns `false` for a type that is certainly not `i32`: a reference, another number, or `Replicas`. Any other name
/// may be an alias.
fn may_be_i32(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    let is_plain = path.path.segments.iter().all(|segment| segment.arguments.is_none());
    let is_other = |name: &Ident| name == "Replicas" || NOT_A_STATUS.iter().any(|word| name == word);
    is_plain && last_name(ty).is_some_and(|name| name == "i32" || !is_other(name))
}

/// Reports K0056 for status items that are the status alone, or the object. Their fields would be looked for next to
/// `clusterName`, and optional ones never be found.
fn check_status_item(item: &Type, kind: Option<&Type>, errors: &mut Errors) {
    let Some(kind) = kind.and_then(last_name) else { return };
    let status = status_name(kind);
    let is = |name: &str| last_name(item).is_some_and(|last| last == name);
    // `ClusterStatus` may also be the status of a kind `Cluster`.
    let is_status = !is("ClusterStatus") && (is(&status) || is(&format!("{kind}Status")));
    let read_as = generic_argument(item, "ClusterStatus").unwrap_or(item);
    if !is_status && last_name(read_as) != Some(kind) {
        return;
    }
    let item_text = compact_text(item);
    let what = if is_status { "the status alone" } else { "the object" };
    let what = format!("an item of AggregateStatus is the report of a cluster, and `{item_text}` is {what}");
    let status = if is_status { item_text } else { status };
    errors.push(item, codes::INVALID_SECOND_PARAMETER, &what, &format!("write `&[ClusterStatus<{status}>]`"));
}

/// Returns the name of the status type of a kind: from `#[resource]` in the same file, or the usual one.
fn status_name(kind: &Ident) -> String {
    let found = source_file::read().and_then(|text| source_file::status_of_kind(&text, kind));
    found.unwrap_or_else(|| format!("{kind}Status"))
}

/// Types that no status can be. Any type that serde can serialize has the trait of the operation.
const NOT_A_STATUS: [&str; 15] =
    ["String", "bool", "f32", "f64", "i128", "i16", "i32", "i64", "i8", "isize", "u16", "u32", "u64", "u8", "usize"];

/// Reports K0058 for a function that returns nothing where the operation needs one, and for a status that is not one.
/// rustc reports any other wrong type.
fn check_return_type(function: &Function, operation: &Operation, errors: &mut Errors) {
    let is_nothing = match &function.sig.output {
        ReturnType::Default => true,
        ReturnType::Type(_, ty) => matches!(&**ty, Type::Tuple(tuple) if tuple.elems.is_empty()),
    };
    if let Some(returned) = return_type(&function.sig.output)
        && operation.return_trait == "IntoStatus"
        && !is_nothing
    {
        check_status(function, returned, errors);
    }
    if is_nothing && operation.shape == Shape::Read {
        let kind = shown_kind(function.parameter_types().next());
        let help = format!("write `{}`", operation.signature(&function.sig.ident.to_string(), &kind));
        let what = format!("a function for {} returns `{}`", operation.name, operation.returns);
        match &function.sig.output {
            ReturnType::Default => errors.push(&function.sig.ident, codes::INVALID_RETURN_TYPE, &what, &help),
            ReturnType::Type(_, ty) => errors.push(ty, codes::INVALID_RETURN_TYPE, &what, &help),
        }
    }
}

/// Reports K0058 for an `InterpretStatus` that returns a number, a string, nothing in a `Result`, or the object. They
/// can be serialized, and Karmada would store them as the status.
fn check_status(function: &Function, returned: &Type, errors: &mut Errors) {
    let kind = function.parameter_types().next().map(strip_pointers).and_then(last_name);
    let status = generic_argument(returned, "Result").unwrap_or(returned);
    if !is_no_status(generic_argument(status, "Option").unwrap_or(status), kind) {
        return;
    }
    let (name, shown) = (&function.sig.ident, compact_text(status));
    let (kind, returns) = match kind {
        Some(kind) => (kind.to_string(), status_name(kind)),
        None => ("Kind".to_owned(), "KindStatus".to_owned()),
    };
    let what = format!("a function for InterpretStatus returns the status of the object, not `{shown}`");
    let help = format!("write `fn {name}(object: &{kind}) -> Result<{returns}>`");
    errors.push(status, codes::INVALID_RETURN_TYPE, &what, &help);
}

/// Returns `true` for a type that is certainly not a status.
fn is_no_status(ty: &Type, kind: Option<&Ident>) -> bool {
    match (ty, last_name(ty)) {
        (Type::Tuple(tuple), _) => tuple.elems.is_empty(),
        (_, Some(name)) => kind == Some(name) || NOT_A_STATUS.iter().any(|word| name == word),
        _ => false,
    }
}
