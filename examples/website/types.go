// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Website is a page that is served under a host name.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   WebsiteSpec   `json:"spec"`
	Status WebsiteStatus `json:"status,omitzero"`
}

// WebsiteSpec is the desired state.
type WebsiteSpec struct {
	Host     string `json:"host"`
	Page     string `json:"page"`
	Replicas int32  `json:"replicas,omitempty"` // the server's default is 2
}

// WebsiteStatus is the actual state.
type WebsiteStatus struct {
	Address    string             `json:"address,omitempty"`
	Available  int32              `json:"available"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopy copies all that may be changed through the copy.
func (w *Website) DeepCopy() *Website {
	c := *w
	w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = slices.Clone(w.Status.Conditions)
	return &c
}

// DeepCopyObject makes a Website an API object.
func (w *Website) DeepCopyObject() runtime.Object { return w.DeepCopy() }

// kinds has the kind of a Website.
func kinds() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(schema.GroupVersion{Group: "example.com", Version: "v1"}, &Website{})
	return scheme
}
