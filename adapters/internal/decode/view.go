// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// View is the form in which a program reads the objects of a kind.
type View int

const (
	// Typed is a Go type of the kind, such as *corev1.Pod.
	Typed View = iota
	// Unstructured is a tree of maps, *unstructured.Unstructured.
	Unstructured
	// Metadata is *metav1.PartialObjectMetadata.
	Metadata
)

// ViewOf returns the view of an object, or of a list of objects.
func ViewOf(o runtime.Object) View {
	switch o.(type) {
	case runtime.Unstructured:
		return Unstructured
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return Metadata
	}
	return Typed
}

// String returns "typed", "unstructured" or "metadata".
func (v View) String() string {
	switch v {
	case Unstructured:
		return "unstructured"
	case Metadata:
		return "metadata"
	case Typed:
	}
	return "typed"
}
