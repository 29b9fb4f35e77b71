// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	websiteKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Website"}
	websites    = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "websites"}
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

// websiteOf returns a Website of its own, whatever is done with o.
func websiteOf(o runtime.Unstructured) (*Website, error) {
	site := &Website{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.UnstructuredContent(), site)
	return site, err
}

func (w *Website) unstructured() (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w)
	return &unstructured.Unstructured{Object: content}, err
}
