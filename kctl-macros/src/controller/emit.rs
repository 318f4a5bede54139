//! `Model` → tokens: one function for each emitted item; nothing can fail here.
//!
//! ```text
//! #[controller(owns = Pod(create))]
//! async fn configs(config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> { … }
//! ```
//!
//! becomes the function itself, and beside it
//!
//! ```text
//! struct configs {}
//! const _: () = {
//!     use ::kctl::__private_0_1 as __p;
//!     type __Primary = ConfigMap;
//!     type __K0 = Pod;
//!     impl __p::Controller for configs {
//!         type Primary = __Primary;
//!         type Grant = __Grant;
//!         fn spec() -> __p::ControllerSpec {
//!             __p::spec_of!(__Primary, "configs"; __K0).owns::<__K0>("owns = Pod(create)").verbs(&["create"]).build()
//!         }
//!     }
//!     __p::function!(configs, __Primary: |object, cx| __p::outcome(configs(object, cx).await));
//!     __p::primary!(pub struct __Grant; configs, __Primary: );
//!     __p::has!(configs: WritesStatus);
//!     __p::grant!(pub struct __G0; configs: Caches<__K0>, Declares<__K0>: create);
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

use proc_macro2::{Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Ident, Type, spanned::Spanned};

use super::model::{DeclaredVerb, Form, Model, Part, Relation, Role, Setting, Verb};
use crate::marker_type;

/// The verbs that `owns = T` grants without parentheses: those that `converge` and the operations of `cx.owned` on
/// whole objects need.
///
/// They stand in two other places that this crate cannot reach: `OWNED_VERBS` of `kctl-runtime/src/spec/relation.rs`, from
/// which the role comes, and the bound `Owns` of `kctl-runtime/src/reconcile/permission.rs`. The test
/// `bare_owns_declares_the_verbs_of_its_bound` in `tests/loop/role.rs` compares all three.
const OWNED_VERBS: [Verb; 5] = [Verb::Create, Verb::Update, Verb::Patch, Verb::Apply, Verb::Delete];

/// Emits the item, its type, the specification and the grants.
pub(super) fn emit(model: &Model, item: &TokenStream) -> TokenStream {
    let krate = &model.krate;
    let marker = (model.form == Form::Function).then(|| marker_type::marker(&model.docs, &model.vis, &model.name));
    let primary = primary_kind(model);
    let primary_type = kind(&primary, &model.primary);
    let controller = controller(model);
    let reconcile = reconcile(model);
    let kinds =
        model.relations.iter().enumerate().map(|(index, relation)| kind(&alias(index, relation), &relation.kind));
    let parts = model.relations.iter().enumerate().filter_map(|(index, relation)| part(index, relation));
    let clusters = model.relations.iter().enumerate().filter_map(|(index, relation)| cluster(index, relation));
    let grants = model.relations.iter().enumerate().map(|(index, relation)| grants(model, index, relation));
    let primary_grant = primary_grant(model);
    let allows = (model.form == Form::Function)
        .then(|| quote!(#[allow(clippy::unused_async, reason = "a reconcile function is async")]));
    quote! {
        #allows
        #item
        #marker
        const _: () = {
            use #krate::__private_0_1 as __p;
            #primary_type
            #(#kinds)*
            #(#parts)*
            #(#clusters)*
            #controller
            #reconcile
            #primary_grant
            #(#grants)*
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

/// Emits the alias of the type that objects are read as, if that is not their kind: the view, or `PartialObjectMeta`.
fn part(index: usize, relation: &Relation) -> Option<TokenStream> {
    let (kind, part) = (alias(index, relation), part_alias(index, relation)?);
    if let Part::View(_, ty) = &relation.part {
        return Some(quote_spanned!(ty.span()=> type #part = #ty;));
    }
    Some(quote_spanned!(part.span()=> type #part = __p::PartialObjectMeta<#kind>;))
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
fn keeps(index: usize, relation: &Relation) -> Option<TokenStream> {
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

/// Returns the builder's call for the cluster of a relation. Owned kinds need none: the builder puts them beside the
/// primary.
fn on(index: usize, relation: &Relation) -> Option<TokenStream> {
    if let Some(alias) = cluster_alias(index, relation) {
        return Some(quote_spanned!(alias.span()=> .on_cluster::<#alias>()));
    }
    let on = relation.on().filter(|_| relation.role != Role::Owns)?;
    Some(quote!(.on(#on)))
}

/// Emits `impl Controller`: the primary, the specification, `finalize` and `converged`.
fn controller(model: &Model) -> TokenStream {
    let name = &model.name;
    let text = name.to_string();
    let (primary, calls) = (primary_kind(model), model.settings.iter().map(calls::setting));
    let relations = model.relations.iter().enumerate().map(|(index, relation)| {
        let (alias, calls) = (alias(index, relation), calls::relation(relation));
        let method = Ident::new(method(relation.role), relation.kind.span());
        let mut text = Literal::string(&calls::text(relation));
        text.set_span(relation.kind.span());
        let read = match relation.part {
            Part::Metadata(_) => part_alias(index, relation).unwrap_or(alias),
            _ => alias,
        };
        let new = quote_spanned!(relation.kind.span()=> .#method::<#read>(#text));
        let (keeps, on) = (keeps(index, relation), on(index, relation));
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
            type Grant = __Grant;
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
fn method(role: Role) -> &'static str {
    match role {
        Role::Owns => "owns",
        Role::Watches => "watches",
        Role::Reads => "reads",
        Role::ReadsLive => "live",
        Role::ReadsLiveInCluster => "live_cluster",
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
    let (cx, callee) = (Ident::new("cx", cx_span), Ident::new(&name.to_string(), result_span));
    let object = Ident::new("object", result_span);
    let call = quote_spanned!(result_span=> __p::outcome(#callee(#object, #cx).await));
    quote!(__p::function!(#name, #primary: |#object, #cx| #call);)
}

/// Emits the grant of the primary: its verbs, its status unless it is read only, and the client if there are rules.
/// Where nothing is owned or written, a macro of the runtime words the error of `cx.owned` and `cx.objects`.
fn primary_grant(model: &Model) -> TokenStream {
    let (name, primary) = (&model.name, primary_kind(model));
    let options = model.primary_options();
    let verbs = with_contained(options.map(|options| options.verbs.clone()).unwrap_or_default());
    let verbs = verbs.iter().map(|declared| &declared.word);
    let owns = model.relations.iter().any(|relation| relation.role == Role::Owns);
    let undeclared = (!owns).then(|| quote!(__p::owns_nothing!(#name);));
    let writes = model.relations.iter().any(|relation| relation.role != Role::Owns && relation.cluster().is_none());
    let unwritten = (!writes).then(|| quote!(__p::writes_nothing!(#name);));
    let is_read_only = options.is_some_and(|options| options.is_read_only);
    let status = (!is_read_only).then(|| quote!(WritesStatus));
    let rules = model.rules().any(|rules| rules.on.is_none()).then(|| quote!(HasRules));
    let rules_on = model.rules().filter_map(|rules| rules.on.as_ref()).map(|cluster| quote!(HasRulesOn<#cluster>));
    let grant = grant_type(&format_ident!("__Grant"), model.primary.span());
    let has: Vec<_> = status.into_iter().chain(rules).chain(rules_on).collect();
    let has = (!has.is_empty()).then(|| quote!(__p::has!(#name: #(#has),*);));
    quote! {
        __p::primary!(#grant #name, #primary: #(#verbs)*);
        #has
        #undeclared
        #unwritten
    }
}

/// Emits a grant type with the span of the kind: rustc shows a verb that is missing where the kind is declared.
fn grant_type(name: &Ident, kind: Span) -> TokenStream {
    let name = Ident::new(&name.to_string(), kind);
    quote_spanned!(kind=> pub struct #name;)
}

/// Emits the grants of a relation. With a view or metadata, reads are granted on that type, and so are the writes of an
/// owned kind. Writes of other kinds are granted on the whole kind, and those that need no whole object on its metadata,
/// too.
fn grants(model: &Model, index: usize, relation: &Relation) -> TokenStream {
    let kind = alias(index, relation);
    let Some(part) = part_alias(index, relation) else {
        return grant(model, index, relation, &kind, &kind);
    };
    let explanation = explanation(model, index, relation, &part);
    if relation.role == Role::Owns {
        let grant = grant(model, index, relation, &part, &part);
        return quote!(#grant #explanation);
    }
    let grant = grant(model, index, relation, &part, &kind);
    let metadata_grant = metadata_grant(model, index, relation);
    quote!(#grant #metadata_grant #explanation)
}

/// Emits the grant type of a relation, with reads of the type `read` and the verbs on the type `written`.
fn grant(model: &Model, index: usize, relation: &Relation, read: &Ident, written: &Ident) -> TokenStream {
    let name = &model.name;
    let grant_type = grant_type(&grant_alias(index), relation.kind.span());
    let reads = permission(index, relation, if relation.role.is_live() { "ReadsLive" } else { "Caches" }, read);
    let writes = permission(index, relation, writes(relation), written);
    let verbs = granted_verbs(relation);
    let verbs = verbs.iter().map(|declared| &declared.word);
    quote!(__p::grant!(#grant_type #name: #reads, #writes: #(#verbs)*);)
}

/// Emits the verbs that need no whole object, on the metadata of a kind that is read in part.
fn metadata_grant(model: &Model, index: usize, relation: &Relation) -> TokenStream {
    let (name, kind, grant) = (&model.name, alias(index, relation), grant_alias(index));
    let metadata = format_ident!("__W{index}");
    let writes = permission(index, relation, writes(relation), &metadata);
    let verbs = granted_verbs(relation);
    let changes = verbs.iter().filter(|declared| declared.verb != Verb::Apply && !declared.verb.sends_whole_object());
    let changes = changes.map(|declared| &declared.word);
    quote! {
        type #metadata = __p::PartialObjectMeta<#kind>;
        __p::grant!(#grant, #name; #writes: #(#changes)*);
    }
}

/// Emits the error for reads of the whole kind, of which the cache has a part. On another cluster there is none: rustc
/// words that error.
fn explanation(model: &Model, index: usize, relation: &Relation, part: &Ident) -> Option<TokenStream> {
    if relation.cluster().is_some() {
        return None;
    }
    let (name, kind) = (&model.name, alias(index, relation));
    let is_view = matches!(relation.part, Part::View(..));
    let reads_part = format_ident!("{}", if is_view { "reads_a_view" } else { "reads_metadata" });
    Some(quote!(__p::#reads_part!(#name, #kind, #part);))
}

/// Returns a permission on a kind, with the cluster of the relation: `Writes<__K0>`, or `WritesOn<__K0 @ __M0>`.
fn permission(index: usize, relation: &Relation, name: &str, kind: &Ident) -> TokenStream {
    match cluster_alias(index, relation) {
        None => {
            let name = format_ident!("{name}");
            quote!(#name<#kind>)
        }
        Some(cluster) => {
            let name = format_ident!("{name}On");
            quote!(#name<#kind @ #cluster>)
        }
    }
}

/// Returns the trait that has the verbs of a relation.
fn writes(relation: &Relation) -> &'static str {
    if relation.role == Role::Owns { "Declares" } else { "Writes" }
}

/// Returns the name of a grant type.
fn grant_alias(index: usize) -> Ident {
    format_ident!("__G{index}")
}

/// Returns the verbs that the grant type of a relation has: the declared ones and those that they contain.
fn granted_verbs(relation: &Relation) -> Vec<DeclaredVerb> {
    let mut verbs = if relation.verbs.is_empty() { verbs(relation) } else { with_contained(verbs(relation)) };
    if relation.role == Role::Owns && !matches!(relation.part, Part::Whole) {
        // `apply` contains `create`, but `cx.owned::<PartialObjectMeta<K>>().create(…)` has only the metadata to send.
        verbs.retain(|declared| !declared.verb.sends_whole_object());
    }
    verbs
}

/// Returns the verbs of a relation: those in its parentheses, or for `owns` the default ones. With metadata alone the
/// default has neither `create` nor `update`, because no operation could use them.
fn verbs(relation: &Relation) -> Vec<DeclaredVerb> {
    if relation.role != Role::Owns || !relation.verbs.is_empty() {
        return relation.verbs.clone();
    }
    let is_whole = matches!(relation.part, Part::Whole);
    OWNED_VERBS.into_iter().filter(|verb| is_whole || !verb.sends_whole_object()).map(generated).collect()
}

/// Returns the verbs with those that they contain, sorted: `apply` is also patch and create, because the role needs
/// them.
fn with_contained(mut verbs: Vec<DeclaredVerb>) -> Vec<DeclaredVerb> {
    if verbs.iter().any(|declared| declared.verb == Verb::Apply) {
        verbs.extend([Verb::Patch, Verb::Create].map(generated));
    }
    verbs.sort_by_key(|declared| declared.verb.word());
    verbs.dedup_by_key(|declared| declared.verb);
    verbs
}

/// Returns a verb that the user did not write. Its word has the span of the whole attribute.
fn generated(verb: Verb) -> DeclaredVerb {
    DeclaredVerb { verb, word: format_ident!("{}", verb.word()) }
}
