//! The environment of an expression: its variables, and the object types that one schema or policy declares.
//!
//! Upstream: `SchemaDeclType` in `pkg/cel/common/schemas.go` and `MaybeAssignTypeName` in `pkg/cel/types.go` of apiserver.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::{
    Type,
    names::{escape, has_name, is_reserved},
};

/// The name of the type of `self`. Upstream appends the current time, so that no two rules share it.
const SELF: &str = "selfType0";

/// The variables and types that an expression can use.
///
/// Standard functions and types are always known. A policy adds its own variables:
///
/// ```
/// use kctl_cel::{Environment, Type, type_of};
///
/// let mut environment = Environment::default().with("object", Type::Dyn).with_object("params", "Params");
/// environment.add_field("Params", "max", Type::Int);
/// assert_eq!(type_of("object.spec.replicas <= params.max", &environment).unwrap(), Some(Type::Bool));
/// assert!(type_of("params.min > 0", &environment).is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: HashMap<String, Type>,
    /// Fields of the object types that this environment declares, by the name of the type and of the field.
    own: HashMap<String, BTreeMap<String, Type>>,
    /// `true` if expressions can construct objects (`Object{…}`): expressions of mutating policies.
    makes_objects: bool,
    /// `true` if `cel.bind` is available. In Kubernetes, only device selectors have it.
    binds: bool,
}

/// The kind of values that a schema describes.
///
/// ```
/// use kctl_cel::SchemaOf;
/// use serde_json::json;
///
/// let embedded = json!({ "type": "object", "x-kubernetes-embedded-resource": true });
/// assert_eq!(SchemaOf::Value.or_embedded(&embedded), SchemaOf::Object);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaOf {
    /// Whole objects, which have `apiVersion`, `kind` and `metadata`: the root of a CRD's schema.
    Object,
    /// Values within an object.
    Value,
}

impl SchemaOf {
    /// Returns [`Object`](Self::Object) for an embedded resource, and otherwise `self`.
    #[must_use]
    pub fn or_embedded(self, schema: &Value) -> Self {
        if schema["x-kubernetes-embedded-resource"] == true { Self::Object } else { self }
    }
}

/// The type of `oldSelf` in a validation rule.
///
/// ```
/// use kctl_cel::OldSelf;
/// use serde_json::json;
///
/// assert_eq!(OldSelf::from_rule(&json!({ "optionalOldSelf": true })), OldSelf::Optional);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldSelf {
    /// The type of `self`: the rule runs on updates only.
    Value,
    /// An optional value, which is empty when the object is created.
    Optional,
}

impl OldSelf {
    /// Returns the type that `optionalOldSelf` of a rule selects.
    #[must_use]
    pub fn from_rule(rule: &Value) -> Self {
        if rule["optionalOldSelf"] == true { Self::Optional } else { Self::Value }
    }
}

impl Environment {
    /// Returns the environment of a CRD validation rule: `self` and `oldSelf` with the types of the schema.
    ///
    /// Returns `None` if the schema has no type in CEL, such as `x-kubernetes-preserve-unknown-fields` without `type`.
    ///
    /// ```
    /// use kctl_cel::{Environment, OldSelf, SchemaOf, type_of};
    /// use serde_json::json;
    ///
    /// let schema = json!({ "type": "string" });
    /// let created = Environment::for_rule(&schema, SchemaOf::Value, OldSelf::Optional).unwrap();
    /// assert!(type_of("oldSelf.orValue('') != self", &created).is_ok());
    /// let untyped = json!({ "x-kubernetes-preserve-unknown-fields": true });
    /// assert!(Environment::for_rule(&untyped, SchemaOf::Value, OldSelf::Value).is_none());
    /// ```
    #[must_use]
    pub fn for_rule(schema: &Value, of: SchemaOf, old_self: OldSelf) -> Option<Self> {
        let mut environment = Self::default();
        let own = environment.declare(schema, of.or_embedded(schema), SELF)?;
        let old = match old_self {
            OldSelf::Value => own.clone(),
            OldSelf::Optional => Type::optional(own.clone()),
        };
        Some(environment.with("self", own).with("oldSelf", old))
    }

    /// Returns `true` if the values of a schema have a type in CEL. A schema without a type can't have rules, and rules
    /// can't read its values.
    ///
    /// ```
    /// use kctl_cel::Environment;
    /// use serde_json::json;
    ///
    /// assert!(Environment::has_type(&json!({ "x-kubernetes-int-or-string": true })));
    /// assert!(!Environment::has_type(&json!({ "type": "array", "items": {} })));
    /// ```
    #[must_use]
    pub fn has_type(schema: &Value) -> bool {
        if schema["x-kubernetes-int-or-string"] == true {
            return true;
        }
        match schema["type"].as_str() {
            Some("array") => Self::has_type(&schema["items"]),
            Some("object") if schema["additionalProperties"].is_object() => {
                Self::has_type(&schema["additionalProperties"])
            }
            Some("object" | "string" | "boolean" | "number" | "integer") => true,
            _ => false,
        }
    }

    /// Adds a variable; a later one replaces an earlier one of the same name.
    #[must_use]
    pub fn with(mut self, name: &str, is: Type) -> Self {
        self.variables.insert(name.into(), is);
        self
    }

    /// Adds a variable of a declared object type, whose fields [`add_field`](Self::add_field) adds. `is` names the type.
    ///
    /// A type without fields rejects each selection: `variables.x` of a policy is an error before `x` is declared.
    #[must_use]
    pub fn with_object(mut self, name: &str, is: &str) -> Self {
        self.own.entry(is.into()).or_default();
        self.with(name, Type::Object(is.into()))
    }

    /// Removes a variable: `oldSelf` is unknown on a create, for example.
    ///
    /// ```
    /// use kctl_cel::{Environment, Type, type_of};
    ///
    /// let update = Environment::default().with("object", Type::Dyn).with("oldObject", Type::Dyn);
    /// assert!(type_of("object != oldObject", &update).is_ok());
    /// assert!(type_of("object != oldObject", &update.without("oldObject")).is_err());
    /// ```
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.variables.remove(name);
        self
    }

    /// Adds a field to a declared object type, and declares the type if it is new.
    pub fn add_field(&mut self, type_name: &str, name: &str, is: Type) {
        self.own.entry(type_name.into()).or_default().insert(name.into(), is);
    }

    /// Allows expressions to construct objects (`Object{spec: …}`, `JSONPatch{…}`), as mutating admission policies do.
    ///
    /// ```
    /// use kctl_cel::{Environment, type_of};
    ///
    /// let patch = "Object{spec: Object.spec{replicas: 1}}";
    /// let environment = Environment::default().with_object_construction();
    /// assert_eq!(type_of(patch, &environment).unwrap().unwrap().to_string(), "Object");
    /// assert!(type_of(patch, &Environment::default()).is_err());
    /// ```
    #[must_use]
    pub fn with_object_construction(mut self) -> Self {
        self.makes_objects = true;
        self
    }

    /// Returns the environment of device selectors: `device` (`dynamic-resource-allocation/cel/compile.go`).
    ///
    /// `DeviceClass` and `ResourceClaim` select devices by such expressions. No other expressions may use `cel.bind`.
    ///
    /// ```
    /// use kctl_cel::{Environment, type_of};
    ///
    /// let selector = "cel.bind(name, device.driver, name == 'gpu.example.com')";
    /// assert_eq!(type_of(selector, &Environment::for_device()).unwrap().unwrap().to_string(), "bool");
    /// ```
    #[must_use]
    pub fn for_device() -> Self {
        Self { binds: true, ..Self::default() }.with("device", Type::Object("kubernetes.DRADevice".into()))
    }

    /// Returns the environment of expressions about a request: match conditions of webhooks, and admission policies
    /// (`k8s.io/apiserver/pkg/admission/plugin/cel/compile.go`).
    ///
    /// `object` and `oldObject` are dynamic: their types depend on the request. The other variables have known types, so
    /// a misspelt field of `request` or `namespaceObject` is an error.
    ///
    /// ```
    /// use kctl_cel::{Environment, type_of};
    ///
    /// let environment = Environment::for_request();
    /// assert_eq!(type_of("request.dryRun || object.spec.paused", &environment).unwrap().unwrap().to_string(), "bool");
    /// assert!(type_of("request.dry_run", &environment).is_err());
    /// ```
    #[must_use]
    pub fn for_request() -> Self {
        let object = |name: &str| Type::Object(name.into());
        Self::default()
            .with("object", Type::Dyn)
            .with("oldObject", Type::Dyn)
            .with("request", object("kubernetes.AdmissionRequest"))
            .with("namespaceObject", object("kubernetes.Namespace"))
            .with("authorizer", object("kubernetes.authorization.Authorizer"))
            .with("authorizer.requestResource", object("kubernetes.authorization.ResourceCheck"))
    }

    /// Returns the field names of a declared object type in their escaped form, sorted.
    ///
    /// An error message lists them when a rule selects a field that does not exist. [`IssueKind`](crate::IssueKind) has an example.
    pub fn fields(&self, type_name: &str) -> impl Iterator<Item = &str> {
        self.own.get(type_name).into_iter().flat_map(|fields| fields.keys().map(String::as_str))
    }

    /// Returns the type of a variable.
    pub(crate) fn variable(&self, name: &str) -> Option<Type> {
        self.variables.get(name).cloned()
    }

    /// Returns `true` if this environment declares the fields of a type.
    pub(crate) fn declares(&self, type_name: &str) -> bool {
        self.own.contains_key(type_name)
    }

    /// Returns the type of a field of a declared type. A reserved word may be written plainly or escaped.
    pub(crate) fn field(&self, type_name: &str, name: &str) -> Option<Type> {
        let fields = self.own.get(type_name)?;
        // After a dot, `in` and `__in__` name the same field.
        fields.get(name).or_else(|| fields.get(&escape(name)).filter(|_| is_reserved(name))).cloned()
    }

    /// Returns `true` if expressions can construct objects.
    pub(crate) fn can_construct_objects(&self) -> bool {
        self.makes_objects
    }

    /// Returns `true` if `cel.bind` is available.
    pub(crate) fn binds(&self) -> bool {
        self.binds
    }

    /// Returns `true` for a type that expressions of this environment can construct.
    pub(crate) fn is_constructible(&self, name: &str) -> bool {
        let root = name.split('.').next().unwrap_or_default();
        self.makes_objects && (root == "Object" || name == "JSONPatch")
    }

    /// Returns the type of the values of a schema, and declares the object types in it under `name` and its paths.
    ///
    /// Upstream: `SchemaDeclType`. Names of nested types follow `MaybeAssignTypeName`: `.@idx` for items, `.@elem` for values.
    fn declare(&mut self, schema: &Value, position: SchemaOf, name: &str) -> Option<Type> {
        if schema["x-kubernetes-int-or-string"] == true {
            return Some(Type::Dyn);
        }
        Some(match schema["type"].as_str()? {
            "array" => Type::list(self.below(&schema["items"], &format!("{name}.@idx"))?),
            "object" if schema["additionalProperties"].is_object() => {
                Type::map(Type::Text, self.below(&schema["additionalProperties"], &format!("{name}.@elem"))?)
            }
            "object" => self.object(schema, position, name),
            "string" => match schema["format"].as_str() {
                Some("byte") => Type::Bytes,
                Some("duration") => Type::Duration,
                Some("date" | "date-time") => Type::Timestamp,
                _ => Type::Text,
            },
            "boolean" => Type::Bool,
            "number" => Type::Double,
            "integer" => Type::Int,
            _ => return None,
        })
    }

    /// Declares the type of an item, value or field.
    fn below(&mut self, schema: &Value, name: &str) -> Option<Type> {
        self.declare(schema, SchemaOf::Value.or_embedded(schema), name)
    }

    /// Declares an object type. Fields whose names CEL can't write, or whose schemas have no type, don't exist in it.
    fn object(&mut self, schema: &Value, position: SchemaOf, name: &str) -> Type {
        let mut fields = BTreeMap::new();
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            let escaped = escape(field);
            let field_type = self.below(schema, &format!("{name}.{escaped}"));
            if let Some(field_type) = field_type.filter(|_| has_name(field)) {
                fields.insert(escaped, field_type);
            }
        }
        if position == SchemaOf::Object {
            let metadata = format!("{name}.metadata");
            let names = ["name", "generateName"].map(|field| (field.to_owned(), Type::Text));
            self.own.insert(metadata.clone(), BTreeMap::from(names));
            fields.insert("metadata".into(), Type::Object(metadata.into()));
            fields.extend(["apiVersion", "kind"].map(|field| (field.to_owned(), Type::Text)));
        }
        self.own.insert(name.into(), fields);
        Type::Object(name.into())
    }
}
