//! The attribute and the struct → `Model`: the rules; all mistakes are reported at once.

use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens;
use syn::{
    Expr, ExprField, ExprIndex, Field, Fields, Item, ItemStruct, Lit, LitStr, Member, Meta, Path, Token, Type,
    parse::Parser, punctuated::Punctuated, spanned::Spanned,
};

use crate::{codes, crate_path::CratePath, diagnostics::Errors};

/// A view that is right.
pub(super) struct Model {
    /// Without the attributes of the fields.
    pub(super) item: ItemStruct,
    pub(super) krate: CratePath,
    pub(super) of: Type,
    pub(super) places: Vec<Place>,
}

/// Where a field of the view is.
pub(super) struct Place {
    pub(super) field: Ident,
    pub(super) ty: Type,
    pub(super) steps: Vec<Step>,
}

pub(super) enum Step {
    Field(Ident),
    Key(LitStr),
}

const FORM: &str = "write `#[view(of = Kind)]`";

pub(super) fn check(options: TokenStream, item: &TokenStream) -> syn::Result<Model> {
    let mut errors = Errors::default();
    let (of, krate) = read_options(options, &mut errors);
    let item = read_struct(item, &mut errors).map(|mut item| {
        let places = places(&mut item, &mut errors);
        (item, places)
    });
    let whole = of.zip(item).map(|(of, (item, places))| Model { item, krate, of, places });
    // What is not whole has a mistake.
    errors.into_result(whole).and_then(|whole| whole.ok_or_else(|| syn::Error::new(Span::call_site(), FORM)))
}

fn read_options(options: TokenStream, errors: &mut Errors) -> (Option<Type>, CratePath) {
    let (mut of, mut krate, place) = (None, CratePath::default(), options.clone());
    let options = Punctuated::<Opt, Token![,]>::parse_terminated.parse2(options);
    let n_before = errors.len();
    match options {
        Ok(options) => {
            for Opt { name, value } in options {
                match (name.to_string().as_str(), value) {
                    ("of", kind) => of = Some(kind),
                    ("crate", Type::Path(path)) => krate = CratePath::from(path),
                    (other, _) => {
                        errors.push(&name, codes::UNKNOWN_OPTION, &format!("`#[view]` has no option `{other}`"), FORM);
                    }
                }
            }
        }
        Err(error) => errors.syntax(&error, FORM),
    }
    // A misspelt `of` was reported: it is one mistake.
    if of.is_none() && errors.len() == n_before {
        errors.push(place, codes::NOT_A_VIEW, "a view is of a kind", FORM);
    }
    (of, krate)
}

struct Opt {
    name: Ident,
    value: Type,
}

impl syn::parse::Parse for Opt {
    fn parse(input: syn::parse::ParseStream<'_>) -> syn::Result<Self> {
        let name = input.call(syn::ext::IdentExt::parse_any)?;
        input.parse::<Token![=]>()?;
        Ok(Self { name, value: input.parse()? })
    }
}

fn read_struct(item: &TokenStream, errors: &mut Errors) -> Option<ItemStruct> {
    let Ok(Item::Struct(item)) = syn::parse2::<Item>(item.clone()) else {
        let word = item.clone().into_iter().find(|token| token.to_string() != "pub");
        errors.push(
            word,
            codes::NOT_A_VIEW,
            "`#[view]` goes on a struct",
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

/// Takes the paths off the fields.
fn places(item: &mut ItemStruct, errors: &mut Errors) -> Vec<Place> {
    let mut places = Vec::new();
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
        let paths: Vec<syn::Attribute> = paths;
        if let Some(steps) = path(&name, field, &paths, errors) {
            places.push(Place { field: name, ty: field.ty.clone(), steps });
        }
    }
    places
}

fn path(name: &Ident, field: &Field, paths: &[syn::Attribute], errors: &mut Errors) -> Option<Vec<Step>> {
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
        other => Err(syn::Error::new(other.span(), "a path stands in parentheses")),
    };
    let Ok(expr) = parsed else {
        wrong(one, errors);
        return None;
    };
    let mut steps = Vec::new();
    walk(&expr, &mut steps, errors)?;
    Some(steps)
}

fn wrong(place: impl ToTokens, errors: &mut Errors) {
    let help = "write the fields with points between them: `#[view(spec.node_name)]`, `#[view(metadata.annotations[\"key\"])]`";
    errors.push(place, codes::NOT_A_PATH, "not a path of fields", help);
}

/// The steps from the object to what the expression names.
fn walk(expr: &Expr, steps: &mut Vec<Step>, errors: &mut Errors) -> Option<()> {
    match expr {
        Expr::Path(path) if first(&path.path).is_some() => steps.extend(first(&path.path).cloned().map(Step::Field)),
        Expr::Field(ExprField { base, member: Member::Named(name), .. }) => {
            walk(base, steps, errors)?;
            steps.push(Step::Field(name.clone()));
        }
        Expr::Index(ExprIndex { expr, index, .. }) => {
            walk(expr, steps, errors)?;
            let Expr::Lit(syn::ExprLit { lit: Lit::Str(key), .. }) = &**index else {
                let help = "write for example `metadata.annotations[\"example.com/team\"]`; a list is read whole";
                errors.push(index, codes::NOT_A_PATH, "brackets contain the key of a map", help);
                return None;
            };
            steps.push(Step::Key(key.clone()));
        }
        other => {
            wrong(other, errors);
            return None;
        }
    }
    Some(())
}

fn first(path: &Path) -> Option<&Ident> {
    path.get_ident()
}
