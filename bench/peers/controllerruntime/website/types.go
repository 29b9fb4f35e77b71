// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	builtin "k8s.io/client-go/kubernetes/scheme"
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

// WebsiteStatus is what there is.
type WebsiteStatus struct {
	Address    string             `json:"address,omitempty"`
	Available  int32              `json:"available"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// WebsiteList is many of them.
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Website `json:"items"`
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

// DeepCopyObject makes a WebsiteList an API object.
func (l *WebsiteList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = make([]Website, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopy()
	}
	return &c
}

// kinds are the built-in kinds and ours.
func kinds() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme.AddKnownTypes(version, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(scheme, version)
	return scheme, builtin.AddToScheme(scheme)
}
