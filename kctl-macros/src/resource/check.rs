//! The attribute and the type → `Model`; all mistakes are reported at once.
//!
//! Two mistakes leave no model, because there is nothing to derive for: an item that is not a type, and a type with a
//! syntax error. Every other mistake is recorded in `Model::errors`.

use proc_macro2::{Ident, TokenStream};
use syn::{Attribute, Data, DeriveInput, Field, Fields, Type, Variant};

use super::{
    crate_option,
    derive_order::{self, derived_traits},
    flattened,
    generics::{self, BorrowedFields},
    inner_markers,
    json::Json,
    json_names, kube_options,
    marker::{Marker, Markers},
    markers,
    meta_option::MetaOption,
    missing_schema,
    model::{Annotations, Derive, Model, Rename, Resource},
    none_policy::NonePolicy,
    skip_serializing_if, two_names, unreadable, unstorable,
};
use crate::{codes, crate_path::CratePath, diagnostics::Errors, function::item_keyword, source_file};

/// Reads `#[resource(…)]` and the spec below it.
pub(super) fn resource(options: &TokenStream, item: &TokenStream) -> syn::Result<Model> {
    let mut errors = Errors::default();
    let (krate, options) = crate_option::take(options, &mut errors);
    let (root, options) = markers::split_root(&options, &mut errors);
    let mut item = parse_item(item, "resource")?;
    generics::check_kind(&mut item, &mut errors);
    let options = kube_options::check(&options, &item.ident, &mut errors);
    if let Some(spec) = kube_options::spec_name(&options, &item, &mut errors) {
        item.ident = spec;
    }
    kube_options::report_subresource_without_status(&options, &root, &mut errors);
    let status = kube_options::status(&options);
    let schema = kube_options::schema_source(&options);
    let mut model = describe(item, "resource", krate, status, errors);
    model.derives.push(Derive::CustomResource);
    model.resource = Some(Resource { options, root, schema });
    Ok(model)
}

/// Reads `#[schema]` and the type below it.
pub(super) fn schema(options: &TokenStream, item: &TokenStream) -> syn::Result<Model> {
    let mut errors = Errors::default();
    let (krate, options) = crate_option::take(options, &mut errors);
    if !options.is_empty() {
        let help = "write `#[schema]`, and field attributes as `#[kctl(…)]` below it";
        errors.push(options, codes::SCHEMA_WITH_OPTIONS, "`#[schema]` takes no option but `crate`", help);
    }
    Ok(describe(parse_item(item, "schema")?, "schema", krate, None, errors))
}

/// Reads the struct or the enum below the attribute.
///
/// # Errors
///
/// K0121 for another item, and the error of the parser for a type that is half typed.
fn parse_item(item: &TokenStream, attribute: &str) -> syn::Result<DeriveInput> {
    let is_type = |word: &Ident| ["struct", "enum", "union"].iter().any(|keyword| word == keyword);
    syn::parse2(item.clone()).map_err(|error| {
        let Some(keyword) = item_keyword(item).filter(|word| !is_type(word)) else { return error };
        let what = format!("`#[{attribute}]` must be applied to a struct or an enum");
        let help = "put it on `struct Name { … }` or `enum Name { … }`; a function that reconciles has `#[controller]`";
        let mut errors = Errors::default();
        errors.push(keyword, codes::NOT_A_STRUCT_OR_ENUM, &what, help);
        errors.into_error()
    })
}

/// Reads what both attributes have in common. `status` is the type that `status = …` names: it is a part of the kind, too.
fn describe(
    mut item: DeriveInput,
    attribute: &str,
    krate: CratePath,
    status: Option<Type>,
    mut errors: Errors,
) -> Model {
    let file = source_file::read();
    let stubs = missing_schema::check(&item, status, file.as_deref(), &mut errors);
    let derived_above = derive_order::check(&item, attribute, file.as_deref(), &mut errors);
    let n_errors = errors.len();
    unstorable::check(&mut item, &krate, file.as_deref(), &mut errors);
    let reported = if errors.len() > n_errors { BorrowedFields::Reported } else { BorrowedFields::Unreported };
    generics::check_lifetimes(&mut item, reported, &mut errors);
    let rename = rename(&item);
    if rename.is_some() {
        json_names::check(&mut item, &mut errors);
    }
    let mut on_type = annotations(&mut item.attrs, NonePolicy::AsSerde, &mut errors);
    on_type.markers.0.extend(choices(&item));
    let container = item.attrs.clone();
    let on_field = |field: &mut Field, errors: &mut Errors| {
        let none = NonePolicy::of(field, &container);
        let found = annotations(&mut field.attrs, none, errors);
        two_names::check(field.ident.as_ref(), &field.attrs, errors);
        skip_serializing_if::check(field, &container, &found.markers, errors);
        unreadable::check(field, &container, &found.markers, errors);
        inner_markers::check(field, &found.markers, errors);
        found
    };
    let on_fields = match &mut item.data {
        Data::Struct(data) => data.fields.iter_mut().map(|field| on_field(field, &mut errors)).collect(),
        Data::Enum(data) => {
            let fields = data.variants.iter_mut().flat_map(|variant| &mut variant.fields);
            fields.map(|field| on_field(field, &mut errors)).collect()
        }
        Data::Union(_) => Vec::new(),
    };
    let on_variants = match &mut item.data {
        Data::Enum(data) => {
            let variants = data.variants.iter_mut();
            let on_variant = |variant: &mut Variant| {
                two_names::check(Some(&variant.ident), &variant.attrs, &mut errors);
                annotations(&mut variant.attrs, NonePolicy::AsSerde, &mut errors)
            };
            variants.map(on_variant).collect()
        }
        Data::Struct(_) | Data::Union(_) => Vec::new(),
    };
    Model {
        derives: missing_derives(&item.attrs, &derived_above),
        flattened: flattened::parts(&item, rename),
        krate,
        rename,
        item,
        resource: None,
        on_type,
        on_fields,
        on_variants,
        stubs,
        errors: errors.into_result(()).err(),
    }
}

/// Returns the marker of an enum without data that has a doc comment on a variant: schemars describes each variant of
/// such an enum, and the marker makes it one list of values again.
fn choices(item: &DeriveInput) -> Option<Marker> {
    let Data::Enum(data) = &item.data else { return None };
    let has_docs = |attributes: &[Attribute]| attributes.iter().any(|attribute| attribute.path().is_ident("doc"));
    let is_plain = data.variants.iter().all(|variant| matches!(variant.fields, Fields::Unit));
    let is_documented = data.variants.iter().any(|variant| has_docs(&variant.attrs));
    let marker = || Marker {
        written: item.ident.clone(),
        name: "choices".to_owned(),
        value: Json::Bool(true),
        inner: Markers::default(),
    };
    (is_plain && is_documented).then(marker)
}

/// Removes the `#[kctl(…)]` attributes from a list of attributes and reads them.
fn annotations(attributes: &mut Vec<Attribute>, none: NonePolicy, errors: &mut Errors) -> Annotations {
    let markers: Markers = markers::take_markers(attributes, errors);
    Annotations { none: none.with(&markers), markers }
}

/// Returns the derives that the user's item lacks. Derives of other crates are emitted in place of the user's, except
/// for those above the attribute, which rustc has expanded.
fn missing_derives(attributes: &[Attribute], derived_above: &[Derive]) -> Vec<Derive> {
    let present = derived_traits(attributes);
    let is_missing = |derive: &Derive| derive.is_external() || !present.iter().any(|name| name == derive.name());
    Derive::SCHEMA_DERIVES.into_iter().filter(|derive| is_missing(derive) && !derived_above.contains(derive)).collect()
}

/// Returns the serde option for camel case, unless the user's `#[serde(…)]` has it.
fn rename(item: &DeriveInput) -> Option<Rename> {
    let rename = if matches!(item.data, Data::Enum(_)) { Rename::AllFields } else { Rename::All };
    let is_given = MetaOption::collect(&item.attrs, "serde").iter().any(|option| option.name == rename.option());
    (!is_given).then_some(rename)
}
