//! `Model` → tokens: one function for each emitted item; nothing can fail here.

use proc_macro2::{Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Expr, Ident, Type, spanned::Spanned};

use super::{
    check::{Form, Model, Relation},
    part::Part,
};
use crate::marker_type;

/// What `owns = T` grants without parentheses.
const OWNED_VERBS: [&str; 5] = ["create", "update", "patch", "apply", "delete"];

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
            use #krate::__private as __p;
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

fn kind(alias: &Ident, ty: &Type) -> TokenStream {
    quote_spanned!(ty.span()=> type #alias = #ty;)
}

/// The primary, with the place where the user names it.
fn primary_kind(model: &Model) -> Ident {
    format_ident!("__Primary", span = model.primary.span())
}

/// A related kind, with the place where the user names it.
fn alias(index: usize, relation: &Relation) -> Ident {
    format_ident!("__K{index}", span = relation.kind.span())
}

/// The type that objects are read as, where that is not their kind.
fn part(index: usize, relation: &Relation) -> Option<TokenStream> {
    let (kind, part) = (alias(index, relation), part_alias(index, relation)?);
    if let Part::View(_, ty) = &relation.part {
        return Some(quote_spanned!(ty.span()=> type #part = #ty;));
    }
    Some(quote_spanned!(part.span()=> type #part = __p::PartialObjectMeta<#kind>;))
}

fn part_alias(index: usize, relation: &Relation) -> Option<Ident> {
    let span = match &relation.part {
        Part::Whole => return None,
        Part::Metadata(word) => word.span(),
        Part::View(_, ty) => ty.span(),
    };
    Some(format_ident!("__V{index}", span = span))
}

/// What a relation keeps of each object.
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

/// The type that names the cluster of a relation, with the place where the user names it.
fn cluster(index: usize, relation: &Relation) -> Option<TokenStream> {
    let (path, alias) = (relation.cluster()?, cluster_alias(index, relation)?);
    Some(quote_spanned!(path.span()=> type #alias = #path;))
}

fn cluster_alias(index: usize, relation: &Relation) -> Option<Ident> {
    relation.cluster().map(|path| format_ident!("__M{index}", span = path.span()))
}

/// In which cluster a relation is; the builder puts what is owned beside the primary.
fn on(index: usize, relation: &Relation) -> Option<TokenStream> {
    if let Some(alias) = cluster_alias(index, relation) {
        return Some(quote_spanned!(alias.span()=> .on_cluster::<#alias>()));
    }
    let on = relation.on.as_ref().filter(|_| relation.role != "owns")?;
    Some(quote!(.on(#on)))
}

fn primary_on(on: &Expr) -> TokenStream {
    match on {
        Expr::Path(cluster) => {
            let name = quote_spanned!(cluster.span()=> <#cluster as __p::Cluster>::NAME);
            quote!(.primary_on(#name))
        }
        text => quote!(.primary_on(#text)),
    }
}

fn controller(model: &Model) -> TokenStream {
    let name = &model.name;
    let text = name.to_string();
    let (primary, calls) = (primary_kind(model), &model.calls);
    let relations = model.relations.iter().enumerate().map(|(index, relation)| {
        let (alias, text, calls) = (alias(index, relation), &relation.text, &relation.calls);
        let role = Ident::new(&relation.role.to_string(), relation.kind.span());
        let mut text = Literal::string(text);
        text.set_span(relation.kind.span());
        let read = match relation.part {
            Part::Metadata(_) => part_alias(index, relation).unwrap_or(alias),
            _ => alias,
        };
        let new = quote_spanned!(relation.kind.span()=> .#role::<#read>(#text));
        let (keeps, on) = (keeps(index, relation), on(index, relation));
        quote!(#new #keeps #(#calls)* #on)
    });
    let kinds = model.relations.iter().enumerate().map(|(index, relation)| alias(index, relation));
    let kinds = (!model.relations.is_empty()).then(|| quote!(; #(#kinds)*));
    let primary_on = model.primary_on.as_ref().map(primary_on);
    let finalize = model.finalizer.as_ref().map(|word| {
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
    let (cx_span, result_span) = model.signature.unwrap_or((name.span(), name.span()));
    let (cx, callee) = (Ident::new("cx", cx_span), Ident::new(&name.to_string(), result_span));
    let object = Ident::new("object", result_span);
    let call = quote_spanned!(result_span=> __p::outcome(#callee(#object, #cx).await));
    quote!(__p::function!(#name, #primary: |#object, #cx| #call);)
}

fn primary_grant(model: &Model) -> TokenStream {
    let (name, primary) = (&model.name, primary_kind(model));
    let verbs = with_contained(model.primary_verbs.clone());
    let owns = model.relations.iter().any(|relation| relation.role == "owns");
    let undeclared = (!owns).then(|| quote!(__p::owns_nothing!(#name);));
    let writes = model.relations.iter().any(|relation| relation.role != "owns" && relation.cluster().is_none());
    let unwritten = (!writes).then(|| quote!(__p::writes_nothing!(#name);));
    let status = (!model.read_only).then(|| quote!(WritesStatus));
    let rules = model.has_rules.then(|| quote!(HasRules));
    let rules_on = model.has_rules_on.iter().map(|cluster| quote!(HasRulesOn<#cluster>));
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

/// A verb that is missing is shown where the kind is declared.
fn grant_type(name: &Ident, kind: Span) -> TokenStream {
    let name = Ident::new(&name.to_string(), kind);
    quote_spanned!(kind=> pub struct #name;)
}

fn grants(model: &Model, index: usize, relation: &Relation) -> TokenStream {
    let name = &model.name;
    let (kind, grant) = (alias(index, relation), format_ident!("__G{index}"));
    let grant_type = grant_type(&grant, relation.kind.span());
    let reads = match relation.role.to_string().as_str() {
        "live" | "live_cluster" => "ReadsLive",
        _ => "Caches",
    };
    let owns = relation.role == "owns";
    let declares = if owns { "Declares" } else { "Writes" };
    let on = cluster_alias(index, relation);
    let suffix = if on.is_some() { "On" } else { "" };
    let scope = on.as_ref().map(|on| quote!(@ #on));
    let permission = |name: &str, kind: &Ident| {
        let name = format_ident!("{name}{suffix}");
        quote!(#name<#kind #scope>)
    };
    let mut verbs = if owns && relation.verbs.is_empty() {
        OWNED_VERBS.iter().map(|verb| format_ident!("{verb}")).collect()
    } else {
        with_contained(relation.verbs.clone())
    };
    let part = part_alias(index, relation);
    let read = part.as_ref().unwrap_or(&kind);
    let reads = permission(reads, read);
    if owns && part.is_some() {
        // What it is read as is no object that could be created.
        verbs.retain(|verb| verb != "create" && verb != "update");
    }
    let owned = if owns { read } else { &kind };
    let declares_kind = permission(declares, owned);
    let beside = part.as_ref().filter(|_| !owns).map(|_part| {
        let changes = verbs.iter().filter(|verb| *verb != "create" && *verb != "update" && *verb != "apply");
        let metadata = format_ident!("__W{index}");
        let declares = permission(declares, &metadata);
        quote! {
            type #metadata = __p::PartialObjectMeta<#kind>;
            __p::grant!(#grant, #name; #declares: #(#changes)*);
        }
    });
    let refusals = part.as_ref().filter(|_| on.is_none()).map(|part| {
        let why = format_ident!(
            "{}",
            if matches!(relation.part, Part::View(..)) { "reads_a_view" } else { "reads_metadata" }
        );
        quote!(__p::#why!(#name, #kind, #part);)
    });
    quote! {
        __p::grant!(#grant_type #name: #reads, #declares_kind: #(#verbs)*);
        #beside
        #refusals
    }
}

/// The verbs with what they contain: `apply` is patch and create.
fn with_contained(mut verbs: Vec<Ident>) -> Vec<Ident> {
    if verbs.iter().any(|verb| verb == "apply") {
        verbs.extend([format_ident!("patch"), format_ident!("create")]);
    }
    verbs.sort();
    verbs.dedup();
    verbs
}
