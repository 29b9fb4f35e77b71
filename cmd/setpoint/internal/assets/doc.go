// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package assets is the command "setpoint assets".
//
//	command.go   flags in, the path of a directory out
//	links.go     the directory and its links
//
// setpoint-controlplane is kube-apiserver, etcd or kubectl when it is started under that name. The
// directory has a link to it for each of these names, which is what envtest of
// controller-runtime wants in KUBEBUILDER_ASSETS.
package assets
