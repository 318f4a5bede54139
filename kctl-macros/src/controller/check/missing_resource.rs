//! A primary that is a struct of the same file without `#[resource]`.
//!
//! rustc would report each trait that the struct lacks, and never name the attribute. So the check reads the file,
//! and reports K0030 once if nothing in it could make a kind of the struct. Otherwise rustc reports what it finds.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Attribute, FnArg, Item, ItemStruct, Type};

use crate::{
    codes,
    crate_path::CratePath,
    diagnostics::Errors,
    function::{generic_argument, strip_pointers, with_span},
    resource,
    source_file::{self, items_of},
};

/// Attributes that don't turn a struct into a kind. Any other one may do so.
const NEUTRAL_ATTRIBUTES: [&str; 11] =
    ["doc", "derive", "allow", "expect", "warn", "deny", "deprecated", "must_use", "non_exhaustive", "serde", "schema"];

/// A struct that should be a kind.
pub(in crate::controller) struct MissingResource {
    kind: Ident,
    /// `true` for `struct Site`, and `false` for `struct SiteSpec` without a kind.
    is_kind: bool,
    /// The derives of the struct: the stub implements the other traits.
    derives: Vec<String>,
    /// `SiteStatus`, where there is one.
    status: Option<Ident>,
    /// `pub struct SiteSpec`.
    declaration: String,
    /// This is the first controller of the kind in its file: it alone reports the mistake.
    is_first: bool,
}

/// Returns the struct of a primary, if the file of the attribute shows that it lacks `#[resource]`.
pub(super) fn find(kind: &Type, controller: &Ident) -> Option<MissingResource> {
    find_in(&source_file::read()?, kind, controller)
}

/// Returns the struct of `kind` in a file. `None` if the file has the kind as a string, which may be
/// `kind = "Site"`, or if an item may define the name in another way.
fn find_in(text: &str, kind: &Type, controller: &Ident) -> Option<MissingResource> {
    let Type::Path(path) = kind else { return None };
    let kind = path.path.get_ident()?;
    let spec = format_ident!("{kind}Spec");
    let status = format_ident!("{kind}Status");
    // Most files need no parser.
    if text.contains(&format!("\"{kind}\""))
        || source_file::definitions_of(text, kind).next().is_none()
            && source_file::definitions_of(text, &spec).next().is_none()
    {
        return None;
    }
    let file = syn::parse_file(text).ok()?;
    let items = items_of(&file);
    if items.iter().any(|item| may_define(item, kind)) {
        return None;
    }
    let structs_named = |name: &Ident| -> Vec<&ItemStruct> {
        let structs = items.iter().filter_map(|item| match item {
            Item::Struct(item) if item.ident == *name => Some(item),
            _ => None,
        });
        structs.collect()
    };
    let (own, specs) = (structs_named(kind), structs_named(&spec));
    let (found, is_kind) = match (own.as_slice(), specs.as_slice()) {
        ([found], _) => (*found, true),
        ([], [found]) => (*found, false),
        _ => return None,
    };
    let silent = found.attrs.iter().all(|attribute| source_file::has_name(attribute, &NEUTRAL_ATTRIBUTES));
    let derives = resource::derived_traits(&found.attrs);
    if !silent || !found.generics.params.is_empty() || derives.iter().any(|name| name.contains("Resource")) {
        return None;
    }
    let vis = quote::ToTokens::to_token_stream(&found.vis).to_string();
    let vis = if vis.is_empty() { String::new() } else { format!("{vis} ") };
    Some(MissingResource {
        kind: kind.clone(),
        is_kind,
        derives,
        status: (!structs_named(&status).is_empty()).then_some(status),
        declaration: format!("{vis}struct {spec}"),
        is_first: first_controller_of(&items, kind).is_none_or(|first| first == controller),
    })
}

/// Returns `true` if an item may define or import the name, or implement the traits of a kind for it.
fn may_define(item: &Item, kind: &Ident) -> bool {
    let is_kind = |ty: &Type| matches!(ty, Type::Path(path) if path.path.is_ident(kind));
    match item {
        Item::Impl(item) => item.trait_.as_ref().is_some_and(|(path, _)| {
            is_kind(&item.self_ty)
                && path.segments.last().is_some_and(|last| last.ident.to_string().contains("Resource"))
        }),
        Item::Use(item) => resource::contains_word(&quote!(#item), kind),
        Item::Type(item) => item.ident == *kind,
        Item::Enum(item) => item.ident == *kind,
        Item::Macro(item) => resource::contains_word(&item.mac.tokens, kind),
        _ => false,
    }
}

/// Returns the first controller of the file that reconciles the kind. It alone reports the mistake, so that several
/// controllers of one kind are one error.
fn first_controller_of<'a>(items: &[&'a Item], kind: &Ident) -> Option<&'a Ident> {
    let is_controller = |attributes: &[Attribute]| attributes.iter().any(|a| source_file::has_name(a, &["controller"]));
    let is_of = |ty: &Type| matches!(strip_pointers(ty), Type::Path(path) if path.path.is_ident(kind));
    items.iter().find_map(|item| match item {
        Item::Fn(item) if is_controller(&item.attrs) => {
            let primary = item.sig.inputs.iter().find_map(|argument| match argument {
                FnArg::Typed(argument) if generic_argument(&argument.ty, "Context").is_none() => Some(&*argument.ty),
                _ => None,
            });
            primary.is_some_and(is_of).then_some(&item.sig.ident)
        }
        Item::Struct(item) if is_controller(&item.attrs) => {
            let options = item.attrs.iter().find(|a| source_file::has_name(a, &["controller"]))?;
            resource::contains_word(&quote!(#options), kind).then_some(&item.ident)
        }
        _ => None,
    })
}

impl MissingResource {
    /// Reports K0030, once for a kind. Returns `true` if it did.
    pub(super) fn report(&self, errors: &mut Errors) -> bool {
        if !self.is_first {
            return false;
        }
        let Self { kind, is_kind, status, declaration, .. } = self;
        let status = status.as_ref().map(|status| format!(", status = \"{status}\"")).unwrap_or_default();
        let attribute =
            format!("#[resource(group = \"example.com\", version = \"v1\", kind = \"{kind}\", namespaced{status})]");
        let (what, help) = if *is_kind {
            let what = format!("`{kind}` is not a Kubernetes kind: its struct has no `#[resource]`");
            (what, format!("write `{attribute} {declaration}`: its fields are then in `spec` of a `{kind}`"))
        } else {
            let what = format!("there is no kind `{kind}`: `{kind}Spec` has no `#[resource]`");
            (what, format!("write `{attribute}` above `{declaration}`"))
        };
        errors.push(kind, codes::NOT_A_KIND, &what, &help);
        true
    }

    /// Emits the implementations that turn the struct into a kind, so that nothing else is reported. For a spec without
    /// its kind it emits the kind, too.
    pub(in crate::controller) fn stub(&self, krate: &CratePath) -> TokenStream {
        let private = krate.private_module();
        let kind = with_span(&self.kind, self.kind.span().resolved_at(Span::call_site()));
        let spec = format_ident!("{kind}Spec");
        let status = self.status.as_ref().map_or_else(|| quote!(()), |status| quote!(#status));
        let definition = (!self.is_kind).then(|| {
            quote! {
                #[allow(dead_code, private_interfaces, missing_docs, reason = "it stands in for a kind with mistakes")]
                pub struct #kind {
                    pub metadata: #private::ObjectMeta,
                    pub spec: #spec,
                    pub status: ::core::option::Option<#status>,
                }
                #[allow(dead_code, private_interfaces, missing_docs, reason = "it stands in for a kind with mistakes")]
                impl #kind {
                    pub fn new(_: &str, _: #spec) -> Self { ::core::unreachable!() }
                }
            }
        });
        let derives: &[String] = if self.is_kind { &self.derives } else { &[] };
        let traits = resource::stub_traits(&kind, derives, krate);
        quote! {
            #definition
            const _: () = {
                #traits
                impl #private::kube::Resource for #kind {
                    type DynamicType = ();
                    type Scope = #private::kube::core::NamespaceResourceScope;
                    fn kind(_: &()) -> ::std::borrow::Cow<'_, str> { ::core::unreachable!() }
                    fn group(_: &()) -> ::std::borrow::Cow<'_, str> { ::core::unreachable!() }
                    fn version(_: &()) -> ::std::borrow::Cow<'_, str> { ::core::unreachable!() }
                    fn plural(_: &()) -> ::std::borrow::Cow<'_, str> { ::core::unreachable!() }
                    fn meta(&self) -> &#private::ObjectMeta { ::core::unreachable!() }
                    fn meta_mut(&mut self) -> &mut #private::ObjectMeta { ::core::unreachable!() }
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str) -> Option<(bool, bool)> {
        let kind: Type = syn::parse_str("Site").unwrap();
        let controller: Ident = syn::parse_str("site").unwrap();
        find_in(file, &kind, &controller).map(|found| (found.is_kind, found.is_first))
    }

    #[test]
    fn stub_of_a_kind_names_the_given_crate() {
        let (kind, controller) = (syn::parse_str("Site").unwrap(), syn::parse_str("site").unwrap());
        let krate = CratePath::from(syn::parse_str::<syn::Path>("::other").unwrap());
        for file in ["struct Site;", "struct SiteSpec;"] {
            let text = find_in(file, &kind, &controller).unwrap().stub(&krate).to_string();
            assert!(text.contains(":: other :: __private_0_1") && !text.contains("kctl"), "{file}: {text}");
        }
    }

    #[test]
    fn struct_certainly_without_resource_is_found() {
        let first = "#[controller] async fn site(site: Arc<Site>, cx: Context<site>) -> Result<Action> {}";
        let other = "#[controller] async fn other(site: Arc<Site>, cx: Context<other>) -> Result<Action> {}";
        for (file, expected) in [
            (format!("pub struct Site {{ a: i32 }} {first}"), Some((true, true))),
            (format!("#[derive(Clone, Debug, Serialize)] struct SiteSpec {{ a: i32 }} {first}"), Some((false, true))),
            (format!("#[schema] struct SiteSpec {{ a: i32 }} {first}"), Some((false, true))),
            (format!("struct SiteSpec {{ a: i32 }} {other} {first}"), Some((false, false))),
            (format!("#[resource(kind = \"Site\")] struct SiteSpec {{ a: i32 }} {first}"), None),
            (format!("#[derive(CustomResource)] #[kube(kind = \"Site\")] struct SiteSpec {{ a: i32 }} {first}"), None),
            (format!("use elsewhere::Site; struct SiteSpec {{ a: i32 }} {first}"), None),
            (format!("struct Site; impl kube::Resource for Site {{}} {first}"), None),
            (format!("type Site = Other; struct SiteSpec; {first}"), None),
            (format!("kinds!(Site); struct SiteSpec; {first}"), None),
            (format!("#[other] struct Site; {first}"), None),
            (format!("use elsewhere::*; {first}"), None),
        ] {
            assert_eq!(found(&file), expected, "{file}");
        }
    }
}
