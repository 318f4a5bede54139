// Package restarter has the kind of examples/config-restarter, and the role of its controller.
//
// +groupName=apps.example.com
// +versionName=v1
package restarter

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:rbac:groups=apps.example.com,resources=restartpolicies,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps.example.com,resources=restartpolicies/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=restartpolicies,shortName=rp
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:printcolumn:name=Ready,type=integer,JSONPath=.status.ready
// +kubebuilder:printcolumn:name=Updated,type=integer,JSONPath=.status.updated
// +kubebuilder:printcolumn:name=Hash,type=string,JSONPath=.status.configHash
type RestartPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              RestartPolicySpec `json:"spec"`
	// +nullable
	// +optional
	Status *RestartPolicyStatus `json:"status,omitempty"`
}

// Pods that use a ConfigMap, and are replaced when its data changes.
type RestartPolicySpec struct {
	// The ConfigMap in the same namespace.
	ConfigMapName string `json:"configMapName"`
	// Number of desired pods.
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`
	// The template of the pods.
	Template corev1.PodTemplateSpec `json:"template"`
}

// Observed state.
type RestartPolicyStatus struct {
	// The generation of the spec that this status is about.
	// +nullable
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// Pods that are not being deleted.
	Replicas int32 `json:"replicas"`
	// Pods that are ready.
	Ready int32 `json:"ready"`
	// Pods that were made with the newest data.
	Updated int32 `json:"updated"`
	// The newest hash of the data.
	// +nullable
	// +optional
	ConfigHash *string `json:"configHash,omitempty"`
	// The hash that was last sent to the registry.
	// +nullable
	// +optional
	RegisteredHash *string `json:"registeredHash,omitempty"`
	// Conditions of the policy.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
