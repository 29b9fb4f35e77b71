// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
)

func TestAMissingRightIsNoRefusalOfAdmission(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	lacking := apierrors.NewForbidden(pods, "a", errors.New(`User "jane" cannot get resource "pods" in API group "" in the namespace "ns"`))
	for what, c := range map[string]struct {
		err  error
		want bool
	}{
		"a missing right":      {lacking, true},
		"one that is wrapped":  {fmt.Errorf("running: %w", lacking), true},
		"a quota":              {apierrors.NewForbidden(pods, "a", errors.New("exceeded quota: q, requested: pods=1")), false},
		"a name with the word": {apierrors.NewForbidden(pods, "who cannot be", errors.New("exceeded quota: q")), false},
		"another error":        {errors.New(`User "jane" cannot get`), false},
		"none":                 {nil, false},
	} {
		if got := client.LacksRight(c.err); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}
