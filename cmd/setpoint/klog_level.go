// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/pflag"

// klogLevel is how much kube-controller-manager is to log, with its numbers.
type klogLevel int

func (k *klogLevel) flags(flags *pflag.FlagSet) {
	flags.IntVar((*int)(k), "v", 0, "log more, with the numbers of kube-controller-manager: 4 is as -v, 6 as -vv")
}

// verbosity is the number of -v that stands for the level.
// Source: the logging conventions of Kubernetes, by which 2 is usual, 4 is for debugging and
// 6 shows requests.
func (k klogLevel) verbosity() int {
	switch {
	case k >= 6:
		return 2
	case k >= 4:
		return 1
	}
	return 0
}
