// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package worlds_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/worlds"
)

// A Driver creates a bucket that an object asks for. The cloud does not answer at first, so the
// Driver looks whether the bucket exists before it does anything else.
func Example() {
	type bucket struct{ region string }
	cloud := map[string]bucket{}
	answers := false

	driver := worlds.Driver[string, bucket, bucket]{
		World: worlds.New[string, bucket](worlds.Options{}),
		Desired: func(context.Context, string) (*bucket, error) {
			return &bucket{region: "north"}, nil // what the object says, from a cache
		},
		Observe: func(_ context.Context, name string) (*bucket, error) {
			fmt.Println("observe", name)
			if b, ok := cloud[name]; ok {
				return &b, nil
			}
			return nil, nil
		},
		Next: func(name string, desired, actual *bucket) *worlds.Step[bucket] {
			if desired == nil || actual != nil {
				return nil
			}
			return &worlds.Step[bucket]{Name: "create", Do: func(context.Context) (*bucket, error) {
				fmt.Println("create", name)
				cloud[name] = *desired
				if !answers {
					return nil, errors.New("timed out")
				}
				return desired, nil
			}}
		},
	}

	// A controller would be made by controller.NewKeyed("buckets", driver.Reconcile, ...).
	for range 2 {
		_, err := driver.Reconcile(context.Background(), controller.RequestOf[string]{Key: "photos"})
		_, known := driver.World.Actual("photos")
		fmt.Println(known, err)
	}
	// Output:
	// observe photos
	// create photos
	// uncertain create: timed out
	// observe photos
	// present <nil>
}
