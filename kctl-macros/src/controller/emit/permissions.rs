//! The permissions of a controller as types: one type per kind, with the verbs that the declaration has.
//!
//! `Context` finds these types through the controller, so an operation that is not declared does not compile. The
//! specification has the same verbs, from which the role is printed. For views and metadata both get them from
//! [`verbs`]; for whole kinds `calls::relation` passes the declared ones, and the runtime adds the defaults of a bare `owns`.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Ident, spanned::Spanned};

use super::super::model::{DeclaredVerb, Model, Part, Relation, RelationKind, Verb};
use super::{alias, cluster_alias, part_alias, primary_kind};

/// The verbs that `owns = T` grants without parentheses: those that `converge` and the operations of `cx.owned` on
/// whole objects need.
///
/// They are repeated in two other places that this crate cannot reach: `OWNED_VERBS` of
/// `kctl-runtime/src/spec/relation.rs`, from which the role comes, and the bound `Owns` of
/// `kctl-runtime/src/reconcile/permission.rs`. The tests `types_and_role_of_bare_owns_agree` and
/// `bare_owns_declares_the_verbs_of_its_bound` in `tests/loop/role.rs` compare all three.
const OWNED_VERBS: [Verb; 5] = [Verb::Create, Verb::Update, Verb::Patch, Verb::Apply, Verb::Delete];

/// Emits the permissions on the primary: its verbs, its status unless it is read only, and the client if there are
/// rules. Where nothing is owned or written, a macro of the runtime words the error of `cx.owned` and `cx.objects`.
pub(super) fn primary_permissions(model: &Model) -> TokenStream {
    let (name, primary) = (&model.name, primary_kind(model));
    let options = model.primary_options();
    let verbs = with_implied_verbs(options.map(|options| options.verbs.clone()).unwrap_or_default());
    let verbs = verbs.iter().map(|declared| &declared.word);
    let owns = model.relations.iter().any(|relation| relation.declared_as == RelationKind::Owns);
    let undeclared = (!owns).then(|| quote!(__p::owns_nothing!(#name);));
    let writes = model
        .relations
        .iter()
        .filter(|relation| relation.declared_as != RelationKind::Owns && !relation.declared_as.is_live())
        .any(|relation| relation.cluster().is_none());
    let unwritten = (!writes).then(|| quote!(__p::writes_nothing!(#name);));
    let is_read_only = options.is_some_and(|options| options.is_read_only);
    let status = (!is_read_only).then(|| quote!(WritesStatus));
    let rules = model.rules().any(|rules| rules.on.is_none()).then(|| quote!(HasRules));
    let rules_on = model.rules().filter_map(|rules| rules.on.as_ref()).map(|cluster| quote!(HasRulesOn<#cluster>));
    let verbs_type = verbs_type(&format_ident!("__Verbs"), model.primary.span());
    let has: Vec<_> = status.into_iter().chain(rules).chain(rules_on).collect();
    let has = (!has.is_empty()).then(|| quote!(__p::has!(#name: #(#has),*);));
    quote! {
        __p::primary!(#verbs_type #name, #primary: #(#verbs)*);
        #has
        #undeclared
        #unwritten
    }
}

/// Emits the type of the verbs with the span of the kind: rustc shows a verb that is missing where the kind is declared.
fn verbs_type(name: &Ident, kind: Span) -> TokenStream {
    let name = Ident::new(&name.to_string(), kind);
    quote_spanned!(kind=> pub struct #name;)
}

/// Emits the permissions of a relation. With a view or metadata, reads are allowed on that type, and so are the writes of
/// an owned kind. Writes of other kinds are allowed on the whole kind, and those that need no whole object on its
/// metadata, too. A kind that is read live has no writes: they would have no cache.
pub(super) fn permissions(model: &Model, index: usize, relation: &Relation) -> TokenStream {
    let kind = alias(index, relation);
    if relation.declared_as.is_live() {
        return reads_live(model, index, relation);
    }
    let Some(part) = part_alias(index, relation) else {
        return permission(model, index, relation, &kind, &kind);
    };
    let explanation = partial_cache_error(model, index, relation, &part);
    if relation.declared_as == RelationKind::Owns {
        let permission = permission(model, index, relation, &part, &part);
        return quote!(#permission #explanation);
    }
    let permission = permission(model, index, relation, &part, &kind);
    let metadata_permission = metadata_permission(model, index, relation);
    quote!(#permission #metadata_permission #explanation)
}

/// Emits the type of the verbs of a relation, with reads of the type `read` and the verbs on the type `written`.
fn permission(model: &Model, index: usize, relation: &Relation, read: &Ident, written: &Ident) -> TokenStream {
    let name = &model.name;
    let verbs_type = verbs_type(&verbs_alias(index), relation.kind.span());
    let reads = permission_trait(index, relation, "Caches", read);
    let writes = permission_trait(index, relation, writes(relation), written);
    let verbs = allowed_verbs(relation);
    let verbs = verbs.iter().map(|declared| &declared.word);
    quote!(__p::permission!(#verbs_type #name: #reads, #writes: #(#verbs)*);)
}

/// Emits the permission to read a kind from the API server.
fn reads_live(model: &Model, index: usize, relation: &Relation) -> TokenStream {
    let (name, kind) = (&model.name, alias(index, relation));
    match cluster_alias(index, relation) {
        None => quote!(__p::has!(#name: ReadsLive<#kind>);),
        Some(cluster) => quote!(__p::has!(#name: ReadsLiveOn<#cluster, #kind>);),
    }
}

/// Emits the verbs that need no whole object, on the metadata of a kind that is read in part.
fn metadata_permission(model: &Model, index: usize, relation: &Relation) -> TokenStream {
    let (name, kind, verbs_type) = (&model.name, alias(index, relation), verbs_alias(index));
    let metadata = format_ident!("__W{index}");
    let writes = permission_trait(index, relation, writes(relation), &metadata);
    let verbs = allowed_verbs(relation);
    let changes = verbs.iter().filter(|declared| declared.verb != Verb::Apply && !declared.verb.sends_whole_object());
    let changes = changes.map(|declared| &declared.word);
    quote! {
        type #metadata = __p::PartialObjectMeta<#kind>;
        __p::permission!(#verbs_type, #name; #writes: #(#changes)*);
    }
}

/// Emits the error for reads of the whole kind, although the cache has only a part. On another cluster rustc words the
/// error.
fn partial_cache_error(model: &Model, index: usize, relation: &Relation, part: &Ident) -> Option<TokenStream> {
    if relation.cluster().is_some() {
        return None;
    }
    let (name, kind) = (&model.name, alias(index, relation));
    let is_view = matches!(relation.part, Part::View(..));
    let reads_part = format_ident!("{}", if is_view { "reads_a_view" } else { "reads_metadata" });
    Some(quote!(__p::#reads_part!(#name, #kind, #part);))
}

/// Returns the trait of a permission on a kind, with the cluster of the relation: `Writes<__K0>`, or
/// `WritesOn<__K0 @ __M0>`.
fn permission_trait(index: usize, relation: &Relation, name: &str, kind: &Ident) -> TokenStream {
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
    if relation.declared_as == RelationKind::Owns { "Declares" } else { "Writes" }
}

/// Returns the name of the type of a relation's verbs.
fn verbs_alias(index: usize) -> Ident {
    format_ident!("__Verbs{index}")
}

/// Returns the verbs that the permission of a relation has: the declared ones and those that they contain.
fn allowed_verbs(relation: &Relation) -> Vec<DeclaredVerb> {
    let mut verbs = if relation.verbs.is_empty() { verbs(relation) } else { with_implied_verbs(verbs(relation)) };
    if relation.declared_as == RelationKind::Owns && !matches!(relation.part, Part::Whole) {
        // `apply` contains `create`, but `cx.owned::<PartialObjectMeta<K>>().create(…)` has only the metadata to send.
        verbs.retain(|declared| !declared.verb.sends_whole_object());
    }
    verbs
}

/// Returns the verbs of a relation: those in its parentheses, or for `owns` the default ones. With metadata alone the
/// default has neither `create` nor `update`, because no operation could use them.
pub(super) fn verbs(relation: &Relation) -> Vec<DeclaredVerb> {
    if relation.declared_as != RelationKind::Owns || !relation.verbs.is_empty() {
        return relation.verbs.clone();
    }
    let caches_whole_objects = matches!(relation.part, Part::Whole);
    OWNED_VERBS
        .into_iter()
        .filter(|verb| caches_whole_objects || !verb.sends_whole_object())
        .map(implied_verb)
        .collect()
}

/// Returns the verbs with those that they contain, sorted: `apply` is also patch and create, because the role needs
/// them.
fn with_implied_verbs(mut verbs: Vec<DeclaredVerb>) -> Vec<DeclaredVerb> {
    if verbs.iter().any(|declared| declared.verb == Verb::Apply) {
        verbs.extend([Verb::Patch, Verb::Create].map(implied_verb));
    }
    verbs.sort_by_key(|declared| declared.verb.as_str());
    verbs.dedup_by_key(|declared| declared.verb);
    verbs
}

/// Returns a verb that the user did not write. Its word has the span of the whole attribute.
fn implied_verb(verb: Verb) -> DeclaredVerb {
    DeclaredVerb { verb, word: format_ident!("{}", verb.as_str()) }
}
