// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Gates writes the table of the feature gates that some component of Kubernetes knows, in
// the minor versions that kube-controller-manager can emulate. Installers hand one list of
// gates to every component, so setpoint manager accepts each of them.
//
//	go run ./hack/gates -out cmd/setpoint/internal/manage/known_gates.go
//
// It downloads the modules of those versions with the go command and reads the declarations
// of their gates. A gate that was removed in a later version stays in the table. It is run
// again when the project moves to another version of Kubernetes.
package main
