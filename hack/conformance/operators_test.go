// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/internal/operators"
)

func TestAnOperatorDoesWorseIfATestFailsThatPassedBefore(t *testing.T) {
	passed := func(n int, failures ...string) *count {
		return &count{name: "example.com/operator/pkg", passed: n, failed: len(failures), failures: failures, broken: len(failures) > 0}
	}
	for name, c := range map[string]struct {
		theirs, ours *count
		worse        bool
	}{
		"the same":                        {passed(3, "TestFlaky"), passed(3, "TestFlaky"), false},
		"more":                            {passed(3, "TestFlaky"), passed(4), false},
		"fewer":                           {passed(3), passed(2), true},
		"one fails":                       {passed(3), passed(2, "TestCache"), true},
		"as many, but another one":        {passed(3, "TestFlaky"), passed(3, "TestCache"), true},
		"more, but one fails that passed": {passed(3, "TestFlaky", "TestSlow"), passed(4, "TestCache"), true},
		"the package broke without a failed test": {passed(3), &count{name: "example.com/operator/pkg", passed: 3, broken: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			if got := compare(&said, operators.Operator{Module: "example.com/operator@v1"}, []*count{c.theirs}, []*count{c.ours}); got != c.worse {
				t.Errorf("worse is %t, want %t:\n%s", got, c.worse, said.String())
			}
			for _, test := range c.ours.failures {
				if !strings.Contains(said.String(), "failed with NewCache: "+test) {
					t.Errorf("%s is not named:\n%s", test, said.String())
				}
			}
		})
	}
}
