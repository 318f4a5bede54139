//! `#[resource(…)]` and `#[schema]`: kube's derive, serde and schemars with all paths pointing into kctl, and the marks of
//! fields that neither of them knows.

mod bounds;
mod definition;
mod json;
mod marks;
mod optional;
mod options;
mod unmarked;
mod unstorable;

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, Data, DeriveInput, Fields, Type, punctuated::Punctuated};

pub(crate) use self::unmarked::{names, stand_in};
use self::{json::Json, optional::NoneIs};
use crate::{codes, diagnostics::Errors, source};

/// Derives whose paths lead into kctl.
const OURS: [&str; 4] = ["Serialize", "Deserialize", "JsonSchema", "CustomResource"];

pub(crate) fn expand_resource(options: &TokenStream, item: &TokenStream) -> TokenStream {
    let derives = ["Clone", "Debug", "PartialEq", "Serialize", "Deserialize", "JsonSchema", "CustomResource"];
    let mut errors = Errors::default();
    let (root, options) = marks::of_root(options, &mut errors);
    let mut item = item.clone();
    let options = match syn::parse2::<DeriveInput>(item.clone()) {
        Ok(input) if !input.generics.params.is_empty() => {
            errors.push(
                &input.generics,
                codes::GENERIC_CONTROLLER_OR_KIND,
                "a kind can't be generic",
                "name the types",
            );
            let error = errors.into_result(()).err().map(|errors| errors.to_compile_error());
            return quote! { #item #error };
        }
        Ok(mut input) => {
            let options = options::check(&options, &input.ident, &mut errors);
            if let Some(spec) = options::struct_named_as_the_kind(&options, &input, &mut errors) {
                input.ident = spec;
                item = input.into_token_stream();
            }
            options
        }
        Err(_not_a_type) => options,
    };
    let status = options::status(&options);
    expand(&item, &derives, status, errors, |paths| {
        let root = (!root.is_empty()).then(|| marks::emit(vec![("root".to_owned(), Json::Object(root.clone()))]));
        let root = root.map(|marks| quote!(#[schemars(transform = #marks)]));
        // On the type that kube's derive makes. It takes no attribute of schemars by that name.
        let structure = has_schema(&options)
            .then(|| quote!(attr = "cfg_attr(all(), schemars(transform = ::kctl::__private_0_1::Structure))",));
        quote! {
            #[kube(#options, #structure crates(
                kube = ::kctl::__private_0_1::kube,
                kube_core = ::kctl::__private_0_1::kube::core,
                k8s_openapi = ::kctl::__private_0_1::k8s_openapi,
                schemars = ::kctl::__private_0_1::schemars,
                serde = ::kctl::__private_0_1::serde,
                serde_json = ::kctl::__private_0_1::serde_json,
            ))]
            #paths
            #root
        }
    })
}

/// Whether kube's derive makes the schema: `schema = "manual"` and `schema = "disabled"` leave it to the user.
fn has_schema(options: &TokenStream) -> bool {
    !options.clone().into_iter().any(|token| matches!(token, TokenTree::Ident(name) if name == "schema"))
}

pub(crate) fn expand_schema(options: &TokenStream, item: &TokenStream) -> TokenStream {
    if !options.is_empty() {
        let help = "write `#[schema]`, and marks as `#[kctl(…)]` below it";
        let mut errors = Errors::default();
        errors.push(options, codes::SCHEMA_WITH_OPTIONS, "`#[schema]` takes no options", help);
        let error = errors.into_result(()).err().map(|error| error.to_compile_error());
        return quote! { #error #item };
    }
    let derives = ["Clone", "Debug", "PartialEq", "Serialize", "Deserialize", "JsonSchema"];
    expand(item, &derives, None, Errors::default(), |paths| paths)
}

fn expand(
    item: &TokenStream,
    derives: &[&str],
    status: Option<Type>,
    mut errors: Errors,
    attributes: impl Fn(TokenStream) -> TokenStream,
) -> TokenStream {
    let mut input: DeriveInput = match syn::parse2(item.clone()) {
        Ok(input) => input,
        Err(error) => {
            let error = error.to_compile_error();
            return quote! { #item #error };
        }
    };
    let stand_ins = unmarked::check(&input, status, source::text().as_deref(), &mut errors);
    unstorable::check(&mut input, &mut errors);
    replace_marks(&mut input, &mut errors);
    leave_out(&OURS, &mut input.attrs);
    let present = derived(&input.attrs);
    let missing = derives.iter().filter(|name| !present.iter().any(|known| known == *name)).map(|name| path_of(name));
    // Values of enums are written as in Rust; fields, also those of variants, are not.
    let rename = match input.data {
        Data::Enum(_) => "rename_all_fields",
        _ => "rename_all",
    };
    let (option, given) = (format_ident!("{rename}"), renames(&input.attrs, rename));
    let rename = (!given).then(|| quote!(, #option = "camelCase"));
    let paths = attributes(quote! {
        #[serde(crate = "::kctl::__private_0_1::serde" #rename)]
        #[schemars(crate = "::kctl::__private_0_1::schemars")]
    });
    let errors = errors.into_result(()).err().map(|errors| errors.to_compile_error());
    quote! {
        #[derive(#(#missing),*)]
        #paths
        #input
        #stand_ins
        #errors
    }
}

/// Takes derives out that are made here anyway: written as usual, they would need an import, and the names of two more crates.
fn leave_out(names: &[&str], attributes: &mut [Attribute]) {
    let is_left_out = |path: &syn::Path| path.segments.last().is_some_and(|last| names.iter().any(|n| last.ident == n));
    for attribute in attributes.iter_mut().filter(|attribute| attribute.path().is_ident("derive")) {
        let paths = attribute.parse_args_with(Punctuated::<syn::Path, syn::Token![,]>::parse_terminated);
        if let Ok(paths) = paths
            && paths.iter().any(is_left_out)
        {
            let kept = paths.iter().filter(|path| !is_left_out(path));
            *attribute = syn::parse_quote!(#[derive(#(#kept),*)]);
        }
    }
}

/// Puts what schemars understands in the place of all marks.
fn replace_marks(input: &mut DeriveInput, errors: &mut Errors) {
    marks::replace(&mut input.attrs, NoneIs::Written, errors);
    let mut of_fields = |fields: &mut Fields| {
        for field in fields {
            let none = NoneIs::of(field, &input.attrs);
            marks::replace(&mut field.attrs, none, errors);
        }
    };
    match &mut input.data {
        Data::Struct(data) => of_fields(&mut data.fields),
        Data::Enum(data) => data.variants.iter_mut().for_each(|variant| of_fields(&mut variant.fields)),
        Data::Union(_) => {}
    }
    if let Data::Enum(data) = &mut input.data {
        data.variants.iter_mut().for_each(|variant| marks::replace(&mut variant.attrs, NoneIs::Written, errors));
    }
}

fn path_of(name: &str) -> TokenStream {
    match name {
        "Serialize" => quote!(::kctl::__private_0_1::serde::Serialize),
        "Deserialize" => quote!(::kctl::__private_0_1::serde::Deserialize),
        "JsonSchema" => quote!(::kctl::__private_0_1::schemars::JsonSchema),
        "CustomResource" => quote!(::kctl::__private_0_1::kube::CustomResource),
        "Clone" => quote!(::core::clone::Clone),
        "Debug" => quote!(::core::fmt::Debug),
        _ => quote!(::core::cmp::PartialEq),
    }
}

/// What the user derives: deriving it twice would be an error in code that the user does not see.
pub(crate) fn derived(attributes: &[Attribute]) -> Vec<String> {
    let derives = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
    let parse =
        |attribute: &Attribute| attribute.parse_args_with(Punctuated::<syn::Path, syn::Token![,]>::parse_terminated);
    let paths = derives.filter_map(|attribute| parse(attribute).ok()).flatten();
    paths.filter_map(|path| path.segments.last().map(|segment| segment.ident.to_string())).collect()
}

fn renames(attributes: &[Attribute], option: &str) -> bool {
    let serde = attributes.iter().filter(|attribute| attribute.path().is_ident("serde"));
    serde.into_iter().any(|attribute| attribute.to_token_stream().to_string().contains(option))
}
