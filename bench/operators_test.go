// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/internal/operators"
)

func TestEachOperatorIsInTheListAndServesOnLoopbackAlone(t *testing.T) {
	at := addresses{metrics: "1001", profiles: "1002", webhook: "1003"}
	for _, s := range subjects {
		if _, err := operators.Named(s.operator); err != nil {
			t.Error(err)
		}
		flags := strings.Join(s.flags(at, "/certificates"), " ")
		for _, want := range []string{"1001", "1002", "1003", "/certificates"} {
			if !strings.Contains(flags, want) {
				t.Errorf("%s is started with %q, without %s", s.operator, flags, want)
			}
		}
		if strings.Contains(flags, "0.0.0.0") {
			t.Errorf("%s serves on all interfaces: %q", s.operator, flags)
		}
		if n := s.reconciles(7); n < 1 || n > 7 {
			t.Errorf("%s is at rest after %d reconciles of 7 objects", s.operator, n)
		}
	}
}

func TestOperatorsThatAreNotThereAreNamedBeforeAnythingIsBuilt(t *testing.T) {
	err := runOperators(t.Context(), []string{"--operators", "cluster-api,prometheus"}, io.Discard)
	if want := `there is no "prometheus"; there are cluster-api and trust-manager`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q in it", err, want)
	}
}
