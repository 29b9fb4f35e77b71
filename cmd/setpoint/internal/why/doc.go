// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why is the command "setpoint explain".
//
//	command.go   flags in, an answer out
//	object.go    which object the arguments name
//	record.go    the record of runs of the cluster's manager
//
// Package gather collects the facts with the credentials of the kubeconfig. Package explain makes the answer.
package why
