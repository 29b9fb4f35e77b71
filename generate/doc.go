// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package generate writes what follows from the types of an API and from markers beside them:
// CustomResourceDefinitions, methods that copy objects, and rights.
//
// The markers are those of Kubebuilder. This package reads them with the libraries of
// sigs.k8s.io/controller-tools, so that a type means the same here as with controller-gen.
// [Run] is the whole package: it reads Go packages, writes nothing if one of them has a
// mistake, and otherwise writes the files whose content has changed.
//
// It is a module of its own, because no user of the library should inherit its dependencies.
package generate
