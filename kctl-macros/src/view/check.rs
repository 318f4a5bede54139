//! The attribute and the struct → `ViewStruct`: each rule is a function; all mistakes are reported at once.
//!
//! | code | mistake |
//! |---|---|
//! | K0010 | `crate` without a path |
//! | K0011, K0022 | an option: unknown, given twice |
//! | K0024 | tokens that are not options |
//! | K0073 | no kind, not a struct with named fields, generics, or a field named `metadata` |
//! | K0074 | a field without a path, with two, or with something that is not a path |
//!
//! rustc checks that the path exists and that the field has the type of its end (K0072).

use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens;
use syn::{
    Attribute, Expr, ExprField, ExprIndex, Field, Fields, Item, ItemStruct, Lit, LitStr, Member, Meta, Path, Token,
    Type, parse::Parser, punctuated::Punctuated, spanned::Spanned,
};

use crate::{codes, crate_path::CratePath, diagnostics::Errors, function::remove_groups};

/// A valid view.
pub(super) struct ViewStruct {
    /// The user's struct, without the attributes of its fields.
    pub(super) item: ItemStruct,
    /// The path of the framework.
    pub(super) krate: CratePath,
    /// The kind of the view's objects.
    pub(super) of: Type,
    /// The paths of all fields, in their order.
    pub(super) fields: Vec<ViewField>,
}

/// A field of the view with its path in the kind: `#[view(spec.node_name)] node: Option<String>`.
pub(super) struct ViewField {
    /// The `#[cfg(…)]` of the field, which its path has, too.
    pub(super) cfg: Vec<Attribute>,
    /// The name of the field in the view.
    pub(super) field: Ident,
    /// The type of the field. The end of the path has to be the same type, or `Option` of it behind an optional step.
    pub(super) ty: Type,
    /// The steps from the object to the value. Invariant: at least one, because each form of a path has a field.
    pub(super) steps: Vec<Step>,
}

/// One step of a path. In JSON, field names are in camel case; the runtime converts them.
pub(super) enum Step {
    /// A field of a struct: `.node_name`.
    Field(Ident),
    /// A key of a map: `["example.com/team"]`.
    Key(LitStr),
}

/// The help for most mistakes in the attribute.
const FORM: &str = "write `#[view(of = Kind)]`";

/// Checks the options and the struct. Both are read completely, so that mistakes in either are reported together.
pub(super) fn check(options: TokenStream, item: &TokenStream) -> syn::Result<ViewStruct> {
    let mut errors = Errors::default();
    let (of, krate) = read_options(options, &mut errors);
    let item = read_struct(item, &mut errors).map(|mut item| {
        let fields = read_fields(&mut item, &mut errors);
        (item, fields)
    });
    let whole = of.zip(item).map(|(of, (item, fields))| ViewStruct { item, krate, of, fields });
    // If the kind or the struct is missing, a mistake was reported.
    errors.into_result(whole).and_then(|whole| whole.ok_or_else(|| syn::Error::new(Span::call_site(), FORM)))
}

/// Reads `of = Kind` and `crate = path`. A missing `of` is K0073, unless a mistake in the options was reported: it is
/// most likely a misspelt `of`.
fn read_options(options: TokenStream, errors: &mut Errors) -> (Option<Type>, CratePath) {
    let (mut of, mut krate, tokens) = (None, CratePath::default(), options.clone());
    let options = Punctuated::<ViewOption, Token![,]>::parse_terminated.parse2(options);
    let n_before = errors.len();
    match options {
        Ok(options) => {
            let mut names = std::collections::HashSet::new();
            for ViewOption { name, value } in options {
                let text = name.to_string();
                if !names.insert(text.clone()) {
                    errors.push_duplicate(&name);
                }
                match (text.as_str(), value) {
                    ("of", kind) => of = Some(kind),
                    ("crate", Type::Path(path)) => krate = CratePath::from(path),
                    ("crate", other) => {
                        errors.push(other, codes::MISSING_VALUE, "`crate` must be a path", "write `crate = path`");
                    }
                    (other, _) => {
                        errors.push(&name, codes::UNKNOWN_OPTION, &format!("`#[view]` has no option `{other}`"), FORM);
                    }
                }
            }
        }
        Err(error) => errors.syntax(&error, FORM),
    }
    // A misspelt `of` was reported already.
    if of.is_none() && errors.len() == n_before {
        errors.push(tokens, codes::NOT_A_VIEW, "a view is of a kind", FORM);
    }
    (of, krate)
}

/// One option. Both options have types as values: a path is a type, too.
struct ViewOption {
    name: Ident,
    value: Type,
}

impl syn::parse::Parse for ViewOption {
    fn parse(input: syn::parse::ParseStream<'_>) -> syn::Result<Self> {
        let name = input.call(syn::ext::IdentExt::parse_any)?;
        input.parse::<Token![=]>()?;
        let mut value = input.parse()?;
        remove_groups(&mut value);
        Ok(Self { name, value })
    }
}

/// Returns the struct. K0073 for another item, and for a struct without named fields.
fn read_struct(item: &TokenStream, errors: &mut Errors) -> Option<ItemStruct> {
    let Ok(Item::Struct(item)) = syn::parse2::<Item>(item.clone()) else {
        let word = item.clone().into_iter().find(|token| token.to_string() != "pub");
        errors.push(
            word,
            codes::NOT_A_VIEW,
            "`#[view]` must be applied to a struct",
            "write `#[view(of = Kind)] struct Name { … }`",
        );
        return None;
    };
    if !item.generics.params.is_empty() {
        errors.push(
            &item.generics,
            codes::NOT_A_VIEW,
            "a view can't be generic: its fields have the types of the kind",
            "name the types",
        );
    }
    if !matches!(item.fields, Fields::Named(_)) {
        let what = "a view has named fields";
        let help = format!("write `struct {} {{ #[view(spec.field)] field: Type }}`", item.ident);
        errors.push(&item.ident, codes::NOT_A_VIEW, what, &help);
        return None;
    }
    Some(item)
}

/// Removes the `#[view(…)]` attributes from the fields and reads their paths. `metadata` is rejected as a field,
/// because every view has it.
fn read_fields(item: &mut ItemStruct, errors: &mut Errors) -> Vec<ViewField> {
    let mut fields = Vec::new();
    for field in &mut item.fields {
        let (paths, others) =
            std::mem::take(&mut field.attrs).into_iter().partition(|attr| attr.path().is_ident("view"));
        field.attrs = others;
        let Some(name) = field.ident.clone() else { continue };
        if name == "metadata" {
            let help =
                "remove the field; for annotations write for example `#[view(metadata.annotations)] annotations: …`";
            errors.push(&name, codes::NOT_A_VIEW, "a view always has `metadata`", help);
            continue;
        }
        let paths: Vec<Attribute> = paths;
        if let Some(steps) = path(&name, field, &paths, errors) {
            let cfg = field.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect();
            fields.push(ViewField { cfg, field: name, ty: field.ty.clone(), steps });
        }
    }
    fields
}

/// Reads the path of one field. K0074 for none, for two, and for anything but fields and map keys.
fn path(name: &Ident, field: &Field, paths: &[Attribute], errors: &mut Errors) -> Option<Vec<Step>> {
    let [one] = paths else {
        if let Some(second) = paths.get(1) {
            errors.push(second, codes::NOT_A_PATH, &format!("`{name}` is at one place"), "remove one of the paths");
        } else {
            let help = format!("write `#[view(spec.{name})]` above it, with the path in the kind");
            errors.push(field.ident.as_ref(), codes::NOT_A_PATH, &format!("the field `{name}` has no path"), &help);
        }
        return None;
    };
    let parsed = match &one.meta {
        Meta::List(list) => list.parse_args::<Expr>(),
        other => Err(syn::Error::new(other.span(), "a path is written in parentheses")),
    };
    let Ok(expr) = parsed else {
        report_not_a_path(one, errors);
        return None;
    };
    let mut steps = Vec::new();
    push_steps(&expr, &mut steps, errors)?;
    debug_assert!(!steps.is_empty(), "`push_steps` adds a step, or reports a mistake");
    Some(steps)
}

/// Reports K0074 with an example of a path.
fn report_not_a_path(tokens: impl ToTokens, errors: &mut Errors) {
    let help = "write the fields with points between them: `#[view(spec.node_name)]`, `#[view(metadata.annotations[\"key\"])]`";
    errors.push(tokens, codes::NOT_A_PATH, "not a path of fields", help);
}

/// Appends the steps of an expression: `metadata.annotations["team"]` has two fields and a key. An index into a list
/// is rejected, because lists are read as a whole. Returns `None` after a mistake.
fn push_steps(expr: &Expr, steps: &mut Vec<Step>, errors: &mut Errors) -> Option<()> {
    match expr {
        Expr::Path(path) if first_field(&path.path).is_some() => {
            steps.extend(first_field(&path.path).cloned().map(Step::Field));
        }
        Expr::Field(ExprField { base, member: Member::Named(name), .. }) => {
            push_steps(base, steps, errors)?;
            steps.push(Step::Field(name.clone()));
        }
        Expr::Index(ExprIndex { expr, index, .. }) => {
            push_steps(expr, steps, errors)?;
            let Expr::Lit(syn::ExprLit { lit: Lit::Str(key), .. }) = &**index else {
                let help = "write for example `metadata.annotations[\"example.com/team\"]`; a list is read whole";
                errors.push(index, codes::NOT_A_PATH, "brackets contain the key of a map", help);
                return None;
            };
            steps.push(Step::Key(key.clone()));
        }
        other => {
            report_not_a_path(other, errors);
            return None;
        }
    }
    Some(())
}

/// Returns the name of a path with one segment.
fn first_field(path: &Path) -> Option<&Ident> {
    path.get_ident()
}
