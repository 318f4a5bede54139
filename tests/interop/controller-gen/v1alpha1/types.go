// Package v1alpha1 has websites before they had several hosts.
//
// +groupName=example.com
// +versionName=v1alpha1
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "markers/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:deprecatedversion:warning="use example.com/v1"
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WebsiteSpec `json:"spec"`
	// +nullable
	// +optional
	Status *v1.WebsiteStatus `json:"status,omitempty"`
}

// A website on one host.
type WebsiteSpec struct {
	// Host name of the website.
	Host string `json:"host"`
	// Number of replicas.
	// +nullable
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
}
