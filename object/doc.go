// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package object identifies the things in a cluster.
//
// It holds the types that every other package uses for this, and nothing else:
//
//   - [Key] is a namespace and a name: what a work queue holds and a lister looks up.
//   - [Resource] is a kind as the API server serves it: group, version, plural, kind, scope.
//   - [Ref] is one object of one kind, with the UID that distinguishes it from an earlier
//     object of the same name. The UID is the identity, the name is only an address.
//   - [Meta] is the part of an object that can be read without decoding the rest.
//   - [Version] is a resourceVersion that can be compared.
//   - [Object] is the constraint that every typed function of the library uses:
//     a pointer to an API type, such as *corev1.Pod, a type of your own with
//     generated deep-copy functions, *unstructured.Unstructured, or
//     *metav1.PartialObjectMetadata.
//
// The package imports no other package of this module, and only apimachinery of the
// Kubernetes project.
package object
