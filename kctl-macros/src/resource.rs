//! `#[resource(…)]` and `#[schema]`: kube's derive, serde and schemars with all paths pointing into kctl.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, DeriveInput, Error, punctuated::Punctuated};

pub(crate) fn expand_resource(options: &TokenStream, item: &TokenStream) -> TokenStream {
    let derives = ["Clone", "Debug", "PartialEq", "Serialize", "Deserialize", "JsonSchema", "CustomResource"];
    expand(item, &derives, |paths| {
        quote! {
            #[kube(#options, crates(
                kube = ::kctl::__private::kube,
                kube_core = ::kctl::__private::kube::core,
                k8s_openapi = ::kctl::__private::k8s_openapi,
                schemars = ::kctl::__private::schemars,
                serde = ::kctl::__private::serde,
                serde_json = ::kctl::__private::serde_json,
            ))]
            #paths
        }
    })
}

pub(crate) fn expand_schema(options: &TokenStream, item: &TokenStream) -> TokenStream {
    if !options.is_empty() {
        let error = Error::new_spanned(options, "`#[schema]` takes no options\nhelp: write `#[schema]`\ncode: K0029");
        let error = error.to_compile_error();
        return quote! { #error #item };
    }
    let derives = ["Clone", "Debug", "PartialEq", "Serialize", "Deserialize", "JsonSchema"];
    expand(item, &derives, |paths| paths)
}

fn expand(item: &TokenStream, derives: &[&str], attributes: impl Fn(TokenStream) -> TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(item.clone()) {
        Ok(input) => input,
        Err(error) => {
            let error = error.to_compile_error();
            return quote! { #item #error };
        }
    };
    let present = derived(&input.attrs);
    let missing = derives.iter().filter(|name| !present.iter().any(|known| known == *name)).map(|name| path_of(name));
    // Values of enums are written as in Rust; fields, also those of variants, are not.
    let rename = match input.data {
        syn::Data::Enum(_) => "rename_all_fields",
        _ => "rename_all",
    };
    let (option, given) = (format_ident!("{rename}"), renames(&input.attrs, rename));
    let rename = (!given).then(|| quote!(, #option = "camelCase"));
    let paths = attributes(quote! {
        #[serde(crate = "::kctl::__private::serde" #rename)]
        #[schemars(crate = "::kctl::__private::schemars")]
    });
    quote! {
        #[derive(#(#missing),*)]
        #paths
        #item
    }
}

fn path_of(name: &str) -> TokenStream {
    match name {
        "Serialize" => quote!(::kctl::__private::serde::Serialize),
        "Deserialize" => quote!(::kctl::__private::serde::Deserialize),
        "JsonSchema" => quote!(::kctl::__private::schemars::JsonSchema),
        "CustomResource" => quote!(::kctl::__private::kube::CustomResource),
        "Clone" => quote!(::core::clone::Clone),
        "Debug" => quote!(::core::fmt::Debug),
        _ => quote!(::core::cmp::PartialEq),
    }
}

/// What the user derives: deriving it twice would be an error in code that the user does not see.
fn derived(attributes: &[Attribute]) -> Vec<String> {
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
