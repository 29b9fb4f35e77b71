// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestAConfigMapIsDeletedWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New()
		maps := api.Serve(object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true})
		mgr, err := manager.New(api.Config())
		if err != nil {
			t.Fatal(err)
		}
		if err := mgr.Add(newExpirer(mgr)); err != nil {
			t.Fatal(err)
		}
		setpointtest.Run(t, mgr)

		key := object.Key{Namespace: "default", Name: "note"}
		if err := maps.Add(note(key, "10m")); err != nil {
			t.Fatal(err)
		}
		maps.RefuseNext(3, "delete", fakeapi.Unavailable(60)) // the controller tries again
		time.Sleep(9 * time.Minute)
		if maps.Get(key) == nil {
			t.Error("the ConfigMap is gone after 9 minutes")
		}
		time.Sleep(time.Hour)
		if maps.Get(key) != nil {
			t.Error("the ConfigMap is there after an hour")
		}
	})
}
