//! `Model` → tokens, for `#[resource]` and `#[schema]`; nothing can fail here.
//!
//! ```text
//! #[resource(group = "example.com", version = "v1", kind = "Site", namespaced)]
//! struct SiteSpec { #[kctl(min_length = 1)] host: String, min: Option<i32> }
//! ```
//!
//! becomes, without the list of crates and with `__p` for `::kctl::__private_0_1`,
//!
//! ```text
//! #[derive(Clone, Debug, PartialEq, __p::serde::Serialize, …, __p::kube::CustomResource)]
//! #[kube(group = "example.com", version = "v1", kind = "Site", namespaced, attr = "…Structure…", crates(…))]
//! #[serde(crate = "__p::serde", rename_all = "camelCase")]
//! #[schemars(crate = "__p::schemars")]
//! struct SiteSpec {
//!     #[schemars(transform = __p::Markers("{\"min_length\":1}"))]
//!     host: String,
//!     #[serde(skip_serializing_if = "::core::option::Option::is_none")]
//!     min: Option<i32>,
//! }
//! ```
//!
//! `tests/expand/resource.rs` has a larger example. `kctl::__private_0_1::Markers` is a transform of schemars: it reads the JSON
//! when the CRD is printed, and writes it into the schema.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, Data, DeriveInput, Ident, ext::IdentExt, parse_quote, punctuated::Punctuated};

use super::{
    json::Json,
    kube_options,
    model::{Annotations, Derive, FlattenedParts, KubeOption, Model, Rename, Resource, SchemaSource},
    none_policy::NonePolicy,
};
use crate::crate_path::CratePath;

/// Emits the item with its derives and attributes, stubs of parts that lack `#[schema]`, and the mistakes.
pub(super) fn emit(model: Model) -> TokenStream {
    let Model { mut item, krate, resource, derives, rename, flattened, on_type, on_fields, on_variants, stubs, errors } =
        model;
    let krate = &krate;
    annotate(&mut item.attrs, &on_type, krate);
    annotate_fields(&mut item.data, &on_fields, krate);
    if let Data::Enum(data) = &mut item.data {
        data.variants.iter_mut().zip(&on_variants).for_each(|(variant, on)| annotate(&mut variant.attrs, on, krate));
    }
    remove_external_derives(&mut item.attrs);
    let has_json = derives.iter().any(|derive| derive.reads_json_attributes());
    if !has_json {
        remove_json_attributes(&mut item);
    }
    // clippy's lint group `nursery` asks for `Eq` next to each `PartialEq`, also next to one that the user did not write.
    let allow = derives
        .contains(&Derive::PartialEq)
        .then(|| quote!(#[allow(clippy::derive_partial_eq_without_eq, reason = "a field may be a float")]));
    let derives = derives.into_iter().map(|derive| path(derive, krate));
    let rename = rename.map(camel_case);
    let kube = resource.as_ref().map(|resource| kube(resource, krate));
    let unserved_status = resource.as_ref().and_then(unserved_status);
    let root = resource.filter(|resource| !resource.root.is_empty()).map(|Resource { root, .. }| {
        let transform = transform(vec![("root".to_owned(), Json::Object(root.into_fields()))], krate);
        quote!(#[schemars(transform = #transform)])
    });
    let flattened = flattened.as_ref().map(|parts| comparison(parts, krate));
    let json = has_json.then(|| {
        let [serde, schemars] = ["serde", "schemars"].map(|name| format!("{}::{name}", krate.private_module_text()));
        quote! {
            #[serde(crate = #serde #rename)]
            #[schemars(crate = #schemars)]
            #root
            #flattened
        }
    });
    let stubs = stubs.iter().map(|stub| stub_traits(&stub.name, &stub.derives, krate));
    let errors = errors.map(|errors| errors.to_compile_error());
    quote! {
        #allow
        #[derive(#(#derives),*)]
        #kube
        #json
        #item
        #unserved_status
        #(#stubs)*
        #errors
    }
}

/// Emits the serde option for camel case in JSON.
fn camel_case(rename: Rename) -> TokenStream {
    let option = format_ident!("{}", rename.option());
    quote!(, #option = "camelCase")
}

/// Emits the attribute of kube's derive. All of its paths lead into kctl, so that the user's crate depends on kctl alone.
fn kube(Resource { options, schema, .. }: &Resource, krate: &CratePath) -> TokenStream {
    let (options, private) = (options.iter().map(kube_option), krate.private_module());
    // `attr` puts an attribute on the type that kube's derive makes. It accepts no attribute named `schemars`, hence `cfg_attr`.
    let structure = (*schema == SchemaSource::Derived).then(|| {
        let attribute = format!("cfg_attr(all(), schemars(transform = {}::Structure))", krate.private_module_text());
        quote!(attr = #attribute,)
    });
    quote! {
        #[kube(#(#options,)* #structure crates(
            kube = #private::kube,
            kube_core = #private::kube::core,
            k8s_openapi = #private::k8s_openapi,
            schemars = #private::schemars,
            serde = #private::serde,
            serde_json = #private::serde_json,
        ))]
    }
}

/// Emits the constant that tells controllers of a kind that its CRD has no `status` subresource, although its type has
/// a status.
fn unserved_status(Resource { options, root, .. }: &Resource) -> Option<TokenStream> {
    let kind = kube_options::kind(options).filter(|_| root.get("status_subresource") == Some(&Json::Bool(false)))?;
    Some(quote! {
        #[allow(dead_code, unreachable_pub, reason = "the declarations of controllers read it")]
        impl #kind {
            #[doc(hidden)]
            pub const KCTL_STATUS_SUBRESOURCE: bool = false;
        }
    })
}

/// Emits one option of kube's derive.
fn kube_option(option: &KubeOption) -> TokenStream {
    match option {
        KubeOption::Written { name, value } => quote!(#name #(#value)*),
        KubeOption::Text { name, value } => quote!(#name = #value),
        KubeOption::Namespaced => quote!(namespaced),
    }
}

/// Adds the attributes of all fields, in the order in which `check` read them.
fn annotate_fields(data: &mut Data, on_fields: &[Annotations], krate: &CratePath) {
    let fields: Vec<_> = match data {
        Data::Struct(data) => data.fields.iter_mut().collect(),
        Data::Enum(data) => data.variants.iter_mut().flat_map(|variant| &mut variant.fields).collect(),
        Data::Union(_) => Vec::new(),
    };
    debug_assert_eq!(fields.len(), on_fields.len(), "`check` reads the markers of each field");
    fields.into_iter().zip(on_fields).for_each(|(field, on)| annotate(&mut field.attrs, on, krate));
}

/// Adds the attributes of serde and schemars that do what the markers say.
fn annotate(attributes: &mut Vec<Attribute>, Annotations { markers, none }: &Annotations, krate: &CratePath) {
    if *none != NonePolicy::AsSerde {
        attributes.push(parse_quote!(#[serde(skip_serializing_if = "::core::option::Option::is_none")]));
    }
    let mut fields = markers.clone().into_fields();
    if *none == NonePolicy::SkipAndForbidNull {
        fields.push(("omitted".to_owned(), Json::Bool(true)));
    }
    if !fields.is_empty() {
        let transform = transform(fields, krate);
        attributes.push(parse_quote!(#[schemars(transform = #transform)]));
    }
}

/// Emits the transform of schemars. The markers are one JSON string: an expression for each of them would be twenty lines.
fn transform(markers: Vec<(String, Json)>, krate: &CratePath) -> TokenStream {
    let (mut text, private) = (String::new(), krate.private_module());
    Json::Object(markers).write(&mut text);
    quote!(#private::Markers(#text))
}

/// Emits the transform that compares the fields of flattened parts with each other and with the struct's.
fn comparison(FlattenedParts { names, parts }: &FlattenedParts, krate: &CratePath) -> TokenStream {
    let private = krate.private_module();
    let parts = parts.iter().map(|part| {
        let (name, ty) = (part.ident.as_ref().map(|name| name.unraw().to_string()), &part.ty);
        quote!(.with::<#ty>(#name))
    });
    quote!(#[schemars(transform = #private::Flattened::new(&[#(#names),*])#(#parts)*)])
}

/// Emits the path of a derive. Derives of other crates are reached through kctl.
fn path(derive: Derive, krate: &CratePath) -> TokenStream {
    let private = krate.private_module();
    match derive {
        Derive::Clone => quote!(::core::clone::Clone),
        Derive::Debug => quote!(::core::fmt::Debug),
        Derive::PartialEq => quote!(::core::cmp::PartialEq),
        Derive::Serialize => quote!(#private::serde::Serialize),
        Derive::Deserialize => quote!(#private::serde::Deserialize),
        Derive::JsonSchema => quote!(#private::schemars::JsonSchema),
        Derive::CustomResource => quote!(#private::kube::CustomResource),
    }
}

/// Removes the user's derives of serde, schemars and kube. They would need an import and dependencies on these crates,
/// and the trait would be implemented twice.
fn remove_external_derives(attributes: &mut [Attribute]) {
    let external = [Derive::Serialize, Derive::Deserialize, Derive::JsonSchema, Derive::CustomResource];
    let is_external =
        |path: &syn::Path| path.segments.last().is_some_and(|last| external.iter().any(|d| last.ident == d.name()));
    for attribute in attributes.iter_mut().filter(|attribute| attribute.path().is_ident("derive")) {
        let paths = attribute.parse_args_with(Punctuated::<syn::Path, syn::Token![,]>::parse_terminated);
        if let Ok(paths) = paths
            && paths.iter().any(is_external)
        {
            let others = paths.iter().filter(|path| !is_external(path));
            *attribute = parse_quote!(#[derive(#(#others),*)]);
        }
    }
}

/// Removes the attributes of serde and schemars: with all three derives above kctl's attribute, rustc does not know them
/// any more.
fn remove_json_attributes(item: &mut DeriveInput) {
    let remove = |attributes: &mut Vec<Attribute>| {
        attributes.retain(|attribute| !attribute.path().is_ident("serde") && !attribute.path().is_ident("schemars"));
    };
    remove(&mut item.attrs);
    match &mut item.data {
        Data::Struct(data) => data.fields.iter_mut().for_each(|field| remove(&mut field.attrs)),
        Data::Enum(data) => {
            for variant in &mut data.variants {
                remove(&mut variant.attrs);
                variant.fields.iter_mut().for_each(|field| remove(&mut field.attrs));
            }
        }
        Data::Union(_) => {}
    }
}

/// Emits implementations for a type that lacks `#[schema]`: those traits that the derives of its user require and `derives`
/// does not name. They compile and are never called, because the mistake fails the build.
pub(crate) fn stub_traits(ty: &Ident, derives: &[String], krate: &CratePath) -> TokenStream {
    let private = krate.private_module();
    let lacks = |name: &str| !derives.iter().any(|derived| derived == name);
    let clone = lacks("Clone")
        .then(|| quote!(impl ::core::clone::Clone for #ty { fn clone(&self) -> Self { ::core::unreachable!() } }));
    let debug = lacks("Debug").then(|| {
        quote! {
            impl ::core::fmt::Debug for #ty {
                fn fmt(&self, _: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result { ::core::unreachable!() }
            }
        }
    });
    let equal = lacks("PartialEq").then(
        || quote!(impl ::core::cmp::PartialEq for #ty { fn eq(&self, _: &Self) -> bool { ::core::unreachable!() } }),
    );
    let serialize = lacks("Serialize").then(|| {
        quote! {
            impl #private::serde::Serialize for #ty {
                fn serialize<S: #private::serde::Serializer>(
                    &self,
                    _: S,
                ) -> ::core::result::Result<S::Ok, S::Error> {
                    ::core::unreachable!()
                }
            }
        }
    });
    let deserialize = lacks("Deserialize").then(|| {
        quote! {
            impl<'de> #private::serde::Deserialize<'de> for #ty {
                fn deserialize<D: #private::serde::Deserializer<'de>>(
                    _: D,
                ) -> ::core::result::Result<Self, D::Error> {
                    ::core::unreachable!()
                }
            }
        }
    });
    let schema = lacks("JsonSchema").then(|| {
        quote! {
            impl #private::schemars::JsonSchema for #ty {
                fn schema_name() -> ::std::borrow::Cow<'static, str> { ::core::unreachable!() }
                fn json_schema(
                    _: &mut #private::schemars::SchemaGenerator,
                ) -> #private::schemars::Schema {
                    ::core::unreachable!()
                }
            }
        }
    });
    quote! {
        #clone
        #debug
        #equal
        #serialize
        #deserialize
        #schema
    }
}
