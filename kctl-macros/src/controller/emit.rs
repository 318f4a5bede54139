//! `Model` → tokens: one function for each emitted item; nothing can fail here.
//!
//! ```text
//! #[controller(owns = Pod(create))]
//! async fn configs(config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> { … }
//! ```
//!
//! becomes the function itself, and in addition
//!
//! ```text
//! struct configs {}
//! const _: () = {
//!     use ::kctl::__private_0_1 as __p;
//!     type __Primary = ConfigMap;
//!     type __K0 = Pod;
//!     impl __p::Controller for configs {
//!         type Primary = __Primary;
//!         type Verbs = __Verbs;
//!         fn spec() -> __p::ControllerSpec {
//!             __p::spec_of!(__Primary, "configs"; __K0).owns::<__K0>("owns = Pod(create)").verbs(&["create"]).build()
//!         }
//!     }
//!     __p::function!(configs, __Primary: |object, cx| __p::outcome(configs(object, cx).await));
//!     __p::primary!(pub struct __Verbs; configs, __Primary: );
//!     __p::has!(configs: WritesStatus);
//!     __p::permission!(pub struct __Verbs0; configs: Caches<__K0>, Declares<__K0>: create);
//!     …
//! };
//! ```
//!
//! Everything is in an anonymous constant, so that its names meet no name of the user. The macros with `!` are
//! `macro_rules!` of the runtime: they hold what is the same for each controller. `tests/expand` has whole
//! expansions.
//!
//! Tokens have the span of the user's word that they depend on. A verb that is missing is shown at the kind in the
//! attribute, a wrong result at the return type.

mod calls;
mod permissions;

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Ident, Type, ext::IdentExt, spanned::Spanned};

use self::permissions::{permissions, primary_permissions};
use super::check::last_segment;
use super::model::{Form, Model, Part, Relation, RelationKind, Setting};
use crate::{
    function::{local_name, with_span},
    marker_type,
};

/// Emits the item, its type, the specification and the permissions.
pub(super) fn emit(model: &Model, item: &TokenStream) -> TokenStream {
    let krate = &model.krate;
    let name_type =
        (model.form == Form::Function).then(|| marker_type::name_type(&model.docs, &model.vis, &model.name));
    let primary = primary_kind(model);
    let primary_type = kind(&primary, &model.primary);
    let controller = controller(model);
    let reconcile = reconcile(model);
    let kinds =
        model.relations.iter().enumerate().map(|(index, relation)| kind(&alias(index, relation), &relation.kind));
    let unique_kinds = unique_kinds(model);
    let parts = model.relations.iter().enumerate().filter_map(|(index, relation)| emit_part_alias(index, relation));
    let clusters = model.relations.iter().enumerate().filter_map(|(index, relation)| cluster(index, relation));
    let permissions = model.relations.iter().enumerate().map(|(index, relation)| permissions(model, index, relation));
    let primary_permissions = primary_permissions(model);
    let allows = (model.form == Form::Function)
        .then(|| quote!(#[allow(clippy::unused_async, reason = "a reconcile function is async")]));
    quote! {
        #allows
        #item
        #name_type
        const _: () = {
            use #krate::__private_0_1 as __p;
            #primary_type
            #(#kinds)*
            #unique_kinds
            #(#parts)*
            #(#clusters)*
            #controller
            #reconcile
            #primary_permissions
            #(#permissions)*
        };
    }
}

/// Emits the alias of a kind.
fn kind(alias: &Ident, ty: &Type) -> TokenStream {
    quote_spanned!(ty.span()=> type #alias = #ty;)
}

/// Returns the alias of the primary, with the span of the user's type.
fn primary_kind(model: &Model) -> Ident {
    format_ident!("__Primary", span = model.primary.span())
}

/// Returns the alias of a related kind, with the span of the user's type.
fn alias(index: usize, relation: &Relation) -> Ident {
    format_ident!("__K{index}", span = relation.kind.span())
}

/// Emits a trait for kinds that end in one name, such as `Pod` and `other::Pod`. If two of them are one type, rustc
/// reports E0119 for this trait first, and its name says what is wrong. The permissions are in conflict then, too.
fn unique_kinds(model: &Model) -> TokenStream {
    let relations = model.relations.iter().enumerate().filter(|(_, relation)| {
        relation.cluster().is_none() && !relation.declared_as.is_live() && matches!(relation.part, Part::Whole)
    });
    let related = relations.map(|(index, relation)| (alias(index, relation), &relation.kind));
    let kinds: Vec<(Ident, &Type)> = [(primary_kind(model), &model.primary)].into_iter().chain(related).collect();
    let is_shared = |name: &Ident| kinds.iter().filter(|(_, kind)| last_segment(kind) == Some(name)).count() > 1;
    let shared = kinds.iter().filter(|(_, kind)| last_segment(kind).is_some_and(is_shared));
    let impls = shared.map(|(alias, kind)| {
        let name = with_span(&model.name, kind.span());
        quote_spanned!(kind.span()=> impl __p::K0021EachKindIsDeclaredOnce<#alias> for #name {})
    });
    quote!(#(#impls)*)
}

/// Emits the alias of the type that objects are read as, if that is not their kind: the view, or `PartialObjectMeta`.
fn emit_part_alias(index: usize, relation: &Relation) -> Option<TokenStream> {
    let (kind, part) = (alias(index, relation), part_alias(index, relation)?);
    if let Part::View(_, ty) = &relation.part {
        return Some(quote_spanned!(ty.span()=> type #part = #ty;));
    }
    // With the span of the word, the path would be the user's, and longer than the prelude's for `unused_qualifications`.
    let metadata = quote!(__p::PartialObjectMeta);
    Some(quote_spanned!(part.span()=> type #part = #metadata<#kind>;))
}

/// Returns the name of that alias.
fn part_alias(index: usize, relation: &Relation) -> Option<Ident> {
    let span = match &relation.part {
        Part::Whole => return None,
        Part::Metadata(word) => word.span(),
        Part::View(_, ty) => ty.span(),
    };
    Some(format_ident!("__V{index}", span = span))
}

/// Returns the builder's call for the part of an object that the cache keeps.
fn field_mask_call(index: usize, relation: &Relation) -> Option<TokenStream> {
    match &relation.part {
        Part::Whole => None,
        Part::Metadata(word) => Some(quote_spanned!(word.span()=> .metadata())),
        Part::View(_, ty) => {
            let view = part_alias(index, relation);
            Some(quote_spanned!(ty.span()=> .view::<#view>()))
        }
    }
}

/// Emits the alias of the type that names the cluster of a relation.
fn cluster(index: usize, relation: &Relation) -> Option<TokenStream> {
    let (path, alias) = (relation.cluster()?, cluster_alias(index, relation)?);
    Some(quote_spanned!(path.span()=> type #alias = #path;))
}

/// Returns the name of that alias.
fn cluster_alias(index: usize, relation: &Relation) -> Option<Ident> {
    relation.cluster().map(|path| format_ident!("__M{index}", span = path.span()))
}

/// Returns the builder's call for the cluster of a relation. Owned kinds need none: the builder puts them in the
/// primary's cluster.
fn cluster_call(index: usize, relation: &Relation) -> Option<TokenStream> {
    if let Some(alias) = cluster_alias(index, relation) {
        return Some(quote_spanned!(alias.span()=> .on_cluster::<#alias>()));
    }
    let on = relation.on().filter(|_| relation.declared_as != RelationKind::Owns)?;
    Some(quote!(.on(#on)))
}

/// Emits `impl Controller`: the primary, the specification, `finalize` and `converged`.
fn controller(model: &Model) -> TokenStream {
    let name = &model.name;
    let text = name.unraw().to_string();
    let (primary, calls) = (primary_kind(model), model.settings.iter().map(calls::setting));
    let relations = model.relations.iter().enumerate().map(|(index, relation)| {
        let (alias, calls) = (alias(index, relation), calls::relation(relation));
        let method = Ident::new(method(relation.declared_as), relation.kind.span());
        let mut text = Literal::string(&calls::text(relation));
        text.set_span(relation.kind.span());
        let read = match relation.part {
            Part::Metadata(_) => part_alias(index, relation).unwrap_or(alias),
            _ => alias,
        };
        let new = quote_spanned!(relation.kind.span()=> .#method::<#read>(#text));
        let (keeps, on) = (field_mask_call(index, relation), cluster_call(index, relation));
        quote!(#new #keeps #calls #on)
    });
    let kinds = model.relations.iter().enumerate().map(|(index, relation)| alias(index, relation));
    let kinds = (!model.relations.is_empty()).then(|| quote!(; #(#kinds)*));
    let primary_on = model.primary_on().map(calls::primary_on);
    let finalizer = model.settings.iter().find_map(|setting| match setting {
        Setting::Finalizer { word, .. } => Some(word),
        _ => None,
    });
    let finalize = finalizer.map(|word| {
        let finalize = quote_spanned!(word.span()=> __p::finalize_fn::<Self>);
        quote! {
            fn finalize_fn() -> ::core::option::Option<__p::FinalizeFn<Self>> {
                ::core::option::Option::Some(#finalize())
            }
        }
    });
    let converged = model.converged.as_ref().map(|function| {
        let typed = quote_spanned!(function.span()=> converged: __p::ConvergedFn<Self> = #function);
        quote!(__p::converged!(#typed);)
    });
    let declares_finalizer = finalize.is_some().then(|| quote!(impl __p::DeclaresFinalizer for #name {}));
    quote! {
        impl __p::Controller for #name {
            type Primary = #primary;
            type Verbs = __Verbs;
            fn spec() -> __p::ControllerSpec {
                __p::spec_of!(#primary, #text #kinds)
                    #(#calls)*
                    #primary_on
                    #(#relations)*
                    .build()
            }
            #finalize
            #converged
        }
        #declares_finalizer
    }
}

/// Returns the method of the builder that adds a relation.
fn method(declared_as: RelationKind) -> &'static str {
    match declared_as {
        RelationKind::Owns => "owns",
        RelationKind::Watches => "watches",
        RelationKind::Reads => "reads",
        RelationKind::ReadsLive => "live",
        RelationKind::ReadsLiveInCluster => "live_cluster",
    }
}

/// Emits `impl Reconcile` for a function. For a struct it emits a check that the user implemented the trait: rustc
/// reports K0034 at the struct.
fn reconcile(model: &Model) -> TokenStream {
    let name = &model.name;
    if model.form == Form::Struct {
        return quote! {
            const _: fn() = || {
                fn is_reconcile<C: __p::Reconcile>() {}
                is_reconcile::<#name>();
            };
        };
    }
    let primary = primary_kind(model);
    let spans = model.signature.as_ref().map(|signature| (signature.context, signature.result));
    let (cx_span, result_span) = spans.unwrap_or((name.span(), name.span()));
    let (cx, callee) = (local_name("cx", name, cx_span), with_span(name, result_span));
    let object = local_name("object", name, result_span);
    let call = quote_spanned!(result_span=> __p::outcome(#callee(#object, #cx).await));
    quote!(__p::function!(#name, #primary: |#object, #cx| #call);)
}
