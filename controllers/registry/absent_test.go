// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/registry"
)

func TestControllersThatAreNotBuiltInMayBeNamed(t *testing.T) {
	for _, test := range []struct {
		choice string
		runs   string // one that is chosen, with a minus if it is not
		absent string
	}{
		{"*", "deployment-controller", ""},
		{"*,-service,route", "deployment-controller", "node-route-controller"},
		{"-deployment,*,service,cloud-node-lifecycle-controller,-service", "-deployment-controller", "cloud-node-lifecycle-controller service-lb-controller"},
		{"deployment", "deployment-controller", ""},
		{"deployment,node-route-controller,-route", "deployment-controller", "node-route-controller"},
	} {
		choice := strings.Split(test.choice, ",")
		entries, err := registry.Select(registry.Known(), choice)
		if err != nil {
			t.Errorf("%s: %v", test.choice, err)
			continue
		}
		name, without := strings.CutPrefix(test.runs, "-")
		if got := slices.ContainsFunc(entries, func(d *controllers.Descriptor) bool { return d.Name == name }); got == without {
			t.Errorf("%s chooses %s: %t", test.choice, name, got)
		}
		if got := strings.Join(registry.Absent(choice), " "); got != test.absent {
			t.Errorf("%s: absent are %q, want %q", test.choice, got, test.absent)
		}
	}
	if _, err := registry.Select(registry.Known(), []string{"node-route-controller"}); !errors.Is(err, registry.ErrNothingSelected) {
		t.Errorf("a choice of none that is here: %v", err)
	}
	for _, e := range registry.Known() {
		if len(registry.Absent([]string{e.Name, e.Alias})) > 0 {
			t.Errorf("%s is built in, and listed as absent", e.Name)
		}
	}
}
