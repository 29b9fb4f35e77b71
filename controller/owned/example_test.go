// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package owned_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller/owned"
)

// A quota that is used up costs one request, however many objects are missing.
func ExampleSlowStart() {
	var requests atomic.Int32
	created, err := owned.SlowStart(context.Background(), 500, 1, func(context.Context, int) error {
		requests.Add(1)
		return errors.New("exceeded quota")
	})
	fmt.Println(created, "created,", requests.Load(), "requested:", err)
	// Output:
	// 0 created, 1 requested: exceeded quota
}

// Of three shards, the two with the fewest keys are deleted.
func ExampleSurplus() {
	type shard struct {
		name string
		keys int
	}
	shards := []shard{{"a", 70}, {"b", 3}, {"c", 40}}
	fewest := func(a, b shard) int { return cmp.Compare(a.keys, b.keys) }
	for _, s := range owned.Surplus(shards, 2, fewest) {
		fmt.Println("delete", s.name)
	}
	// Output:
	// delete b
	// delete c
}

// The reference that an object of an owner has from its creation on.
func ExampleBy() {
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "4711"}}
	ref := owned.By(web, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	fmt.Println(ref.Kind, ref.Name, ref.UID, "manages it:", *ref.Controller)
	// Output:
	// Deployment web 4711 manages it: true
}
