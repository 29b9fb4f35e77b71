// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"fmt"

	"github.com/setpoint-io/setpoint/watch/diff"
	"github.com/setpoint-io/setpoint/watch/event"
)

func Example() {
	container := func(name, image string) map[string]any {
		return map[string]any{"name": name, "image": image}
	}
	pod := func(containers ...any) map[string]any {
		return map[string]any{"spec": map[string]any{"containers": containers}}
	}
	schema, ok := diff.Builtin(event.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true})
	if !ok {
		fmt.Println("Pods are unknown")
		return
	}
	found := diff.Compare(
		pod(container("web", "web:1")),
		pod(container("proxy", "proxy:7"), container("web", "web:2")), schema)
	for _, d := range found {
		fmt.Println(d.Op, d.Path, d.From, d.To)
	}
	// Output:
	// add spec.containers[name=proxy] <nil> map[image:proxy:7 name:proxy]
	// replace spec.containers[name=web].image web:1 web:2
}
