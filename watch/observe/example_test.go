// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"fmt"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/observe"
)

func Example() {
	rule, err := observe.ParseRule("configmaps:data.password")
	if err != nil {
		fmt.Println(err)
		return
	}
	o := observe.New(observe.Options{
		Kind: event.Kind{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true},
		Hide: []observe.Rule{rule},
		Key:  []byte("a key, so that the example always says the same"),
	})
	config := func(version, mode, password string) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"namespace": "team-a", "name": "web", "uid": "0f9b", "resourceVersion": version},
			"data":     map[string]any{"mode": mode, "password": password},
		}
	}
	e := o.Event(observe.Change{Verb: event.Updated, Old: config("7", "slow", "1234"), New: config("8", "fast", "9876")})
	fmt.Println(e.Kind, e.Key, e.Verb, e.Classes)
	for _, f := range e.Fields {
		fmt.Println(f.Path, f.From, "→", f.To)
	}

	key := []byte("kept with the digests")
	before := observe.DigestOf(config("7", "slow", "1234"), key)
	after := observe.DigestOf(config("9", "slow", "1234"), key)
	fmt.Println(observe.Classes(before, after))
	// Output:
	// configmaps team-a/web updated [content]
	// data.mode slow → fast
	// data.password (hidden 80dc95) → (hidden efb09f)
	// [heartbeats versions]
}
