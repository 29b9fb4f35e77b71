// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/manager"
)

func TestTheInformersOfAManagerShareTheBudgetThatItWasGiven(t *testing.T) {
	for name, test := range map[string]struct {
		options []manager.Option
		want    int64
	}{
		"without the option": {nil, cache.DefaultDecodedBudget},
		"with one":           {[]manager.Option{manager.DecodedBudget(64 << 20)}, 64 << 20},
		"with none":          {[]manager.Option{manager.DecodedBudget(0)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := manager.New(&rest.Config{Host: "http://server.invalid"}, test.options...)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.InformerFactory().Budget().Status().Limit; got != test.want {
				t.Errorf("the budget is %d bytes, want %d", got, test.want)
			}
		})
	}
}
