// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why is the command "setpoint explain".
//
//	command.go   flags in, an answer out
//	object.go    which object the arguments name, and its state
//	around.go    what the object owns, and Events about it
//	record.go    the entries about it in the record of runs of the cluster's manager
//
// The command reads all of it with the credentials of the kubeconfig. Package explain makes the answer.
package why
