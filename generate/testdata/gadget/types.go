// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gadget has a kind with the markers that definitions are made of.
//
// +kubebuilder:object:generate=true
// +groupName=example.com
// +versionName=v1beta1
package gadget

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Gadget has a size and parts.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=gadgets,singular=gadget,shortName=gd;gdt,categories=all,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.size
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'none'",message="this name is reserved"
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GadgetSpec `json:"spec"`
	// +optional
	Status GadgetStatus `json:"status,omitzero"`
}

// Color is one of three.
//
// +kubebuilder:validation:Enum=red;green;blue
type Color string

// GadgetSpec is the desired state.
type GadgetSpec struct {
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=3
	Size int32 `json:"size,omitempty"`
	// +kubebuilder:validation:Pattern=`^[a-z]+$`
	// +kubebuilder:validation:MaxLength=20
	// +optional
	Name *string `json:"name,omitempty"`
	// +optional
	Color Color `json:"color,omitempty"`
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +optional
	Parts []Part `json:"parts,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +optional
	Extra map[string]string `json:"extra,omitempty"`
}

// Part is one of a Gadget.
type Part struct {
	Name string          `json:"name"`
	Wear metav1.Duration `json:"wear"`
}

// GadgetStatus is the observed state.
type GadgetStatus struct {
	// +optional
	Size int32 `json:"size,omitempty"`
}

// The rights of a controller of gadgets.
//
// +kubebuilder:rbac:groups=example.com,resources=gadgets,verbs=get;list;watch
// +kubebuilder:rbac:groups=core,resources=secrets,resourceNames=gadget-key,verbs=get,namespace=gadgets
// +kubebuilder:rbac:urls=/healthz,verbs=get

var _ = Gadget{}
