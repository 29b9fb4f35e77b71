// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"testing"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestTheStatusCountsForTheGenerationWhereItIsNoSubresource(t *testing.T) {
	for name, test := range map[string]struct {
		options []fakeapi.Option
		want    int64
	}{
		"a field like any other": {nil, 2},
		"a subresource":          {[]fakeapi.Option{fakeapi.WithStatus()}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			api := fakeapi.New()
			served := api.Serve(gadgets, test.options...)
			key := object.Key{Namespace: "ns", Name: "a"}
			if err := served.Add(gadget(key, map[string]any{"status": map[string]any{"ready": false}})); err != nil {
				t.Fatal(err)
			}
			changed := served.Get(key)
			changed.Object["status"] = map[string]any{"ready": true}
			changed, err := gadgetsOf(t, api).Update(t.Context(), changed)
			if err != nil {
				t.Fatal(err)
			}
			if got := changed.GetGeneration(); got != test.want {
				t.Errorf("the generation is %d, want %d", got, test.want)
			}
			changed.SetLabels(map[string]string{"a": "b"})
			if changed, err = gadgetsOf(t, api).Update(t.Context(), changed); err != nil || changed.GetGeneration() != test.want {
				t.Errorf("with another label it is %v, %v", changed, err)
			}
		})
	}
}
