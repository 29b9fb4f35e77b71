// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestThePageSaysWhatIsWrongWithItsArguments(t *testing.T) {
	for _, args := range [][]string{{"--deployments", "0"}, {"--namespaces", "2001"}, {"--visits", "0"}, {"--turns", "0"}, {"--seconds", "0"}, {"--rate", "1"}} {
		var out strings.Builder
		if err := run(t.Context(), append([]string{"page"}, args...), &out); err == nil || !strings.Contains(err.Error(), strings.Join(args, " ")) {
			t.Errorf("%v: error %v, want one that names them", args, err)
		}
	}
}
