// Package apps has the kind of examples/podset, and the role of its controller.
//
// +groupName=apps.example.com
// +versionName=v1
package apps

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:rbac:groups=apps.example.com,resources=podsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.example.com,resources=podsets/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;create;delete;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name=Desired,type=integer,JSONPath=.spec.replicas
// +kubebuilder:printcolumn:name=Ready,type=integer,JSONPath=.status.readyReplicas
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp
type PodSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PodSetSpec `json:"spec"`
	// +nullable
	// +optional
	Status *PodSetStatus `json:"status,omitempty"`
}

// A set of pods that one template describes.
type PodSetSpec struct {
	// Number of desired pods.
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`
	// Selects the pods of the set. The labels of the template must match it.
	Selector metav1.LabelSelector `json:"selector"`
	// The template of the pods.
	Template corev1.PodTemplateSpec `json:"template"`
}

// Observed state.
type PodSetStatus struct {
	// Pods that are not being deleted.
	Replicas int32 `json:"replicas"`
	// Pods that are ready.
	ReadyReplicas int32 `json:"readyReplicas"`
	// The generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration"`
	// The selector as text, for the scale subresource.
	Selector string `json:"selector"`
	// `ReplicaFailure` when a pod could not be created or deleted.
	Conditions []metav1.Condition `json:"conditions"`
}
