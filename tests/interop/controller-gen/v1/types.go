// Package v1 has the kinds of tests/definitions/markers.rs as they are written for controller-gen.
//
// +groupName=example.com
// +versionName=v1
package v1

import (
	runtime "k8s.io/apimachinery/pkg/runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=nameses,singular=namely,shortName=nm,categories={all,examples},scope=Cluster
// +kubebuilder:metadata:annotations="example.com/owner=team"
// +kubebuilder:metadata:labels="tier=test"
type Names struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              NamesSpec `json:"spec"`
}

type NamesSpec struct {
	Name string `json:"name"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name=Host,type=string,JSONPath=.spec.host,description="where it is",format=byte,priority=1
// +kubebuilder:selectablefield:JSONPath=.spec.host
type Served struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ServedSpec `json:"spec"`
	// +nullable
	// +optional
	Status *ServedStatus `json:"status,omitempty"`
}

type ServedSpec struct {
	Host     string `json:"host"`
	Replicas int32  `json:"replicas"`
}

type ServedStatus struct {
	Replicas int32  `json:"replicas"`
	Selector string `json:"selector"`
}

// +kubebuilder:object:root=true
type Plain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PlainSpec `json:"spec"`
	// +nullable
	// +optional
	Status *PlainStatus `json:"status,omitempty"`
}

type PlainSpec struct {
	Host string `json:"host"`
}

type PlainStatus struct {
	Ready bool `json:"ready"`
}

// +kubebuilder:object:root=true
// +kubebuilder:deprecatedversion:warning="use v2"
type Versioned struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              VersionedSpec `json:"spec"`
}

type VersionedSpec struct {
	Host string `json:"host"`
}

// +kubebuilder:object:root=true
type Bounds struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BoundsSpec `json:"spec"`
}

// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=20
type BoundsSpec struct {
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:validation:MultipleOf=5
	Percent int32 `json:"percent"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=1.5
	// +kubebuilder:validation:ExclusiveMaximum=true
	Ratio float64 `json:"ratio"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z]+$"
	Name string `json:"name"`
	// +kubebuilder:validation:Format=uri
	// +nullable
	// +optional
	URL *string `json:"url,omitempty"`
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=9
	// +kubebuilder:validation:items:Pattern="^[a-z.]+$"
	Hosts []string `json:"hosts"`
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=65536
	// +kubebuilder:validation:items:ExclusiveMaximum=true
	// +kubebuilder:validation:items:MultipleOf=1
	Ports []int32 `json:"ports"`
	// +kubebuilder:validation:items:items:Enum=a;b
	Table [][]string `json:"table"`
	// +kubebuilder:validation:MaxProperties=8
	Labels map[string]Label `json:"labels"`
	// +kubebuilder:validation:Enum=Always;Never
	Policy string `json:"policy"`
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	Since metav1.Time `json:"since"`
}

// +kubebuilder:validation:MaxLength=63
type Label string

// +kubebuilder:object:root=true
type Words struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WordsSpec `json:"spec"`
}

// +kubebuilder:title=Words
// +kubebuilder:externalDocs:url="https://example.com/words",description="more"
type WordsSpec struct {
	// The default is serde's: the program fills it in, too.
	// +kubebuilder:default=3
	// +optional
	Count int32 `json:"count"`
	// +kubebuilder:default=web
	// +kubebuilder:example=shop
	Name string `json:"name"`
	// +kubebuilder:default={"cpu": "1"}
	Limits map[string]string `json:"limits"`
	// +kubebuilder:title=Hosts
	// +kubebuilder:externalDocs:url="https://example.com/hosts"
	// +nullable
	// +optional
	Hosts []string `json:"hosts,omitempty"`
	// +optional
	Strict *string `json:"strict,omitempty"`
	// +required
	Present *string `json:"present,omitempty"`
	// +optional
	Level *Level `json:"level,omitempty"`
}

// Volume of the sound.
// +k8s:enum
type Level string

const (
	LevelLow  Level = "Low"
	LevelHigh Level = "HIGH"
)

// +kubebuilder:object:root=true
type Free struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              FreeSpec `json:"spec"`
}

type FreeSpec struct {
	// +kubebuilder:validation:XPreserveUnknownFields
	Settings Settings `json:"settings"`
	// +kubebuilder:validation:XEmbeddedResource
	// +kubebuilder:validation:XPreserveUnknownFields
	Object runtime.RawExtension `json:"object"`
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Part *runtime.RawExtension `json:"part,omitempty"`
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XPreserveUnknownFields
	Anything runtime.RawExtension `json:"anything"`
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XPreserveUnknownFields
	Tree Tree `json:"tree"`
	// +kubebuilder:validation:XIntOrString
	Either Either             `json:"either"`
	Port   intstr.IntOrString `json:"port"`
	Ports  []Either           `json:"ports"`
}

// +kubebuilder:validation:XIntOrString
type Either intstr.IntOrString

type Settings struct {
	Level int32 `json:"level"`
}

type Tree struct {
	Children []Tree `json:"children"`
}

// +kubebuilder:object:root=true
type Topology struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              TopologySpec `json:"spec"`
}

type TopologySpec struct {
	// +listType=atomic
	Whole []string `json:"whole"`
	// +listType=set
	Hosts []string `json:"hosts"`
	// +listType=map
	// +listMapKey=name
	// +listMapKey=protocol
	Ports []Port `json:"ports"`
	// +listType=map
	// +listMapKey=name
	// +nullable
	// +optional
	More []Port `json:"more,omitempty"`
	// +mapType=atomic
	Selector map[string]string `json:"selector"`
	// +mapType=granular
	Labels map[string]string `json:"labels"`
	// +listType=set
	Points []Point `json:"points"`
	// +structType=atomic
	// +nullable
	// +optional
	Target *Port `json:"target,omitempty"`
}

type Port struct {
	Name string `json:"name"`
	// +default="TCP"
	Protocol string `json:"protocol"`
}

// +structType=atomic
type Point struct {
	X int32 `json:"x"`
}

// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 20",message="the name is too long"
type Ruled struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              RuledSpec `json:"spec"`
}

// +kubebuilder:validation:XValidation:rule="self.min <= self.max",message="min is above max",reason=FieldValueInvalid,fieldPath=.min
// +kubebuilder:validation:XValidation:rule="!has(self.limit) || self.limit >= self.max",messageExpression="'the limit is ' + 'low'"
// +kubebuilder:validation:ExactlyOneOf=secret;file
// +kubebuilder:validation:AtMostOneOf=a;b
// +kubebuilder:validation:AtLeastOneOf=a;b;c-d
type RuledSpec struct {
	Min int32 `json:"min"`
	Max int32 `json:"max"`
	// +nullable
	// +optional
	Limit *int32 `json:"limit,omitempty"`
	// +kubebuilder:validation:MaxLength=63
	// +k8s:immutable
	Class string `json:"class"`
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self > 0",optionalOldSelf=true
	Count int32 `json:"count"`
	// +nullable
	// +optional
	Secret *string `json:"secret,omitempty"`
	// +nullable
	// +optional
	File *string `json:"file,omitempty"`
	// +nullable
	// +optional
	A *bool `json:"a,omitempty"`
	// +nullable
	// +optional
	B *bool `json:"b,omitempty"`
	// +nullable
	// +optional
	CD *bool `json:"c-d,omitempty"`
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:XValidation:rule="self != ''"
	// +kubebuilder:validation:items:MaxLength=10
	Hosts []string `json:"hosts"`
	// The rule of the type and of the field both apply.
	// +kubebuilder:validation:XValidation:rule="self.low > 0"
	// +nullable
	// +optional
	Range *Range `json:"range,omitempty"`
}

// +kubebuilder:validation:XValidation:rule="self.low <= self.high"
type Range struct {
	Low  int32 `json:"low"`
	High int32 `json:"high"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WebsiteSpec `json:"spec"`
	// +nullable
	// +optional
	Status *WebsiteStatus `json:"status,omitempty"`
}

// A website on any number of hosts.
type WebsiteSpec struct {
	// Host names of the website; the first one is the main one.
	Hosts []string `json:"hosts"`
	// Number of replicas; defaults to two.
	// +nullable
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
}

// Observed state of a website.
type WebsiteStatus struct {
	// Number of hosts.
	Hosts int32 `json:"hosts"`
}
