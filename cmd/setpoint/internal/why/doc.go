// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why is the command "setpoint explain".
//
//	command.go   flags in, an answer out
//	object.go    which object the arguments name, and its state
//	around.go    what the object owns, and Events about it
//	record.go    what the record of runs of the cluster's manager has about it
//
// All is read with the credentials of the kubeconfig. Package explain makes the answer.
package why
