// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"fmt"

	"github.com/setpoint-io/setpoint/object"
)

// Labels have the methods that label selectors need, in a form that is small to keep.
func ExampleLabelsOf() {
	labels := object.LabelsOf(map[string]string{"tier": "front", "app": "web"})
	fmt.Println(labels, labels.Len())
	fmt.Println(labels.Has("app"), labels.Get("tier"))
	// Output:
	// app=web,tier=front 2
	// true front
}

func Example() {
	key, err := object.ParseKey("team-a/web")
	if err != nil {
		fmt.Println(err)
		return
	}
	ref := object.Ref{Group: "apps", Kind: "Deployment", Key: key}
	fmt.Println(ref)

	older, newer := object.Version("999"), object.Version("1000")
	fmt.Println(newer.AtLeast(older))
	// Output:
	// Deployment.apps team-a/web
	// true
}
